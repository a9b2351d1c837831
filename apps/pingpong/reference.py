"""The halo exchange's stencil in NumPy, in one piece, as the C++ program must compute it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

COEFFICIENT = 0.1


def step(u: np.ndarray) -> np.ndarray:
    """One step on a float64 array of shape (z, y, x), in any unit. Beyond its edges are zeros.

        next = u + 0.1 (((west + east) + (south + north)) + (down + up) - 6 u)

    The C++ kernels have the same brackets. NumPy rounds every operation by itself, so kernels
    compiled without fused multiply-adds give the same bits.
    """
    p = np.pad(u, 1)
    x = p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
    y = p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
    z = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1]
    return u + COEFFICIENT * (((x + y) + z) - 6.0 * u)


def differing(fields: dict) -> list[str]:
    """The modes whose field is not that of NumPy to the bit. `fields` is of the program's report.

    Raises OSError or ValueError if a file is not what the report says.
    """
    shape = tuple(fields["shape"])

    def read(path: str) -> np.ndarray:
        return np.frombuffer(Path(path).read_bytes(), "<f8").reshape(shape)

    expected = read(fields["before"])
    for _ in range(fields["steps"]):
        expected = step(expected)
    return [
        mode for mode, path in fields["after"].items() if read(path).tobytes() != expected.tobytes()
    ]
