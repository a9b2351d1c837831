#!/usr/bin/env python3
"""Multiplies matrices that are spread over devices, and draws rate and speed-up against their size.

Started by `./run app gemm`. Runs the C++ program `gemm`, which takes all other options, measures
and checks. Then draws its figures.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import front

APP = front.App(
    "gemm",
    "C = A B on several devices, timed, checked and drawn.",
    "--devices cpu:4 --sweep 500:2000:500 --type double",
    pictures=("gemm.png",),
)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return front.main(APP, arguments)


if __name__ == "__main__":
    sys.exit(main())
