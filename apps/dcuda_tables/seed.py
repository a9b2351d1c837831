"""The thesis's figures of dCUDA (tables 5.1, 5.2 and 5.4), as printed."""

PLACES = {"device": "same device", "node": "same node", "ofi": "other node", "mpi": "other node"}
# us, one way: by verbs, by MPI, the original dCUDA
LATENCY = {
    ("access", "device"): (2.4, 2.4, 6.4),
    ("access", "node"): (6.7, 23.7, 25.4),
    ("access", "other"): (6.9, 12.2, 14.7),
    ("notify", "device"): (1.9, 1.9, 6.4),
    ("notify", "node"): (3.4, 5.0, None),
    ("notify", "other"): (3.6, 5.4, None),
}
# us, round trip. Ours has the first row and the row of its notifications.
HOST = {
    "flag in host memory": 2.2,
    "flag in device memory": 1.8,
    "queues H-H, D-D, H-D, D-H": (2.4, 2.0, 2.4, 1.9),
}
# GB/s: one rank and all ranks; the same device: 1 and 26 of 52 ranks. (GPUDirect, staged)
BANDWIDTH = {
    ("device", "one"): (6.9, None),
    ("device", "all"): (79.3, None),
    ("node", "one"): (2.7, 12.6),
    ("node", "all"): (2.2, 10.3),
    ("other", "one"): (2.7, 6.0),
    ("other", "all"): (2.2, 7.2),
}
