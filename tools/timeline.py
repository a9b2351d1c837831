#!/usr/bin/env python3
"""Draws a trace of ranks (Chrome's trace format, which Perfetto reads too) as a PNG.

    python tools/timeline.py TRACE.json OUT.png [--ranks 0-31] [--from US --to US] [--title T]

Above, what all ranks did over the whole run; below, a window of it with a row for each rank, in
which single operations can be seen. Needs NumPy and Matplotlib.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np

# A kind is what a rank spends time on. An event's category decides, or how its name begins.
KINDS = {
    "compute": (r"compute|kernel|each", "#7fb685"),
    "put": (r"put|notify|publish|send|get|copy|read|write", "#2f6db3"),
    "wait": (r"wait|receive|flush|test", "#f0a830"),
    "barrier": (r"barrier|reduce|broadcast|gather|scatter|scan|all_", "#b5443c"),
    "other": (r"", "#8f8f9c"),
}
LABELS = {"put": "put, notify, get", "barrier": "barrier, collectives"}
NAMES = tuple(KINDS)
COLOURS = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for _, c in KINDS.values()])
BARE = np.array([0.955, 0.955, 0.965])  # a row's colour where the trace says nothing
EVENTS_SEEN = 40  # about as many operations of a rank as a window can show one by one
SHAPES_MOST = 60_000  # more rectangles than this are drawn as an image: as clear, and fast


class TraceError(ValueError):
    """A trace or a selection that can't be drawn: says what is wrong and what to do."""


@dataclasses.dataclass
class Trace:
    """What ranks did when. Times are in us since the first event; `row` indexes `ranks`."""

    ranks: list[tuple[str, str, int]]  # device, rank's name, rank's number; sorted by device
    row: np.ndarray  # of each span, int
    kind: np.ndarray  # of each span, index into NAMES
    start: np.ndarray  # of each span, float; spans of a row do not overlap
    stop: np.ndarray
    marks: np.ndarray  # (n, 2): row and time
    length: float  # of the whole run


# --- reading -----------------------------------------------------------------------------------


def innermost(start: np.ndarray, stop: np.ndarray) -> list[tuple[int, float, float]]:
    """Cuts events that contain others: time counts for the innermost one.

    start, stop: (n,), sorted by start, longest first. Returns (event, from, to), in order of time.
    """
    spans, stack, now = [], [], -np.inf

    def advance(to: float) -> None:
        nonlocal now
        while stack and now < to:
            until = min(to, stop[stack[-1]])
            if until > now:
                spans.append((stack[-1], now, until))
                now = until
            if stop[stack[-1]] <= now:
                stack.pop()
        now = max(now, to)

    for event in range(len(start)):
        advance(start[event])
        stack.append(event)
    advance(np.inf)
    return spans


