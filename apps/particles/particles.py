#!/usr/bin/env python3
"""Simulates particles by one kernel and by kernels with communication of the host.

Started by `./run app particles`. Runs the C++ program `particles`, which takes all other options,
measures and compares. Compares its result with NumPy, and draws it; --film makes a film.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import front
import study


def check(facts: dict, _folder: Path) -> str:
    """Compares the result with NumPy's."""
    import numpy as np

    import reference

    if facts["particles"] * facts["steps"] > reference.LIMIT:
        return f"skipped: more than {reference.LIMIT:.0e} particles times steps"
    initial, result = np.load(facts["initial"]), np.load(facts["output"])
    expected = reference.simulate(facts, initial)
    if result.tobytes() != expected.tobytes():
        rows = np.flatnonzero((result != expected).any(axis=1))
        error = np.abs(result - expected)[:, :4].max()
        raise study.Wrong(
            f"{len(rows)} of {len(result)} particles differ from NumPy's, particle {rows[0]} "
            f"first, by at most {error:.3g}"
        )
    return "equal to the bit (NumPy)"


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws the result, and the film if there are frames."""
    import picture

    return front.picture_and_film("particles", picture, facts, folder)


STUDY = study.Study(
    name="particles",
    description="Particles that repel their neighbours, as one kernel and as two models.",
    example="--devices cpu:2 --width 60 --length 30 --particles 900 --film",
    claim="1.3 times as fast on one device, up to 1.7 times on more (verbs)",
    check=check,
    pictures=("particles.png", "film.gif"),
    draw=draw,
)


def run(arguments: list[str]) -> int:
    """The front, with the files that the checks and the film need."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--film", action="store_true")
    own, arguments = parser.parse_known_args(arguments)
    parser.add_argument("--out", type=Path, default=Path("out", STUDY.name))
    parser.add_argument("--figure", action="store_true")
    parser.add_argument("--draw")
    parser.add_argument("--help", "-h", action="store_true")
    others, _ = parser.parse_known_args(arguments)
    if own.film and (others.figure or others.draw):
        raise front.Misuse("--film needs a run of its own: leave out --figure and --draw")
    if others.help:
        print("--film: a film of the run in FOLDER/film.gif; --every sets its steps\n")
    elif not others.figure and not others.draw:
        arguments = ["--initial", str(others.out / "initial.npy"), *arguments]
        if own.film:
            arguments = ["--frames", str(others.out / "frames.npy"), *arguments]
    return study.run(STUDY, arguments)


if __name__ == "__main__":
    sys.exit(front.guarded(STUDY.name, lambda: run(sys.argv[1:])))
