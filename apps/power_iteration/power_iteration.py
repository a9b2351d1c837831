#!/usr/bin/env python3
"""The largest eigenvalue of a sparse matrix, checked against SciPy, or a figure over devices.

Started by `./run app power_iteration`. Runs the C++ program, which takes all other options. Without
--devices it takes four devices of this host, or logical ones.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import study

PICTURE = "convergence.png"


def check(facts: dict, folder: Path) -> str:
    """Compares the iteration with SciPy's, and if it has converged, the eigenvalue."""
    import numpy as np

    import dumped
    import reference

    matrix = dumped.matrix_of(facts, folder / "dump")
    start = np.load(folder / "dump" / "b.npy", allow_pickle=False)
    found = np.load(folder / "result.npy", allow_pickle=False)
    lengths = np.array(facts["lengths"])
    vector, expected = reference.iterate(matrix, start, facts["steps"])
    error = max(np.max(abs(lengths / expected - 1)), np.max(abs(found - vector)))
    if not error <= 1e-10:
        raise study.Wrong(f"lengths or vector differ by {error:.3g}")
    if not reference.has_converged(lengths):
        return f"SciPy's but for {error:.2g}; it has not converged: take more --iterations"
    eigenvalue = reference.dominant(matrix)
    off = abs(lengths[-1] / eigenvalue - 1)
    if not off <= 1e-10:
        raise study.Wrong(f"the eigenvalue is {lengths[-1]:.15g}; SciPy's is {eigenvalue:.15g}")
    return f"SciPy's but for {error:.2g}; the eigenvalue but for {off:.2g}"


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws the convergence."""
    importlib.import_module("picture").draw(facts, folder / PICTURE)
    return [folder / PICTURE]


STUDY = study.Study(
    "power_iteration",
    "The largest eigenvalue of a sparse matrix over a square of devices: in one kernel, and as "
    "kernels with communication by the host.",
    "--devices cpu:4 --size 2000 --iterations 30",
    claim="1.33 times as fast on 9 devices (verbs), 2.1 times against MPI; slower on 1",
    check=check,
    files=("dump",),
    counts=(1, 4, 9, 16),
    devices=4,
    pictures=(PICTURE,),
    draw=draw,
)

if __name__ == "__main__":
    sys.exit(study.main(STUDY))
