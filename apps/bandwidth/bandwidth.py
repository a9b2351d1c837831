#!/usr/bin/env python3
"""Measures copies between all memories of this machine, and draws them as heat maps.

Started by `./run app bandwidth`. Runs the C++ program `bandwidth`, which measures, checks and
prints.

Exit status: 0 done, 1 the program failed or bytes arrived wrong, 2 a wrong argument, 130
interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from front import find_binary, guarded, run_binary, writable


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Reads the command line; argparse ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="./run app bandwidth",
        description="Bandwidth between all memories of this machine, in every variant.",
        epilog="example: ./run app bandwidth --devices cpu:4 --size 8,1MiB,256MiB",
    )
    add = parser.add_argument
    add(
        "--devices",
        metavar="SPEC",
        help="cpu:4 (how many), cuda:0,1 (which), cuda (all), cuda:0*4 (each split in 4)",
    )
    add(
        "--size",
        default="64MiB",
        metavar="SIZES",
        help="bytes of a copy; several with commas (default: %(default)s)",
    )
    add("--places", metavar="NAMES", help="only these, such as pinned:0,cuda:1")
    add("--variants", metavar="NAMES", help="only these, such as copy,driver")
    add("--repetitions", default="5", metavar="N", help="copies timed (default: %(default)s)")
    add(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare what arrived, bit for bit",
    )
    add("--json", type=Path, metavar="FILE", help="the figures (default: in --out)")
    add(
        "--out",
        type=Path,
        default=Path("out/bandwidth"),
        metavar="FOLDER",
        help="where bandwidth.png and bandwidth.json go (default: %(default)s)",
    )
    add("--no-plot", dest="plot", action="store_false", help="draw nothing")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> int:
    report = writable(options.json or options.out / "bandwidth.json")
    report.unlink(missing_ok=True)
    command = [str(find_binary("bandwidth")), "--json", str(report), "--size", options.size]
    command += ["--repetitions", options.repetitions]
    command += ["--check" if options.check else "--no-check"]
    for option in ("devices", "places", "variants"):
        if (value := getattr(options, option)) is not None:
            command += [f"--{option}", value]
    status = run_binary(command)
    if not report.exists():
        return status if status in (1, 2) else 1
    if options.plot:
        try:
            from picture import draw

            draw(json.loads(report.read_text()), writable(options.out / "bandwidth.png"))
            print(f"picture     {options.out / 'bandwidth.png'}")
        except ImportError as error:
            print(f"no picture: {error}; install matplotlib, or say --no-plot", file=sys.stderr)
    print(f"figures     {report}")
    return min(abs(status), 1)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return guarded("bandwidth", lambda: run(parse(arguments)))


if __name__ == "__main__":
    sys.exit(main())