def flatten(row: np.ndarray, kind: np.ndarray, start: np.ndarray, stop: np.ndarray) -> tuple:
    """Makes the spans of each row free of overlaps. All arrays are (n,); so are the results."""
    order = np.lexsort((-stop, start, row))
    row, kind, start, stop = row[order], kind[order], start[order], stop[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    parts = []
    for begin, end in zip(first, [*first[1:], len(row)], strict=True):
        here = slice(begin, end)
        reach = np.maximum.accumulate(stop[here])
        # Clocks tick: an event that starts within a nanosecond of the last one's end follows it.
        if (start[here][1:] >= reach[:-1] - 1e-3).all():
            parts.append((row[here], kind[here], start[here], stop[here]))
            continue
        spans = innermost(start[here], stop[here])
        event = begin + np.array([span[0] for span in spans], int)
        times = np.array([span[1:] for span in spans], float).reshape(-1, 2)
        parts.append((row[event], kind[event], times[:, 0], times[:, 1]))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def kind_of(name: str, category: str) -> int:
    """Index into NAMES of an event."""
    if category in NAMES:
        return NAMES.index(category)
    return next(i for i, (begin, _) in enumerate(KINDS.values()) if re.match(begin, name))


def numbers(events: list[dict], keys: tuple[str, ...]) -> list[np.ndarray]:
    """The values of `keys` of all events, as floats; names the first event that lacks one."""
    try:
        columns = [np.array([event[key] for event in events], float) for key in keys]
    except (KeyError, TypeError, ValueError):
        columns = None
    if columns is None or not all(np.isfinite(column).all() for column in columns):
        for event in events:
            for key in keys:
                value = event.get(key)
                if type(value) not in (int, float) or not np.isfinite(value):
                    raise TraceError(f"event {json.dumps(event)[:120]} has no number for {key!r}")
    return columns


def read_events(path: Path) -> list[dict]:
    """The trace's events, whatever they are."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise TraceError(f"can't read {path}: {error.strerror}") from error
    except ValueError as error:
        raise TraceError(
            f"{path} is no JSON: {error}; was the program that wrote it stopped half way?"
        ) from error
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise TraceError(f"{path} has no list 'traceEvents': it is no trace of ranks")
    return events


def read_trace(path: Path) -> Trace:
    """Reads a trace. Raises TraceError where it is none, or has no events."""
    events = read_events(path)
    complete = [event for event in events if event.get("ph") == "X"]
    marks = [event for event in events if event.get("ph") in ("i", "I") and "tid" in event]
    if not complete:
        raise TraceError(f"{path} has no complete events ('ph': 'X'): was anything traced?")
    devices, names = {}, {}
    for event in events:
        if event.get("ph") == "M":
            text = str(event.get("args", {}).get("name", ""))
            if event.get("name") == "process_name":
                devices[event.get("pid")] = text
            elif event.get("name") == "thread_name":
                names[event.get("pid"), event.get("tid")] = text

    start, length, pid, tid = numbers(complete, ("ts", "dur", "pid", "tid"))
    if (length < 0).any():
        raise TraceError(f"{path} has an event with a negative 'dur'")
    mark_time, mark_pid, mark_tid = numbers(marks, ("ts", "pid", "tid"))
    keys = np.concatenate([np.stack([pid, tid], 1), np.stack([mark_pid, mark_tid], 1)])
    unique, row = np.unique(keys, axis=0, return_inverse=True)
    row = row.reshape(-1)  # NumPy 2.0 alone gives it a second axis

    ranks = []
    for device, thread in unique.astype(int).tolist():
        name = names.get((device, thread), f"rank {thread}")
        digits = re.search(r"(\d+)\s*$", name)
        number = int(digits[1]) if digits else thread
        ranks.append((devices.get(device, f"device {device}"), name, number))
    called = [(str(event.get("name", "")), str(event.get("cat", ""))) for event in complete]
    index = {both: kind_of(*both) for both in set(called)}
    kind = np.array([index[both] for both in called])
    zero = min(start.min(), mark_time.min(initial=np.inf))
    start = start - zero
    stop = start + length
    end = max(stop.max(), (mark_time - zero).max(initial=0))
    spans = flatten(row[: len(start)], kind, start, stop)
    points = np.stack([row[len(start) :], mark_time - zero], 1)
    return Trace(ranks, *spans, points, float(end) or 1.0)


def select_ranks(trace: Trace, wanted: set[int] | None) -> Trace:
    """The trace of some ranks only. Raises TraceError where there are none of them."""
    if wanted is None:
        return trace
    keep = np.array([rank[2] in wanted for rank in trace.ranks])
    if not keep.any():
        have = sorted(rank[2] for rank in trace.ranks)
        raise TraceError(f"none of these ranks is in the trace: it has {have[0]} to {have[-1]}")
    row = np.cumsum(keep) - 1
    spans, points = keep[trace.row], keep[trace.marks[:, 0].astype(int)]
    marks = trace.marks[points]
    marks[:, 0] = row[marks[:, 0].astype(int)]
    return dataclasses.replace(
        trace,
        ranks=[rank for rank, kept in zip(trace.ranks, keep, strict=True) if kept],
        row=row[trace.row[spans]],
        kind=trace.kind[spans],
        start=trace.start[spans],
        stop=trace.stop[spans],
        marks=marks,
    )


# --- what to show ------------------------------------------------------------------------------


def choose_window(trace: Trace, start: float | None, stop: float | None) -> tuple[float, float]:
    """The window to draw, in us: as asked, else one in the middle that shows single operations."""
    if start is not None or stop is not None:
        begin = max(start or 0.0, 0.0)
        end = trace.length if stop is None else min(stop, trace.length)
        if not begin < end:
            raise TraceError(
                f"no time from {begin:g} to {trace.length if stop is None else stop:g} us: --from "
                f"must be before --to and before the run's end at {trace.length:g} us"
            )
        return begin, end
    events = np.median(np.bincount(trace.row, minlength=len(trace.ranks)))
    width = trace.length * EVENTS_SEEN / max(events, 1)
    if width > trace.length * 0.6:  # the whole run is about as clear
        return 0.0, trace.length
    middle = float(np.median(trace.start))  # of the events, as a run can be idle half of its time
    begin = min(max(middle - width / 2, 0.0), trace.length - width)
    return begin, begin + width


def coverage(trace: Trace, kind: int, begin: float, end: float, bins: int) -> np.ndarray:
    """Share of each of `bins` parts of a window that each rank spent on `kind`: (ranks, bins)."""
    chosen = (trace.kind == kind) & (trace.stop > begin) & (trace.start < end)
    scale, rows = bins / (end - begin), len(trace.ranks)
    low = np.clip((trace.start[chosen] - begin) * scale, 0, bins)
    high = np.clip((trace.stop[chosen] - begin) * scale, 0, bins)
    # The integral of a span up to x is (x - low)+ - (x - high)+. Summed over spans it is a
    # piecewise linear function, built from its slopes: two additions an end, however long a span.
    total = np.zeros(rows * (bins + 2))
    base = trace.row[chosen] * (bins + 2)
    for edge, sign in ((low, 1.0), (high, -1.0)):
        whole = edge.astype(int)
        part = edge - whole
        total += np.bincount(base + whole, sign * (1 - part), len(total))
        total += np.bincount(base + whole + 1, sign * part, len(total))
    return np.cumsum(total.reshape(rows, bins + 2), axis=1)[:, :bins]


def shares(trace: Trace) -> dict[str, float]:
    """Share of the ranks' time, from the run's start to its end, that each kind took."""
    spent = np.bincount(trace.kind, trace.stop - trace.start, len(NAMES))
    parts = spent / (len(trace.ranks) * trace.length)
    found = {name: float(part) for name, part in zip(NAMES, parts, strict=True) if part > 0}
    if (rest := 1 - sum(found.values())) > 5e-4:  # less would read as 0.0%
        found["untraced"] = rest
    return found


# --- drawing -----------------------------------------------------------------------------------


def unit(length: float) -> tuple[float, str]:
    """How many us the unit has that suits a time span of `length` us, and its name."""
    return (1e6, "s") if length >= 2e6 else (1e3, "ms") if length >= 2e3 else (1.0, "us")


def percent(share: float) -> str:
    """A share as text, with a digit more where it would be 0 or 100."""
    return f"{share:.0%}" if 0.01 <= share <= 0.99 or share in (0, 1) else f"{share:.1%}"


def draw_overview(axis, trace: Trace, begin: float, end: float) -> None:
    """Draws the share of each kind over the whole run, and where the window below lies."""
    scale, name = unit(trace.length)
    bins = 400
    times = (np.arange(bins) + 0.5) * trace.length / bins / scale
    stack = [coverage(trace, k, 0, trace.length, bins).mean(axis=0) for k in range(len(NAMES))]
    axis.stackplot(times, stack, colors=COLOURS, linewidth=0, step="mid")
    axis.set(xlim=(0, trace.length / scale), ylim=(0, 1), xlabel=f"time since the start ({name})")
    axis.set_facecolor(BARE)
    axis.set_yticks([0, 0.5, 1], ["0", "50", "100"])
    axis.set_ylabel("% of ranks")
    if (begin, end) != (0.0, trace.length):
        axis.axvspan(begin / scale, end / scale, fc="none", ec="black", lw=1.4, clip_on=False)


def row_heights(trace: Trace) -> np.ndarray:
    """Lower edge of each rank's row, in rows; devices are set apart."""
    devices = [rank[0] for rank in trace.ranks]
    gap = max(0.35, len(devices) / 120)
    steps = [0.0] + [1 + gap * (a != b) for a, b in itertools.pairwise(devices)]
    return np.cumsum(steps)


def boxes(left: np.ndarray, right: np.ndarray, low: np.ndarray, thick: float) -> np.ndarray:
    """Corners of rectangles, (n, 4, 2), as Matplotlib's PolyCollection takes them."""
    corners = [(left, low), (left, low + thick), (right, low + thick), (right, low)]
    return np.stack([np.stack(corner, 1) for corner in corners], 1)


def draw_rows(axis, trace: Trace, begin: float, end: float, low: np.ndarray) -> None:
    """Draws each rank's operations in the window."""
    from matplotlib.collections import PolyCollection

    scale, _ = unit(end - begin)
    rows, thick = len(trace.ranks), 0.86 if len(trace.ranks) <= 64 else 1.0
    chosen = np.flatnonzero((trace.stop >= begin) & (trace.start <= end))
    if len(chosen) <= SHAPES_MOST:
        whole = boxes(np.full(rows, begin / scale), np.full(rows, end / scale), low, thick)
        axis.add_collection(PolyCollection(whole, facecolors=[BARE], linewidths=0))
        left = np.clip(trace.start[chosen], begin, end)
        # An operation shorter than a pixel would vanish.
        right = np.maximum(np.clip(trace.stop[chosen], begin, end), left + (end - begin) / 2500)
        shapes = boxes(left / scale, right / scale, low[trace.row[chosen]], thick)
        colours = COLOURS[trace.kind[chosen]]
        axis.add_collection(PolyCollection(shapes, facecolors=colours, linewidths=0))
    else:
        bins = max(200, min(2000, 4_000_000 // rows))  # bounds the memory
        image = np.broadcast_to(BARE, (rows, bins, 3)).copy()
        for kind, colour in enumerate(COLOURS):
            image += coverage(trace, kind, begin, end, bins)[..., None] * (colour - BARE)
        image = image.clip(0, 1)
        cuts = np.flatnonzero(np.diff(low) > 1) + 1
        for part in np.split(np.arange(rows), cuts):
            extent = (begin / scale, end / scale, low[part[-1]] + thick, low[part[0]])
            axis.imshow(image[part], extent=extent, aspect="auto", interpolation="antialiased")
    seen = trace.marks[(trace.marks[:, 1] >= begin) & (trace.marks[:, 1] <= end)]
    if len(seen):
        height = low[seen[:, 0].astype(int)]
        axis.vlines(seen[:, 1] / scale, height, height + thick, color="black", lw=1.0)
    axis.set(xlim=(begin / scale, end / scale), ylim=(low[-1] + thick + 0.14, low[0] - 0.14))


def label_rows(axis, trace: Trace, low: np.ndarray, height: float) -> None:
    """Names ranks, as many as `height` inches have room for, and devices."""
    stride = max(1, int(np.ceil(len(trace.ranks) / (height * 6))))
    stride = next((n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) if n >= stride), stride)
    shown = range(0, len(trace.ranks), stride)
    axis.set_yticks([low[i] + 0.5 for i in shown], [trace.ranks[i][1] for i in shown], fontsize=8)
    axis.tick_params(axis="y", length=0)
    devices = [rank[0] for rank in trace.ranks]
    first = [i for i in range(len(devices)) if i == 0 or devices[i] != devices[i - 1]]
    for begin, end in zip(first, [*first[1:], len(devices)], strict=True):
        place = (1.012, (low[begin] + low[end - 1] + 1) / 2)
        style = {"rotation": 270, "va": "center", "ha": "left", "fontsize": 9}
        axis.text(*place, devices[begin], transform=axis.get_yaxis_transform(), **style)


def draw(
    path: Path,
    out: Path,
    *,
    ranks: set[int] | None = None,
    start: float | None = None,
    stop: float | None = None,
    title: str | None = None,
) -> str:
    """Draws the trace in `path` as the PNG `out`; `start` and `stop` are in us since its start.

    Returns a line that sums it up. Raises TraceError where there is nothing to draw.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    trace = select_ranks(read_trace(Path(path)), ranks)
    begin, end = choose_window(trace, start, stop)
    if not ((trace.stop >= begin) & (trace.start <= end)).any():
        raise TraceError(
            f"nothing happened from {begin:g} to {end:g} us: the run lasts {trace.length:g} us"
        )
    height = float(np.clip(0.19 * len(trace.ranks), 1.6, 9.0))
    figure = Figure(figsize=(13, height + 3.4), dpi=140, layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(1.1, height))
    draw_overview(above, trace, begin, end)
    low = row_heights(trace)
    draw_rows(below, trace, begin, end, low)
    label_rows(below, trace, low, height)

    scale, name = unit(end - begin)
    part = (
        "the whole run"
        if (begin, end) == (0.0, trace.length)
        else (
            f"{begin / scale:.5g} to {end / scale:.5g} {name}: the boxed "
            f"{percent((end - begin) / trace.length)} of the run"
        )
    )
    below.set_title(part, fontsize=10)
    below.set_xlabel(f"time since the start ({name})")
    for axis in (above, below):
        axis.spines[["top", "right", "left"]].set_visible(False)

    spent = shares(trace)
    devices = len({rank[0] for rank in trace.ranks})
    scale, name = unit(trace.length)
    summary = (
        f"{len(trace.ranks)} rank{'s' * (len(trace.ranks) != 1)} on {devices} "
        f"device{'s' * (devices != 1)}, {trace.length / scale:.4g} {name}: "
        + ", ".join(f"{kind} {percent(share)}" for kind, share in spent.items())
    )
    figure.suptitle(f"{title or Path(path).stem}\n{summary}", fontsize=12)
    handles = [
        Patch(color=COLOURS[i], label=LABELS.get(kind, kind))
        for i, kind in enumerate(NAMES)
        if kind in spent
    ]
    if "untraced" in spent:
        handles.append(Patch(color=BARE * 0.97, label="untraced"))
    if len(trace.marks):
        handles.append(Patch(color="black", label="mark"))
    below_axis = (0.5, -0.52 / height)  # half an inch: clear of the axis' label
    below.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=below_axis,
        ncols=len(handles),
        frameon=False,
    )
    figure.savefig(out, bbox_inches="tight")
    return summary


# --- the command line --------------------------------------------------------------------------


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
    """The program; returns its exit status: 2 where the trace or the selection can't be drawn."""
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
