#!/usr/bin/env python3
"""Products of a sparse matrix with vectors, checked against SciPy, or a figure over devices.

Started by `./run app spmv`. Runs the C++ program `spmv`, which takes all other options. Without
--devices it takes four devices of this host, or logical ones.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import study


def check(facts: dict, folder: Path) -> str:
    """Compares the result with SciPy's."""
    import numpy as np

    import dumped
    import reference

    matrix = dumped.matrix_of(facts, folder / "dump")
    b = np.load(folder / "dump" / "b.npy", allow_pickle=False)
    x = np.load(folder / "result.npy", allow_pickle=False)
    error = reference.largest_error(matrix, b, x)
    if not error <= 1:
        raise study.Wrong(f"the largest error is {error:.3g} of the bound for rounding")
    return f"SciPy's; the largest error is {error:.2g} of the bound for rounding"


STUDY = study.Study(
    "spmv",
    "Products of a sparse matrix with vectors over a square of devices: in one kernel, and as "
    "kernels with communication by the host.",
    "--devices cpu:4 --size 2000 --products 20",
    claim="1.4 times as fast on 4 devices (verbs), slightly slower on 1",
    check=check,
    files=("dump",),
    counts=(1, 4, 9, 16),
    devices=4,
)

if __name__ == "__main__":
    sys.exit(study.main(STUDY))
