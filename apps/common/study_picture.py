"""The pictures of a case study over devices, and over ranks. Needs Matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from study import label, scaling


def draw_line(axes, at: Iterable, times: list[dict], style: str, text: str) -> None:
    """Medians in ms as a line, and their intervals as a band."""
    median, lower, upper = (
        [1e3 * time[key] for time in times] for key in ("median", "lower", "upper")
    )
    (line,) = axes.plot(at, median, style, label=text)
    axes.fill_between(at, lower, upper, color=line.get_color(), alpha=0.25)


def save(figure, axes, title: str, picture: Path) -> None:
    """What both pictures have in common."""
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def draw_scaling(study: str, runs: list[dict], picture: Path) -> None:
    """Times of both versions over the number of devices."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    at = range(len(runs))
    if against := sorted({run["against"] for run in runs} - {""}):
        text = f"two models: kernels, messages by {', '.join(against)}"
        draw_line(axes, at, [run["two_model"] for run in runs], "o-", text)
        draw_line(axes, at, [run["communication"] for run in runs], "s--", "of that: messages")
    draw_line(axes, at, [run["kernel"] for run in runs], "^-", "one kernel that puts and notifies")
    axes.set_xticks(list(at), [label(run) for run in runs], rotation=20)
    axes.set_ylabel(f"time of {runs[0]['steps']} steps, ms")
    count = len(runs[0]["kernel"]["samples"])
    interval = "95 % interval" if count > 5 else "range"
    runs_of = f"median and {interval} of {count} runs" if count > 1 else "one run"
    save(figure, axes, f"{study}: {runs_of}, the same work {scaling(runs)}", picture)


def draw_oversubscription(study: str, runs: list[dict], picture: Path) -> None:
    """Times over ranks for each multiprocessor or core, a line for each set of devices."""
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for spec in dict.fromkeys(run["spec"] for run in runs):
        mine = [run for run in runs if run["spec"] == spec]
        factors = [run["factor"] for run in mine]
        draw_line(axes, factors, [run["kernel"] for run in mine], "o-", spec)
    axes.set_xticks([1, 2, 4])
    axes.set_xlabel("ranks, of the usual number (one on each multiprocessor of a GPU)")
    axes.set_ylabel(f"time of {runs[0]['steps']} steps in one kernel, ms")
    save(figure, axes, f"{study}: more ranks than multiprocessors", picture)
