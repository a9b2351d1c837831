"""Draws the fits of the bandwidth, and the latencies beside the thesis's."""

from __future__ import annotations

from pathlib import Path

import intervals
import seed
import tables


def draw(facts: dict, path: Path) -> None:
    """Left: times of all starts and the fits, of one pair. Right: latencies."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.8), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, (job, runs) in enumerate(facts["jobs"].items()):
        color = f"C{number}"
        for run in runs:
            sizes, seconds = zip(*tables.points(run, True), strict=True)
            left.plot(sizes, [1e6 * s for s in seconds], ".", color=color, alpha=0.5)
        fit = tables.fit(runs, True)
        label = f"{seed.PLACES[job]} ({job})"
        if fit and fit.bandwidth and fit.latency.value > 0:
            fine = [sizes[0] * (sizes[-1] / sizes[0]) ** (i / 99) for i in range(100)]
            line = [1e6 * (fit.latency.value + size / fit.bandwidth.value) for size in fine]
            label += f": {tables.show(fit.bandwidth, 1e-9)} GB/s"
            left.plot(fine, line, color=color)
        left.plot([], [], ".", color=color, label=label)
    left.set(xscale="log", yscale="log", xlabel="bytes", ylabel="put and acknowledgement, us")
    left.set_title("t = latency + bytes / bandwidth, one pair; dots are starts", fontsize=10)
    left.legend(fontsize=8)

    labels, at = [], 0
    for (what, place), theirs in seed.LATENCY.items():
        for job, runs in facts["jobs"].items():
            if tables.place_of(job) != place:
                continue
            ours = intervals.median(tables.samples(runs, what))
            low = ours.value if ours.lower is None else ours.lower
            high = ours.value if ours.upper is None else ours.upper
            error = [[1e6 * (ours.value - low)], [1e6 * (high - ours.value)]]
            right.errorbar([1e6 * ours.value], [at], xerr=error, fmt="o", color="C0", capsize=3)
            right.plot(theirs[1] if job == "mpi" else theirs[0], at, "x", color="C3")
            labels.append(f"{what}, {seed.PLACES[job]} ({job})")
            at += 1
    right.plot([], [], "o", color="C0", label="here" + (", 95 %" if facts["starts"] >= 6 else ""))
    right.plot([], [], "x", color="C3", label="the thesis (verbs; mpi: MPI)")
    right.set_yticks(range(len(labels)), labels, fontsize=8)
    right.invert_yaxis()
    right.set(xscale="log", xlabel="one way, us")
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.grid(alpha=0.3)
    figure.savefig(path)
