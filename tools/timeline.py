#!/usr/bin/env python3
"""Draws a trace of ranks (Chrome's trace format, which Perfetto reads too) as a PNG.

    python tools/timeline.py TRACE.json OUT.png [--ranks 0-31] [--from US --to US] [--title T]

The upper part shows all ranks over the whole run. The lower part shows a window of it, with a row
for each rank, in which single operations are visible. Needs NumPy and Matplotlib.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from timeline_picture import draw
from timeline_trace import TraceError


def parse_ranks(text: str) -> set[int]:
    """Reads '0-31' or '0-3,8' as a set."""
    wanted = set()
    for piece in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", piece)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks such as 0-31 or 0-3,8")
        wanted |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return wanted


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status: 2 if the trace or the selection can't be drawn."""
    parser = argparse.ArgumentParser(description="Draws a trace of ranks as a PNG.")
    add = parser.add_argument
    add("trace", type=Path, metavar="TRACE.json", help="in Chrome's format, from --trace")
    add("out", type=Path, metavar="OUT.png", help="the picture to write")
    add("--ranks", type=parse_ranks, metavar="0-31", help="draw these only; default: all")
    add(
        "--from",
        type=float,
        dest="start",
        metavar="US",
        help="start of the window, in us since the first event; default: one in the middle",
    )
    add("--to", type=float, dest="stop", metavar="US", help="end of the window")
    add("--title", metavar="T", help="default: the name of the trace")
    given = parser.parse_args(arguments)
    try:
        summary = draw(
            given.trace,
            given.out,
            ranks=given.ranks,
            start=given.start,
            stop=given.stop,
            title=given.title,
        )
    except TraceError as error:
        print(f"timeline: {error}", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:  # ValueError: a file type Matplotlib can't write
        print(f"timeline: can't write {given.out}: {error}", file=sys.stderr)
        return 2
    print(f"wrote {given.out}: {summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
