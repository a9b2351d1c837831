#!/usr/bin/env python3
"""Horizontal diffusion of an elevation model on every rank of every device, checked and drawn.

Started by `./run app diffusion`. Prepares the input, runs the C++ program `diffusion`, and repeats
its work in NumPy. Draws the field before and after, and the timeline of the ranks. Without NumPy it
runs the program on a field that needs none, and prints what the rest needs.

Exit status: 0 done, 1 a run or a check failed, 2 a wrong argument or input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from errors import Misuse

import front  # isort: skip; errors.py adds its folder to the path

APP = front.App(
    "diffusion",
    "COSMO's horizontal diffusion of an elevation model, spread over all ranks of all devices, "
    "checked against NumPy and drawn.",
    "--devices cpu:2 --ranks 16 --iterations 500",
)


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
    """Reads the command line; argparse ends the program with status 2 if it is wrong."""
    parser = front.options_parser(APP, own_help=True)
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
        choices=("float", "double"),
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
    add("--progress", choices=("auto", "always", "never"), help="a bar (default: on a terminal)")
    options = parser.parse_args(arguments)
    options.json = options.json or options.out / APP.figures
    return options


def prepare_folders(options: argparse.Namespace) -> None:
    """Makes the output folders, and tests before the work that they can be written."""
    for folder in (options.out, options.json.parent):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise Misuse(
                f"can't write to {folder}: {error.strerror}; choose another with --out or --json"
            ) from error


def timelines(folder: Path) -> list[Path]:
    """timeline.json or, of several processes, timeline-0.json and so on."""
    return sorted(folder.glob("timeline*.json"), key=lambda file: (len(file.name), file.name))


def outputs(folder: Path) -> list[Path]:
    """The files of the app that exist in the output folder."""
    names = ["diffusion.png", "result.npy", "timeline.png"]
    return [*(folder / n for n in names if (folder / n).exists()), *timelines(folder)]


def replacing(options: argparse.Namespace, work: Callable[[], int]) -> int:
    """Does the work, which replaces the files of an earlier run."""
    front.find_binary(APP.name)  # before folders are made: a missing program leaves nothing behind
    prepare_folders(options)
    return front.replacing([*outputs(options.out), options.json], work)


def missing_package(options: argparse.Namespace) -> ImportError | None:
    """The error if NumPy is missing, or Matplotlib for the default sample; else None."""
    try:
        importlib.import_module("numpy")
        if options.input is None:
            importlib.import_module("matplotlib")
    except ImportError as error:
        return error
    return None


def work_plainly(options: argparse.Namespace, missing: ImportError, command: str) -> int:
    """Runs the program on a field that it makes or reads by itself. Returns the exit status."""
    if options.input is not None and options.input.suffix != ".npy":
        raise Misuse(
            f"{options.input}: {missing}, which reads it; install NumPy by ./run setup, or give a "
            ".npy of float64"
        )
    source = str(options.input or "random:1x344x403:1")
    files = ["--output", str(options.out / "result.npy"), "--json", str(options.json)]
    files += ["--trace", str(options.out / "timeline.json")]
    told = ["--input", source, *program_options(options), *files]

    def run() -> int:
        status = front.run_binary([str(front.find_binary(APP.name)), *told])
        if status == 0:
            print(f"NumPy check skipped: {missing}", flush=True)
            front.explain_no_picture(missing, command)
        return status if status in (0, 1, 2) else 1

    return replacing(options, run)


def program_options(options: argparse.Namespace) -> list[str]:
    """Arguments of the C++ program besides its files."""
    told = ["--iterations", str(options.iterations), "--precision", options.precision]
    if options.scheme != "gridtools":
        told += ["--scheme", options.scheme]
    told += ["--check" if options.check else "--no-check"]
    for name in ("devices", "ranks", "progress"):
        if (value := getattr(options, name)) is not None:
            told += [f"--{name}", str(value)]
    return told


def work(options: argparse.Namespace) -> int:
    """Does everything. Returns the exit status."""
    import numpy as np

    from check import Check, check_result
    from field import SAMPLE, read_field
    from picture import draw_all
    from program import compute

    field = read_field(options.input, options.array, options.precision)

    def run() -> int:
        levels, rows, columns = field.values.shape
        print(f"{field.name}: {levels} x {rows} x {columns} (levels, rows, columns)")
        trace = options.out / "timeline.json"
        after, facts, status = compute(options, program_options(options), field, trace)

        if options.check:
            check = check_result(
                field.values, after, options.iterations, options.precision, options.scheme
            )
        else:
            check = Check(None, "--no-check")
        verdict = {True: "passed", False: "FAILED", None: "skipped"}[check.passed]
        print(f"NumPy check {verdict}: {check.reason}", flush=True)

        drawable = after.shape == field.values.shape and np.isfinite(after).all()
        if options.plot and drawable:
            draw_all(options, field, after, facts, timelines(options.out))
        files = {file.name: str(file) for file in outputs(options.out)}
        facts |= {"input": str(options.input or SAMPLE), "array": options.array}
        facts |= {"numpy_check": dataclasses.asdict(check), "files": files}
        front.write_figures(options.json, facts)
        print("wrote", ", ".join([*files.values(), str(options.json)]))
        return 1 if status != 0 or check.passed is False else 0

    return replacing(options, run)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments

    def run() -> int:
        options = parse(arguments)
        options.command = shlex.join([*APP.command.split(), *given])
        missing = missing_package(options)
        return work_plainly(options, missing, options.command) if missing else work(options)

    return front.guarded(APP.name, run)


if __name__ == "__main__":
    sys.exit(main())
