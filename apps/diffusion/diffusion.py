#!/usr/bin/env python3
"""Horizontal diffusion of an elevation model on every rank of every device, checked and drawn.

Started by `./run app diffusion`. Prepares the input, runs the C++ program `diffusion`, repeats its
work in NumPy, and draws the field before and after with the timeline of the ranks.

Exit status: 0 done, 1 a run or a check failed, 2 a wrong argument or input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np

from check import Check, check_result
from errors import Failure, Misuse
from field import SAMPLE, read_field
from picture import draw_all, timelines
from program import compute, find_binary
from reference import TYPES


def count(least: int, what: str):
    """An argparse type: a whole number of at least `least`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {what} >= {least}")
        return value

    return parse


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Reads the command line; argparse ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="./run app diffusion",
        description="COSMO's horizontal diffusion of an elevation model, spread over all ranks of "
        "all devices, checked against NumPy and drawn.",
        epilog="example: ./run app diffusion --devices cpu:2 --ranks 16 --iterations 500",
    )
    add = parser.add_argument
    add(
        "--input",
        type=Path,
        metavar="FILE",
        help="a .npy or .npz of shape (rows, columns) or "
        "(levels, rows, columns); default: the elevation model that comes with Matplotlib",
    )
    add("--array", metavar="NAME", help="which array of a .npz; default: the largest that fits")
    add(
        "--iterations",
        type=count(0, "iterations"),
        default=200,
        metavar="N",
        help="steps to compute (default: %(default)s)",
    )
    add(
        "--devices",
        metavar="SPEC",
        help="devices to use, as the library names them; "
        "default: all GPUs, or the CPU where there are none",
    )
    add("--ranks", type=count(1, "ranks"), metavar="N", help="ranks on each device")
    add(
        "--precision",
        choices=tuple(TYPES),
        default="float",
        help="numbers to compute in (default: %(default)s)",
    )
    add(
        "--scheme",
        choices=("gridtools", "cosmo"),
        default="gridtools",
        help="sign of the Laplacian: gridtools has 4u - neighbours, cosmo the other, which "
        "smooths (default: %(default)s)",
    )
    add(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with a run of one rank, bit for bit, and with NumPy (default: on)",
    )
    add(
        "--out",
        type=Path,
        default=Path("out/diffusion"),
        metavar="FOLDER",
        help="where the results go (default: %(default)s)",
    )
    add(
        "--json",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="where the report goes (default: FOLDER/result.json)",
    )
    add("--no-plot", action="store_true", help="draw no pictures")
    options = parser.parse_args(arguments)
    options.json = options.json or options.out / "result.json"
    return options


def prepare_folders(options: argparse.Namespace) -> None:
    """Makes the output folders, and tries them before the work, not after."""
    for folder in (options.out, options.json.parent):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise Misuse(
                f"can't write to {folder}: {error.strerror}; choose another with --out or --json"
            ) from error


def outputs(folder: Path) -> list[Path]:
    """What lies there of the files that the app writes."""
    names = ["diffusion.png", "result.npy", "timeline.png"]
    return [*(folder / n for n in names if (folder / n).exists()), *timelines(folder)]


def work(options: argparse.Namespace) -> int:
    """Does everything. Returns the exit status."""
    field = read_field(options.input, options.array, options.precision)
    find_binary()  # before the folders are made: a missing program leaves nothing behind
    prepare_folders(options)
    for file in outputs(options.out):  # what an earlier run left must not pass for this one's
        file.unlink()
    options.json.unlink(missing_ok=True)
    levels, rows, columns = field.values.shape
    print(f"{field.name}: {levels} x {rows} x {columns} (levels, rows, columns)")
    after, facts, status = compute(options, field, options.out / "timeline.json")

    if options.check:
        check = check_result(
            field.values, after, options.iterations, options.precision, options.scheme
        )
    else:
        check = Check(None, "--no-check")
    verdict = {True: "passed", False: "FAILED", None: "skipped"}[check.passed]
    print(f"NumPy check {verdict}: {check.reason}", flush=True)

    drawable = after.shape == field.values.shape and np.isfinite(after).all()
    if not options.no_plot and drawable:
        draw_all(options, field, after, facts)
    files = {file.name: str(file) for file in outputs(options.out)}
    facts |= {"input": str(options.input or SAMPLE), "array": options.array}
    facts |= {"numpy_check": dataclasses.asdict(check), "files": files}
    options.json.write_text(json.dumps(facts, indent=2) + "\n")
    print("wrote", ", ".join([*files.values(), str(options.json)]))
    return 1 if status != 0 or check.passed is False else 0


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    # A job's end arrives as SIGTERM: the C++ program must end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return work(parse(arguments))
    except Misuse as error:
        print(f"diffusion: {error}", file=sys.stderr)
        return 2
    except Failure as error:
        print(f"diffusion: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("diffusion: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
