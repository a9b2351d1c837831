#!/usr/bin/env python3
"""The figures of all case studies of the dCUDA thesis, with one table: the seed's claim, and here.

Started by `./run app seed_figures`. Options that all studies have are passed on to them.

Exit status: 0 done, 1 a program failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

APPS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(APPS / "common"))
import front
import study

NAMES = ("particles", "stencil", "spmv", "power_iteration")


def study_of(name: str) -> study.Study:
    """The properties of a study, from its front."""
    spec = importlib.util.spec_from_file_location(f"front_{name}", APPS / name / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.STUDY


def lines_of(figures: dict) -> list[str]:
    """The rows of the table for one study, as Markdown."""
    rows = []
    for place, run in enumerate(figures["runs"]):
        kernel, other = run["kernel"]["median"], run["two_model"]["median"]
        ratio = f"{other / kernel:.2f}" if kernel and other else "not measured"
        rows.append(
            f"| {figures['study'] if place == 0 else ''} | "
            f"{figures['claim'] if place == 0 else ''} | {study.label(run)} | "
            f"{run['against']} | {1e3 * other:.4g} ms | "
            f"{1e3 * run['communication']['median']:.4g} ms | {1e3 * kernel:.4g} ms | {ratio} |"
        )
    return rows


def run(arguments: list[str]) -> int:
    """The whole front. Returns an exit status."""
    parser = argparse.ArgumentParser(
        prog="./run app seed_figures",
        description="The figures of the four case studies, and one table.",
        epilog="Other options go to each study; ./run app stencil --help shows them.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, default=Path("out", "seed_figures"), metavar="FOLDER")
    parser.add_argument("--no-plot", dest="plot", action="store_false", help="draw nothing")
    options, others = parser.parse_known_args(arguments)
    os.environ.pop("MESHPOST_APP_BINARY", None)  # each study has its own
    table = front.writable(options.out / "table.md")
    return front.replacing([table], lambda: measured(options, others, table))


def measured(options: argparse.Namespace, others: list[str], table: Path) -> int:
    """All figures, and the table. Returns an exit status."""
    rows = [
        "| study | the seed | devices | against | two models | messages | one kernel | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in NAMES:
        print(f"=== {name}", flush=True)
        folder = options.out / name
        mine = argparse.Namespace(
            out=folder, json=folder / "figure.json", plot=options.plot, series=None
        )
        if status := study.measure(study_of(name), mine, others):
            return status
        rows += lines_of(json.loads(mine.json.read_text()))
        table.write_text("\n".join(rows) + "\n")  # what is done stays, if a later one is stopped
    print("\n" + "\n".join(rows) + f"\n\ntable       {table}")
    return 0


if __name__ == "__main__":
    sys.exit(front.guarded("seed_figures", lambda: run(sys.argv[1:])))
