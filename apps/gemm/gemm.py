#!/usr/bin/env python3
"""Multiplies matrices that are spread over devices, and draws rate and speed-up against their size.

Started by `./run app gemm`. Runs the C++ program `gemm`, which takes all other options, measures
and checks, and draws what it found.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from front import find_binary, guarded, run_binary, writable


def parse(arguments: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Reads what is this program's; the rest is the C++ program's."""
    parser = argparse.ArgumentParser(
        prog="./run app gemm",
        add_help=False,
        allow_abbrev=False,
        usage="./run app gemm [--out FOLDER] [--no-plot] [--json FILE] [OPTIONS below]",
        description="C = A B on several devices, timed, checked and drawn.",
        epilog="example: ./run app gemm --devices cpu:4 --sweep 500:2000:500 --type double",
    )
    add = parser.add_argument
    add("--help", "-h", action="store_true", help="this, and the program's own options")
    add(
        "--out",
        type=Path,
        default=Path("out/gemm"),
        metavar="FOLDER",
        help="where picture and figures go (default: %(default)s)",
    )
    add("--json", type=Path, metavar="FILE", help="the figures (default: FOLDER/result.json)")
    add("--no-plot", dest="plot", action="store_false", help="draw nothing")
    options, others = parser.parse_known_args(arguments)
    if options.help:
        parser.print_help()
        print()
        sys.exit(run_binary([str(find_binary("gemm")), "--help"]))
    options.json = options.json or options.out / "result.json"
    return options, others


def run(options: argparse.Namespace, others: list[str]) -> int:
    binary = find_binary("gemm")
    picture = options.out / "gemm.png"
    for output in (options.json, picture):  # an earlier run's must not pass for this one's
        writable(output).unlink(missing_ok=True)
    status = run_binary([str(binary), *others, "--json", str(options.json)])
    if not options.json.exists():
        return status if status in (1, 2) else 1
    print(f"\nfigures     {options.json}")
    if options.plot:
        try:
            from picture import draw
        except ImportError as error:
            print(f"no picture: {error}; install matplotlib, or say --no-plot", file=sys.stderr)
        else:
            draw(json.loads(options.json.read_text()), picture)
            print(f"picture     {picture}")
    return 0 if status == 0 else 1


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return guarded("gemm", lambda: run(*parse(arguments)))


if __name__ == "__main__":
    sys.exit(main())
