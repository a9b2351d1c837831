"""Reads a trace of ranks, or of a pipeline's stages: their operations and times."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np

# A kind is an activity of a rank. The category of an event decides it, or the beginning of its
# name.
KINDS = {
    "compute": (r"compute|kernel|each|COMP", "#7fb685"),
    "load": (r"LOAD", "#4a90c2"),  # of a pipeline's chunks
    "save": (r"SAVE", "#8a63b0"),
    "put": (r"put|notify|publish|send|get|copy|read|write", "#2f6db3"),
    "ready": (r"ready", "#d8d3a8"),  # ready to run, without a core
    "wait": (r"wait|receive|flush|test", "#f0a830"),
    "barrier": (r"barrier|reduce|broadcast|gather|scatter|scan|all_", "#b5443c"),
    "other": (r"", "#8f8f9c"),
}
NAMES = tuple(KINDS)


class TraceError(ValueError):
    """A trace or a selection can't be drawn. Says what is wrong and what to do."""


@dataclasses.dataclass
class Trace:
    """Activities of ranks. Times are in us since the first event; `row` indexes `ranks`."""

    ranks: list[tuple[str, str, int]]  # device, rank's name, rank's number; sorted by device
    row: np.ndarray  # of each span, int
    kind: np.ndarray  # of each span, index into NAMES
    start: np.ndarray  # of each span, float; spans of a row do not overlap
    stop: np.ndarray
    marks: np.ndarray  # (n, 2): row and time
    length: float  # of the whole run
    cores: tuple[int, float] | None = None  # that ranks shared, and the share of them in use


def innermost(start: np.ndarray, stop: np.ndarray) -> list[tuple[int, float, float]]:
    """Cuts events that contain others: each time counts for the innermost event.

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
        # Clocks have a resolution: an event that starts within a nanosecond of the last one's end
        # follows it.
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


def read_events(path: Path) -> tuple[list[dict], dict]:
    """The trace's events, unchecked, and its other data about the run."""
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
    more = content.get("otherData") if isinstance(content, dict) else None
    return events, more if isinstance(more, dict) else {}


def read_trace(path: Path) -> Trace:
    """Reads a trace. Raises TraceError if it is none, or has no events."""
    events, more = read_events(path)
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
    row = row.reshape(-1)  # only NumPy 2.0 gives it a second axis

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
    cores = (
        (more["cores"], more["cores_in_use"]) if {"cores", "cores_in_use"} <= set(more) else None
    )
    return Trace(ranks, *spans, points, float(end) or 1.0, cores)


def select_ranks(trace: Trace, wanted: set[int] | None) -> Trace:
    """The trace of some ranks only. Raises TraceError if the trace has none of them."""
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
