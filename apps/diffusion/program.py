"""Finds and runs the C++ program."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from errors import Failure, Misuse
from field import Field

ROOT = Path(__file__).resolve().parents[2]


def find_binary() -> Path:
    """The C++ program: MESHPOST_APP_BINARY, else the newest one built in this checkout."""
    remedy = "build it with ./run app diffusion, or set MESHPOST_APP_BINARY"
    if named := os.environ.get("MESHPOST_APP_BINARY"):
        binary = Path(named)
        if not (binary.is_file() and os.access(binary, os.X_OK)):
            raise Misuse(f"MESHPOST_APP_BINARY is {named}, which is no program: {remedy}")
        return binary.resolve()
    built = [path for path in ROOT.glob("build/*/apps/diffusion/diffusion") if path.is_file()]
    if not built:
        raise Misuse(f"no program build/*/apps/diffusion/diffusion under {ROOT}: {remedy}")
    return max(built, key=lambda path: path.stat().st_mtime)


def run_binary(command: list[str]) -> int:
    """Runs the program on this terminal, so that its progress shows. Returns its exit status.

    Whatever ends this function, the program has ended too.
    """
    began = time.perf_counter()
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        raise Failure(f"{command[0]} can't be started: {error.strerror}; rebuild it") from error
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        seconds = time.perf_counter() - began
        print(
            f"\nstopped {Path(command[0]).name} (process {child.pid}) after {seconds:.1f} s; "
            "there is no result",
            file=sys.stderr,
        )
        raise


def compute(options: argparse.Namespace, field: Field, trace: Path) -> tuple[np.ndarray, dict, int]:
    """Runs the program on `field`. Returns its result, its JSON report and its exit status."""
    result = options.out / "result.npy"
    with tempfile.TemporaryDirectory(prefix="diffusion-") as folder:
        source, report = Path(folder, "input.npy"), Path(folder, "report.json")
        np.save(source, field.values)
        command = [str(find_binary()), "--input", str(source), "--output", str(result)]
        command += ["--iterations", str(options.iterations), "--precision", options.precision]
        if options.scheme != "gridtools":
            command += ["--scheme", options.scheme]
        command += ["--json", str(report), "--trace", str(trace)]
        command += ["--check" if options.check else "--no-check"]
        if options.devices is not None:
            command += ["--devices", options.devices]
        if options.ranks is not None:
            command += ["--ranks", str(options.ranks)]
        sys.stdout.flush()
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
