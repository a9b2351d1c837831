"""Draws a trace of ranks as a PNG: all of it above, a window of it below."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from timeline_shares import choose_window, coverage, shares
from timeline_trace import KINDS, NAMES, Trace, TraceError, read_trace, select_ranks

# Names of kinds if rows are ranks; a pipeline's stages use the kinds' own names.
WORDS = {"compute": "running", "put": "sending", "wait": "waiting", "ready": "ready"}
LABELS = {
    "compute": "running",
    "put": "sending: put, notify, get",
    "ready": "ready, without a core",
    "wait": "waiting",
    "barrier": "barrier, collectives",
}
COLOURS = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for _, c in KINDS.values()])
BARE = np.array([0.955, 0.955, 0.965])  # a row's colour where the trace has no event
SHAPES_MOST = 60_000  # more rectangles than this are drawn as an image: equally clear, but fast


def unit(length: float) -> tuple[float, str]:
    """The unit that suits a time span of `length` us: its size in us, and its name."""
    return (1e6, "s") if length >= 2e6 else (1e3, "ms") if length >= 2e3 else (1.0, "us")


def percent(share: float) -> str:
    """A share as text, with a digit more where it would be 0 or 100."""
    return f"{share:.0%}" if 0.01 <= share <= 0.99 or share in (0, 1) else f"{share:.1%}"


def draw_overview(axis, trace: Trace, begin: float, end: float) -> None:
    """Draws the share of each kind over the whole run, and the position of the window below."""
    scale, name = unit(trace.length)
    bins = 400
    times = (np.arange(bins) + 0.5) * trace.length / bins / scale
    stack = [coverage(trace, k, 0, trace.length, bins).mean(axis=0) for k in range(len(NAMES))]
    axis.stackplot(times, stack, colors=COLOURS, linewidth=0, step="mid")
    axis.set(xlim=(0, trace.length / scale), ylim=(0, 1), xlabel=f"time since the start ({name})")
    axis.set_facecolor(BARE)
    axis.set_yticks([0, 0.5, 1], ["0", "50", "100"])
    axis.set_ylabel("% of rows")
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
    """Labels devices, and as many ranks as fit in `height` inches."""
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

    Returns a line that sums it up. Raises TraceError if there is nothing to draw.
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
    what = "rank" if trace.ranks[0][1].startswith("rank") else "stage"
    nothing = "untraced" if what == "rank" else "idle"
    words = WORDS if what == "rank" else {}
    labels = LABELS if what == "rank" else {}
    spent = {nothing if kind == "untraced" else kind: share for kind, share in spent.items()}
    devices = len({rank[0] for rank in trace.ranks})
    scale, name = unit(trace.length)
    summary = (
        f"{len(trace.ranks)} {what}{'s' * (len(trace.ranks) != 1)} on {devices} "
        f"device{'s' * (devices != 1)}, {trace.length / scale:.4g} {name}: "
        + ", ".join(f"{words.get(kind, kind)} {percent(share)}" for kind, share in spent.items())
    )
    if trace.cores:
        count, used = trace.cores
        cores = "its core" if count == 1 else f"{count} cores"
        summary += f"; {percent(used)} of {cores} in use"
    figure.suptitle(f"{title or Path(path).stem}\n{summary}", fontsize=12)
    handles = [
        Patch(color=COLOURS[i], label=labels.get(kind, kind))
        for i, kind in enumerate(NAMES)
        if kind in spent
    ]
    if nothing in spent:
        handles.append(Patch(color=BARE * 0.97, label=nothing))
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
