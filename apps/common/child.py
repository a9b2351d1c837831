"""Runs the program of a front. Signals that end the front end the program first."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

# At a job's end, by Ctrl-C, and when a terminal closes. The C++ program must end with its front.
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextlib.contextmanager
def handlers(handler: Callable) -> Iterator[None]:
    """Inside, `handler` has the signals that end a front, except those that are ignored."""
    before = {number: signal.getsignal(number) for number in ENDINGS}
    ours = [number for number in ENDINGS if before[number] != signal.SIG_IGN]  # nohup ignores
    for number in ours:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])


@contextlib.contextmanager
def signals_later() -> Iterator[None]:
    """Signals that arrive inside have their effect behind it."""
    came: list[int] = []
    try:
        with handlers(lambda number, _: came.append(number)):
            yield
    finally:
        if came:
            signal.raise_signal(came[0])


def stop(number: int, _frame: object) -> None:
    """Ends this front, which ends its program first. Later signals can't interrupt that."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def end(process: subprocess.Popen) -> None:
    """Ends a program: by SIGTERM, and by SIGKILL if it is there five seconds later."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(command: list[str]) -> int:
    """Runs a program until it ends. Returns its exit status; throws OSError if it can't start.

    It has ended when this function ends, also after an exception.
    """
    began = time.perf_counter()
    process = None
    try:
        # A signal that arrived inside Popen would leave a program that nobody ends. If it arrived
        # at the new process before exec, Python would drop it.
        with signals_later():
            process = subprocess.Popen(command)
        return process.wait()
    except BaseException:
        if process is None:
            raise
        end(process)
        seconds = time.perf_counter() - began
        print(
            f"\nstopped {Path(command[0]).name} (process {process.pid}) after {seconds:.1f} s; "
            "there is no result",
            file=sys.stderr,
        )
        raise
