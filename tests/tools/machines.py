"""A machine as meshpost-topo --json writes it, larger than any test host."""


def server(gpus: int = 8, nodes: int = 2) -> dict:
    """GPUs joined by NVLink over `nodes` NUMA nodes, with rates like those of a real host."""
    places = [(f"{kind}:{n}", n) for kind in ("pageable", "pinned") for n in range(nodes)]
    places += [(f"cuda:{i}", i * nodes // gpus) for i in range(gpus)]
    links = []
    for source, _ in places:
        for target, _ in places:
            ends = {source.split(":")[0], target.split(":")[0]}
            link = {"mover": "copy_engine", "medium": "PCIe 5.0 x16", "rate": 55e9}
            if ends == {"cuda"}:
                inside = source == target
                link |= {"medium": "memory" if inside else "NVLink 18"}
                link |= {"rate": 2e12 if inside else 396e9}
            elif ends == {"pageable", "cuda"}:
                link |= {"mover": "through_host", "rate": 9.6e9}
            elif "cuda" not in ends:
                link |= {"mover": "host_threads", "medium": "memory", "rate": 80e9}
            more = {"latency": 3e-6, "rate_both_ways": link["rate"] / 2}
            links.append({"from": source, "to": target, **link, **more})
    return {
        "version": 2,
        "host": "server",
        "fingerprint": "a server",
        "places": [
            {"place": name, "model": "M", "numa_node": node, "bus": "", "bytes": 1 << 37}
            | {"rate_out": 1e11, "rate_in": 1e11}
            for name, node in places
        ],
        "links": links,
        "host_copies": [],
    }
