"""Draws the residual over the iterations, and where the time of an iteration went.

Phases are measured in a run of their own, so their sum is not the time of the timed runs.
"""

from __future__ import annotations

from pathlib import Path

COLORS = {
    "product": "#2f6db3",
    "exchange": "#b3432f",
    "sums": "#d9a441",
    "vectors": "#5a9367",
    "other": "#999999",
}


def bars(runs: list[dict], labels: list[str]) -> list[tuple[str, dict]]:
    """A bar for each run and mode: its label, and milliseconds by phase."""
    return [
        (
            f"{label}\n{mode['mode']}",
            {name: 1e3 * seconds for name, seconds in mode["spent"].items()},
        )
        for label, run in zip(labels, runs, strict=True)
        for mode in run["runs"]
    ]


def timed(runs: list[dict]) -> list[float]:
    """Milliseconds of an iteration in the runs that are timed without phases, by bar."""
    return [1e3 * mode["iteration"]["median"] for run in runs for mode in run["runs"]]


def titles(runs: list[dict]) -> list[str]:
    """Which runs the bars and the marks show."""
    apart = dict.fromkeys(
        mode["mode"]
        for run in runs
        for mode in run["runs"]
        if not mode.get("spent_overlaps", mode["mode"] == "kernel")
    )
    lines = ["bars: the run that measures phases"]
    if apart:
        lines.append(f"(modes {' and '.join(apart)}: without overlap)")
    return [*lines, "marks: median of the timed runs, with overlap"]


def draw(runs: list[dict], labels: list[str], file: Path) -> None:
    """Writes the picture. `runs`: the program's reports; `labels`: their devices."""
    from matplotlib.figure import Figure

    all_bars = bars(runs, labels)
    figure = Figure(figsize=(5 + max(4.0, 0.9 * len(all_bars)), 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for mode in runs[0]["runs"]:
        residuals = [max(value, 1e-300) for value in mode["residuals"]]
        left.semilogy(residuals, label=mode["mode"], alpha=0.8)
    if runs[0]["tolerance"] > 0:
        left.axhline(runs[0]["tolerance"], color="gray", linestyle=":", label="tolerance")
    left.set(xlabel="iteration", ylabel="|r| / |b|", title=runs[0]["description"])
    left.legend()
    bottom = [0.0] * len(all_bars)
    for name, color in COLORS.items():
        heights = [spent.get(name, 0.0) for _, spent in all_bars]
        right.bar(range(len(all_bars)), heights, bottom=bottom, label=name, color=color)
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    right.set_xticks(range(len(all_bars)), [label for label, _ in all_bars])
    right.plot(range(len(all_bars)), timed(runs), "kD", ms=6, mfc="white", label="timed runs")
    right.set(ylabel="ms an iteration", ylim=(0, 1.3 * max([*bottom, *timed(runs)])))
    right.set_title("\n".join(titles(runs)), fontsize=9)
    right.legend(ncols=3, fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
