#!/usr/bin/env python3
"""The thesis's stencil program in two versions, checked against NumPy, or a figure over devices.

Started by `./run app stencil`. Runs the C++ program `stencil`, which takes all other options.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import study


def check(facts: dict, folder: Path) -> str:
    """Compares the result with NumPy's."""
    import reference

    wrong = reference.differing(folder / "initial.npy", folder / "result.npy", facts["steps"])
    if wrong:
        raise study.Wrong(f"{wrong} points are not NumPy's")
    return "NumPy's, equal to the bit"


STUDY = study.Study(
    "stencil",
    "Three dependent stencils, cut in rows over all devices: in one kernel, and as kernels with "
    "communication by the host.",
    "--devices cpu:2 --iterations 50",
    claim="1.2 times as fast on several devices (verbs), up to 2 times slower over MPI",
    check=check,
    files=("initial.npy",),
)

if __name__ == "__main__":
    sys.exit(study.main(STUDY))
