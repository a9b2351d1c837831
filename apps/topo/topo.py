#!/usr/bin/env python3
"""Prints the memories of this machine and the links between them, and draws them.

Started by `./run app topo`. Runs the C++ program `topo` (installed as meshpost-topo), which takes
all other options, measures and prints. Then draws its figures.

Exit status: 0 done, 1 the program failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import front

APP = front.App(
    "topo",
    "The memories of this machine and how fast bytes get from each to each.",
    "--devices cpu:4 --measure again",
    figures="machine.json",
    pictures=("topo.png",),
)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return front.main(APP, arguments)


if __name__ == "__main__":
    sys.exit(main())
