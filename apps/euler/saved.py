"""Says how to go on after a run that was stopped or failed, from the file of its --save."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import struct
import time
from pathlib import Path

# restart.cpp: a magic word, cells along x, y and z, the step, the time.
HEADER = struct.Struct("<16s4Qd")
MAGIC = b"meshpost-euler1\0"
# Options that a run from the file does not take, or takes from it.
REPLACED = ("--grid", "--amplitude", "--dt", "--cfl", "--steps", "--time", "--restart")
STEPS = 100  # of the program, without --steps and --time


@dataclasses.dataclass(frozen=True)
class State:
    """The place of a restart file in its simulation."""

    step: int = 0
    time: float = 0.0


def read(file: Path) -> State | None:
    """The state in a restart file; None if it is none."""
    try:
        with file.open("rb") as opened:
            magic, *_, step, seconds = HEADER.unpack(opened.read(HEADER.size))
    except (OSError, struct.error):
        return None
    return State(step, seconds) if magic == MAGIC else None


class Saved:
    """The restart file that a run with these arguments writes. Made before the run."""

    def __init__(self, arguments: list[str]):
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        parser.add_argument("--save", type=Path)
        for name in REPLACED:
            parser.add_argument(name)
        self._given, self._others = parser.parse_known_args(arguments)
        restart = self._given.restart
        self._start = (read(Path(restart)) if restart else None) or State()
        self._began = time.time()

    def advice(self) -> str:
        """Where the run's last state is, and the command that goes on; empty without --save."""
        file = self._given.save
        if file is None:
            return ""
        state = read(file)
        # Clocks of file systems are coarse.
        if state is None or file.stat().st_mtime < self._began - 1:
            return (
                f"restart     this run has not written {file} yet; it is written with each frame: "
                "give a smaller --every, or more --frames"
            )
        words = [*self._others, "--save", str(file), "--restart", str(file), *self._rest(state)]
        return (
            f"restart     {file} has step {state.step}, time {state.time:.4g}. Go on with\n"
            f"    ./run app euler {shlex.join(words)}"
        )

    def _rest(self, state: State) -> list[str]:
        if self._given.time is not None:
            rest = float(self._given.time) - (state.time - self._start.time)
            return ["--time", f"{max(0.0, rest):.6g}"]
        steps = int(self._given.steps or STEPS) - (state.step - self._start.step)
        return ["--steps", str(max(0, steps))]
