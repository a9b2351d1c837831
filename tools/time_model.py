#!/usr/bin/env python3
"""The time of a loop in three versions, from its timeline: who starts its messages, and what pays.

    python tools/time_model.py TRACE.json... [--check TRACE.json...] [--map pack=A]...
        [--put US] [--wait US] [--blocks A,B,C --resident N]

The timelines are of MESHPOST_TRACE_HOST (WorldOptions::trace_host). The loop repeats R steps:
compute A, send S; compute B; wait W, compute C. In the synchronous version the host waits for its
streams in each step. In the stream version streams send and wait. In the kernel version one kernel
does all. The model is that of GPUDirect Async (J. Parallel Distrib. Comput. 114, 2018, section 4).

What a TRACE has goes into the model: of the synchronous or of the stream version, or one of each.
With --check, measured totals are compared with the model, and nothing else is taken from there.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from host_trace import TraceError, read_host_trace
from time_model_parts import Model, measure, version_of


def parse_map(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.+)=([ABC])", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not like pack=A; tasks are A, B or C")
    return match[1], match[2]


def parse_blocks(text: str) -> tuple[int, int, int]:
    match = re.fullmatch(r"(\d+),(\d+),(\d+)", text)
    if not match or not all(int(one) for one in match.groups()):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 8,32,8: blocks of A, B and C")
    return int(match[1]), int(match[2]), int(match[3])


def duration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in us")
    return value


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="The time of a loop in three versions, from the timeline of its host."
    )
    add = parser.add_argument
    add("traces", type=Path, nargs="+", metavar="TRACE.json", help="of MESHPOST_TRACE_HOST")
    add("--check", type=Path, nargs="+", default=[], metavar="TRACE.json", help="measured runs")
    add(
        "--map",
        type=parse_map,
        action="append",
        default=[],
        metavar="TASK=A",
        help="class of a task",
    )
    add("--put", type=duration, metavar="US", help="S of streams, a step; default: as recorded")
    add("--wait", type=duration, metavar="US", help="W of streams, a step; default: as recorded")
    add(
        "--sync", type=duration, metavar="US", help="idle time by a wait of the host; default: seen"
    )
    add("--blocks", type=parse_blocks, metavar="A,B,C", help="blocks of a fused kernel's parts")
    add("--resident", type=int, metavar="N", help="blocks that are resident at once")
    return parser


def run(given: argparse.Namespace) -> list[str]:
    """The lines to print. Raises TraceError."""
    if (given.blocks is None) != (given.resident is None):
        raise TraceError("--blocks and --resident belong together")
    if given.resident is not None and given.resident < 1:
        raise TraceError(f"--resident is {given.resident}; at least one block is resident")
    model = Model(dict(given.map), given.put, given.wait, given.blocks, given.resident, given.sync)
    traces = [read_host_trace(path) for path in given.traces]
    for path, trace in zip(given.traces, traces, strict=True):
        if version_of(trace) == "kernel":
            raise TraceError(
                f"{path} has one run and no steps; the model needs the timeline of the synchronous "
                "or the stream version: give it, and this one to --check"
            )
        model.add(trace)
    measured = {}
    for trace in [*traces, *map(read_host_trace, given.check)]:
        version = version_of(trace)
        measured.setdefault(version, []).append(measure(trace, version))
    return model.report(measured)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status: 2 if a timeline can't be used."""
    given = options().parse_args(arguments)
    try:
        print("\n".join(run(given)))
    except TraceError as error:
        print(f"time_model: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
