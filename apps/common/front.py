"""Finds and runs the C++ program that a front end stands before, in one process or in several."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Misuse(Exception):
    """An argument that can't be used: names the value, the limit and the remedy."""


def find_binary(name: str, root: Path = ROOT) -> Path:
    """The program: MESHPOST_APP_BINARY, else the newest one built in this checkout."""
    remedy = f"build it with ./run app {name}, or set MESHPOST_APP_BINARY"
    if named := os.environ.get("MESHPOST_APP_BINARY"):
        binary = Path(named)
        if not (binary.is_file() and os.access(binary, os.X_OK)):
            raise Misuse(f"MESHPOST_APP_BINARY is {named}, which is no program: {remedy}")
        return binary.resolve()
    built = [path for path in root.glob(f"build/*/apps/{name}/{name}") if path.is_file()]
    if not built:
        raise Misuse(f"no program build/*/apps/{name}/{name} under {root}: {remedy}")
    return max(built, key=lambda path: path.stat().st_mtime)


def launched(command: list[str]) -> list[str]:
    """The command behind that of MESHPOST_APP_LAUNCH, which starts it in several processes."""
    return shlex.split(os.environ.get("MESHPOST_APP_LAUNCH", "")) + command


def run_binary(command: list[str]) -> int:
    """Runs the program on this terminal, so that its progress shows. Returns its exit status.

    Whatever ends this function, the program has ended too.
    """
    command = launched(command)
    sys.stdout.flush()
    began = time.perf_counter()
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        message = f"{command[0]} can't be started: {error.strerror}; rebuild it"
        raise Misuse(message) from error
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


def guarded(name: str, work: Callable[[], int]) -> int:
    """Does the work of the front `name`; returns its exit status, whatever becomes of it."""
    # A job's end arrives as SIGTERM: the C++ program must end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return work()
    except Misuse as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def writable(path: Path) -> Path:
    """`path`, once the folder that it lies in is there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"{path} can't be written: {error.strerror}; name another file") from error
    return path
