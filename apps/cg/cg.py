#!/usr/bin/env python3
"""Conjugate gradients over all devices, checked against SciPy, or a figure over devices.

Started by `./run app cg`. Runs the C++ program, which takes all other options, and draws the
residual and where the time went.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import functools
import json
import shlex
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import front
import study

NAME = "cg"
COUNTS = (1, 2, 4, 8)  # devices of the figure, if there are enough


def check(facts: dict, folder: Path) -> str:
    """Compares the solution and the number of iterations with SciPy's; returns what it found."""
    import numpy as np

    import reference

    found = np.load(folder / "result.npy", allow_pickle=False)
    return reference.check(facts, found)


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws one run, or those of --figure."""
    import picture

    runs = facts.get("runs_by_devices") or [facts]
    file = folder / ("figure.png" if "runs_by_devices" in facts else "cg.png")
    picture.draw(runs, [study.label(run) for run in runs], file)
    return [file]


APP = front.App(
    NAME,
    "Solves A x = b by conjugate gradients, with the rows of A spread over all devices: in one "
    "kernel, and as kernels between which the host or streams move halos and sums.",
    "--devices cpu:2 --laplacian 27 --grid 48x48x48",
    pictures=("cg.png",),
    draw=draw,
)


def table(runs: list[dict]) -> str:
    """Times of an iteration, by devices and mode."""
    lines = [f"{'devices':<18} {'mode':<8} {'iteration':>12} {'iterations':>10}"]
    for facts in runs:
        for run in facts["runs"]:
            lines.append(
                f"{study.label(facts):<18} {run['mode']:<8} "
                f"{1e3 * run['iteration']['median']:>9.4g} ms {run['iterations']:>10}"
            )
    if any("cpu" in study.label(facts) for facts in runs):
        lines.append("CPU devices share the host's cores, so more devices take longer")
    return "\n".join(lines)


def measure(options: argparse.Namespace, others: list[str]) -> int:
    """The figure: runs the program for each number of devices. Returns an exit status."""
    binary, available = front.find_binary(NAME), study.gpus()
    runs = []
    for spec in options.series or [study.devices_of(count, available) for count in COUNTS]:
        print(f"--- {spec}", flush=True)
        command = [str(binary), "--devices", spec, *others]
        status, facts = study.run_once(command, options.out / "run.json")
        if status:
            print(f"{NAME}: --devices {spec} failed: see its message above", file=sys.stderr)
            return status
        runs.append(facts)
    front.write_figures(options.json, {"study": NAME, "runs_by_devices": runs})
    print(f"\n{table(runs)}\n\nfigures     {options.json}")
    if options.plot:
        front.draw(APP, options.json, options.out)
    return 0


def one_run(arguments: list[str]) -> int:
    """One run, drawn and checked. Returns an exit status."""
    status = front.run(APP, arguments, ("--output={out}/result.npy",))
    options, _ = front.parse(APP, arguments)
    if status != 0 or options.draw:
        return status
    print("reference   compares with NumPy and SciPy ...", flush=True)
    began = time.perf_counter()
    try:
        found = check(json.loads(options.json.read_text()), options.out)
    except ImportError as error:
        print(f"reference   not compared: {error}; ./run setup installs it", file=sys.stderr)
        return 0
    except study.Wrong as error:
        print(f"reference   DIFFERS: {error}")
        return 1
    print(f"reference   {found} ({time.perf_counter() - began:.1f} s)")
    return 0


def run(arguments: list[str]) -> int:
    """The whole front. Returns an exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--figure", action="store_true")
    parser.add_argument("--series", type=shlex.split)
    parser.add_argument("--out", type=Path, default=Path("out", NAME))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-plot", dest="plot", action="store_false")
    options, others = parser.parse_known_args(arguments)
    if options.figure:
        options.json = options.json or options.out / "figure.json"
        outputs = [front.writable(file) for file in (options.json, options.out / "figure.png")]
        return front.replacing(outputs, functools.partial(measure, options, others))
    if options.series is not None:
        raise front.Misuse("--series needs --figure; for one run, name the devices by --devices")
    if {"-h", "--help"} & set(others):
        print(
            f"./run app {NAME} --figure "
            '[--series "SPEC SPEC ..."] [OPTIONS]: the same for several numbers of devices\n'
        )
    return one_run(arguments)


if __name__ == "__main__":
    sys.exit(front.guarded(NAME, lambda: run(sys.argv[1:])))
