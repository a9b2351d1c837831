"""Finds and runs the C++ program."""

from __future__ import annotations

import argparse
import json
import signal
import tempfile
from pathlib import Path

import numpy as np

from errors import Failure, Misuse
from field import Field

import front  # isort: skip; errors.py adds its folder to the path


def find_binary() -> Path:
    """The C++ program of this app."""
    return front.find_binary("diffusion")


def run_binary(command: list[str]) -> int:
    """As in all fronts. A program that can't be started is a Failure, for any arguments."""
    try:
        return front.run_binary(command)
    except Misuse as error:
        raise Failure(str(error)) from error


def compute(
    options: argparse.Namespace, told: list[str], field: Field, trace: Path
) -> tuple[np.ndarray, dict, int]:
    """Runs the program on `field` with the arguments `told`.

    Returns its result, its JSON report and its exit status.
    """
    result = options.out / "result.npy"
    with tempfile.TemporaryDirectory(prefix="diffusion-") as folder:
        source, report = Path(folder, "input.npy"), Path(folder, "report.json")
        np.save(source, field.values)
        command = [str(find_binary()), "--input", str(source), "--output", str(result), *told]
        command += ["--json", str(report), "--trace", str(trace)]
        status = run_binary(command)
        if status == 2:
            raise Misuse("the program refused its arguments: see its message above")
        if status < 0:
            raise Failure(f"{command[0]} was ended by {signal.Signals(-status).name}")
        if status != 0 and not (result.exists() and report.exists()):
            raise Failure(f"{command[0]} ended with status {status}: see its message above")
        try:
            after = np.load(result, allow_pickle=False)
            facts = json.loads(report.read_text())
            if not isinstance(facts, dict):
                raise ValueError("the report is no JSON object")
        except (OSError, ValueError, EOFError) as error:
            raise Failure(f"{command[0]} ended with status {status} but: {error}") from error
    return after, facts, status
