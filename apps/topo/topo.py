#!/usr/bin/env python3
"""Prints the memories of this machine and the links between them, and draws them.

Started by `./run app topo`. Runs the C++ program `topo` (installed as meshpost-topo), which
measures and prints, and draws what it found.

Exit status: 0 done, 1 the program failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from front import find_binary, guarded, run_binary, writable


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Reads the command line; argparse ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="./run app topo",
        description="The memories of this machine and how fast bytes get from each to each.",
        epilog="example: ./run app topo --devices cpu:4 --measure again --out topo.png",
    )
    add = parser.add_argument
    add(
        "--devices",
        metavar="SPEC",
        help="cpu:4 (how many), cuda:0,1 (which), cuda (all), cuda:0*4 (each split in 4)",
    )
    add(
        "--measure",
        choices=["once", "again", "never"],
        default="once",
        help="once: what is known from before, else measured; again; never: without rates "
        "(default: %(default)s)",
    )
    add("--json", type=Path, metavar="FILE", help="the machine, as MESHPOST_MACHINE takes it")
    add(
        "--out",
        type=Path,
        default=Path("out/topo.png"),
        metavar="FILE",
        help="the picture (default: %(default)s)",
    )
    add("--no-plot", dest="plot", action="store_false", help="draw nothing")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="topo-") as folder:
        report = writable(options.json) if options.json else Path(folder, "machine.json")
        command = [str(find_binary("topo")), "--json", str(report), "--measure", options.measure]
        if options.devices is not None:
            command += ["--devices", options.devices]
        status = run_binary(command)
        if status != 0:
            return status if status in (1, 2) else 1
        machine = json.loads(report.read_text())
    if options.plot:
        try:
            from picture import draw

            draw(machine, writable(options.out))
        except ImportError as error:
            print(f"no picture: {error}; install matplotlib, or say --no-plot", file=sys.stderr)
            return 0
        print(f"\npicture      {options.out}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return guarded("topo", lambda: run(parse(arguments)))


if __name__ == "__main__":
    sys.exit(main())
