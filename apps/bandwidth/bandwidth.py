#!/usr/bin/env python3
"""Measures copies between all memories of this machine, and draws them as heat maps.

Started by `./run app bandwidth`. Runs the C++ program `bandwidth`. That program takes all other
options, measures, checks and prints.

Exit status: 0 done, 1 the program failed or bytes arrived wrong, 2 a wrong argument, 130
interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import front


def draw(facts: dict, folder: Path, beside: dict | None) -> list[Path]:
    """Draws one run and, if there is another one beside it, the two together."""
    import picture

    for run in (facts, beside or facts):
        if missing := sorted({"places", "variants", "results"} - set(run)):
            raise ValueError(
                f"these are the figures of another program: they have no {', '.join(missing)}; "
                "name a bandwidth.json"
            )
    picture.draw(facts, folder / PICTURES[0])
    if beside is None:
        return [folder / PICTURES[0]]
    import panels

    if panels.of_processes(facts) == panels.of_processes(beside):  # as two placements
        panels.draw_ratio(beside, facts, folder / PICTURES[2])
        return [folder / PICTURES[0], folder / PICTURES[2]]
    runs = panels.in_order(facts, beside)
    panels.draw_panels(*runs, folder / PICTURES[1])
    panels.draw_ratio(*runs, folder / PICTURES[2])
    return [folder / name for name in PICTURES]


PICTURES = ("bandwidth.png", "panels.png", "ratio.png")
APP = front.App(
    "bandwidth",
    "Bandwidth between all memories of this machine, in every variant.",
    "--devices cpu:4 --size 8,1MiB,256MiB",
    figures="bandwidth.json",
    pictures=PICTURES,
    draw=draw,
    beside="figures of another run, such as one in one process beside one in several",
)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return front.main(APP, arguments)


if __name__ == "__main__":
    sys.exit(main())
