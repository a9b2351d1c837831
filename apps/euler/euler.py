#!/usr/bin/env python3
"""The 3-D Rayleigh-Taylor instability: checked against NumPy and drawn, or measured over devices.

Started by `./run app euler`. Runs the C++ program `euler`, which takes all other options.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import front
import saved

FRAMES = 24
# A small perturbation, until the fastest wave has grown by about e^4.5; its share is linear.
GROWTH = ("--amplitude=0.0005", "--time=2.6", "--no-check")


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws a run, and its film if that was asked for; or the figure over devices."""
    if "runs" in facts:
        import figure

        return figure.draw(facts, folder)
    import picture

    return front.picture_and_film("euler", picture, facts, folder)


APP = front.App(
    "euler",
    "The 3-D Rayleigh-Taylor instability by the compressible Euler equations.",
    "--devices cpu:2 --grid 16x16x32 --steps 400 --film",
    pictures=("euler.png", "film.gif"),
    draw=draw,
)
HELP = """--film: a film of the run in FOLDER/film.gif; --every sets its steps
--growth: a small perturbation, and its growth rates beside linear theory
--figure [--sizes "16 32"] [--series "SPEC SPEC"] [OPTIONS]: the time of a step and of the exchange,
  direct and through the host, for several grids and numbers of devices; and weak scaling
"""


def reference(facts: dict) -> tuple[bool, str]:
    """Compares the result with NumPy's: if it passed, and a line about it."""
    import numpy as np

    import reference as scheme

    x, y, z = facts["cells"]
    if x * y * z * 3 * facts["steps"] > scheme.LIMIT:
        return True, f"skipped: more than {scheme.LIMIT:.0e} cells times stages"
    initial, result = np.load(facts["initial"]), np.load(facts["output"])
    expected = scheme.simulate(initial, facts)
    wrong = (result.view(np.uint64) != expected.view(np.uint64)).any(axis=0)
    if not wrong.any():
        return True, "equal to the bit (NumPy)"
    first = tuple(int(i) for i in reversed(np.argwhere(wrong)[0]))
    error = np.abs(result - expected).max()
    return False, f"DIFFERS in {wrong.sum()} cells, {first} first, by at most {error:.3g}"


def compare(facts: dict) -> int:
    """Prints what the comparison with NumPy found. Returns an exit status."""
    try:
        passed, found = reference(facts)
    except ImportError as error:
        print(f"reference   not compared: {error}; ./run setup installs it", file=sys.stderr)
        return 0
    print(f"reference   {found}")
    return 0 if passed else 1


def print_growth(facts: dict) -> int:
    """Prints the growth rates beside those of linear theory. Returns an exit status."""
    import growth

    try:
        found = growth.rates(facts)
    except ValueError as error:
        raise front.Failure(f"no growth rates: {error}") from error
    for name, (measured, theory) in found.items():
        ratio = measured / theory
        print(f"growth      {name}: {measured:.4g}, linear theory {theory:.4g}: {ratio:.3f} of it")
    return 0


def one_run(arguments: list[str], options: argparse.Namespace) -> int:
    """One run, compared and drawn. Returns an exit status."""
    shared, others = front.parse(APP, arguments)
    given = {word.partition("=")[0] for word in others}
    more = ["--slices={out}/slices.npy", "--initial={out}/initial.npy", "--output={out}/result.npy"]
    more += GROWTH if options.growth else ()
    if not {"--every", "--frames"} & given:
        more.append(f"--frames={4 * FRAMES if options.growth else FRAMES}")
    if shared.draw:
        more = []
    state, status = saved.Saved(arguments), 1
    try:
        status = front.run(
            APP, [*arguments, "--no-plot"] if not shared.draw else arguments, tuple(more)
        )
    finally:  # also if a signal ended the run
        if status == 1 and (advice := state.advice()):
            print(advice, file=sys.stderr, flush=True)
    if status != 0 or shared.draw:
        return status
    facts = json.loads(shared.json.read_text())
    facts["film"] = options.film
    front.write_figures(shared.json, facts)
    if shared.plot:
        front.draw(APP, shared.json, shared.out)
    if options.growth:
        return print_growth(facts)
    return compare(facts) if "--no-check" not in others else 0


def run(arguments: list[str]) -> int:
    """The whole front. Returns an exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("film", "growth", "figure"):
        parser.add_argument(f"--{name}", action="store_true")
    options, others = parser.parse_known_args(arguments)
    if sum((options.film, options.growth, options.figure)) > 1:
        raise front.Misuse("--film, --growth and --figure are three kinds of run; ask for one")
    if {"-h", "--help"} & set(others):
        print(f"{APP.description}\n\n{HELP}")
    if options.figure:
        import figure

        return figure.measure(APP, others)
    return one_run(others, options)


if __name__ == "__main__":
    sys.exit(front.guarded(APP.name, lambda: run(sys.argv[1:])))
