#!/usr/bin/env python3
"""Measures a ping-pong and a halo exchange by host, streams and one kernel, and draws them.

Started by `./run app pingpong`. Runs the C++ program `pingpong`, which takes all other options,
measures and checks. Compares its first halo field with NumPy, and draws its figures.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import front

FIGURES = ("13", "18", "halo")


def figure_of(arguments: list[str]) -> str:
    """The figure that the program will measure; the program refuses others."""
    figure = FIGURES[0]
    for place, word in enumerate(arguments):
        if word == "--figure" and place + 1 < len(arguments):
            figure = arguments[place + 1]
        elif word.startswith("--figure="):
            figure = word.partition("=")[2]
    return figure if figure in FIGURES else FIGURES[0]


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws the figure that was measured."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import picture

    if facts.get("figure") not in FIGURES or not facts.get("results"):
        raise front.Misuse("these are no figures of pingpong; name a file that its --json wrote")
    file = folder / f"figure-{facts['figure']}.png"
    (picture.draw_halo if facts["figure"] == "halo" else picture.draw_exchange)(facts, file)
    return [file]


def compare(figures: Path) -> int:
    """Compares the fields that the program kept with NumPy's. Returns an exit status."""
    fields = json.loads(figures.read_text()).get("fields")
    if not fields:
        return 0
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    try:
        import reference
    except ImportError as error:
        print(f"NumPy       not compared: {error}", file=sys.stderr)
        return 0
    try:
        wrong = reference.differing(fields)
    except ValueError as error:
        raise front.Failure(f"a field of {figures} is damaged: {error}") from error
    print(f"NumPy       {'DIFFERS from ' + ', '.join(wrong) if wrong else 'equal to the bit'}")
    return 1 if wrong else 0


def run(arguments: list[str]) -> int:
    """Runs the program, compares and draws. Returns an exit status."""
    figure = figure_of(arguments)
    app = front.App(
        "pingpong",
        "A ping-pong and a halo exchange by the host, by streams and by one kernel.",
        "--figure 18 --devices cpu:2",
        figures=f"figure-{figure}.json",
        pictures=(f"figure-{figure}.png",),
        draw=draw,
    )
    more = ("--fields", "{out}/fields") if figure == "halo" else ()
    status = front.run(app, arguments, more)
    options, _ = front.parse(app, arguments)
    if status != 0 or options.draw or not options.json.exists():
        return status
    return compare(options.json)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    return front.guarded("pingpong", lambda: run(given))


if __name__ == "__main__":
    sys.exit(main())
