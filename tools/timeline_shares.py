"""Chooses a window of a trace, and adds up the time that each kind took."""

from __future__ import annotations

import numpy as np

from timeline_trace import NAMES, Trace, TraceError

EVENTS_SEEN = 40  # about the number of a rank's operations that a window can show one by one


def choose_window(trace: Trace, start: float | None, stop: float | None) -> tuple[float, float]:
    """The window to draw, in us: as requested, else in the middle and short enough for single
    spans."""
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
    if width > trace.length * 0.6:  # the whole run is about equally clear
        return 0.0, trace.length
    middle = float(np.median(trace.start))  # by number of events: a run can be half idle
    begin = min(max(middle - width / 2, 0.0), trace.length - width)
    return begin, begin + width


def coverage(trace: Trace, kind: int, begin: float, end: float, bins: int) -> np.ndarray:
    """Share of each of `bins` parts of a window that each rank spent on `kind`: (ranks, bins)."""
    chosen = (trace.kind == kind) & (trace.stop > begin) & (trace.start < end)
    scale, rows = bins / (end - begin), len(trace.ranks)
    low = np.clip((trace.start[chosen] - begin) * scale, 0, bins)
    high = np.clip((trace.stop[chosen] - begin) * scale, 0, bins)
    # The integral of a span up to x is (x - low)+ - (x - high)+. Summed over spans it is a
    # piecewise linear function, built from its slopes: two additions for each end, for a span of
    # any length.
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
