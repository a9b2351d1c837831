"""Draws a sweep over sizes of chunks: times and idle shares of both kinds of pipeline."""

from __future__ import annotations

import statistics
from pathlib import Path

KINDS = {"asynchronous": ("o-", "#2f6db3"), "synchronous": ("s--", "#c0504d")}
PAPER = "COACCEL's synchronous pipeline (figure 6): about half"


def draw(facts: dict, path: Path) -> None:
    """Left: time of an iteration. Right: the share in which devices are idle. Dots are runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4), dpi=140, layout="constrained")
    times, shares = figure.subplots(1, 2)
    chunks = [point["chunk"] for point in facts["sweep"]]
    for kind, (style, color) in KINDS.items():
        for axis, values, scale in ((times, "seconds", 1), (shares, "idle", 100)):
            runs = [[scale * value for value in point[kind][values]] for point in facts["sweep"]]
            for chunk, some in zip(chunks, runs, strict=True):
                axis.plot([chunk] * len(some), some, ".", color=color, alpha=0.35, ms=4)
            medians = [statistics.median(some) for some in runs]
            axis.plot(chunks, medians, style, color=color, ms=4, label=f"{kind}, median")
    shares.axhline(50, color="grey", ls=":", lw=1, label=PAPER)
    times.axvline(8, color="grey", ls=":", lw=1, label="COACCEL: full speed from 8 columns on")
    times.set(xscale="log", yscale="log", ylabel="time of an iteration, s")
    shares.set(xscale="log", ylabel="devices idle, % of the iteration")
    shares.set_ylim(top=100)
    for axis in (times, shares):
        axis.set_xscale("log", base=2)
        axis.set_xticks(chunks, [str(chunk) for chunk in chunks])
        axis.set_xlabel("columns of a chunk")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    devices = f"{len(facts['devices'])} x {facts['devices'][0]}"
    figure.suptitle(f"m = {facts['m']}, n = {facts['n']}, {devices}", fontsize=10)
    figure.savefig(path)
