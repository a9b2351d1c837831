#!/usr/bin/env python3
"""COACCEL's streamed BLAS test, run and drawn: speed-up by iteration, stages over time, or a sweep.

Started by `./run app blas_stream`. Runs the C++ program `blas_stream`, which takes all other
options, measures and checks. Then draws its figures.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "apps" / "common")]
import front


def draw_speedup(facts: dict, path: Path) -> None:
    """Draws each iteration's speed-up over the median plain iteration."""
    from matplotlib.figure import Figure

    plain = sorted(facts["plain_seconds"])[len(facts["plain_seconds"]) // 2]
    figure = Figure(figsize=(7, 3.6), dpi=140, layout="constrained")
    axis = figure.subplots()
    iterations = range(1, len(facts["seconds"]) + 1)
    axis.plot(iterations, [plain / one for one in facts["seconds"]], "o-", ms=3, color="#2f6db3")
    axis.set(
        xlabel="iteration", ylabel="speed-up over plain BLAS", xlim=(0.5, len(iterations) + 0.5)
    )
    axis.set_ylim(bottom=0)
    axis.spines[["top", "right"]].set_visible(False)
    devices = f"{len(facts['devices'])} x {facts['devices'][0]}"
    axis.set_title(f"m = {facts['m']}, n = {facts['n']}, {devices}", fontsize=10)
    figure.savefig(path)


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws the pictures for which there are figures: the speed-up, and the timeline of the run."""
    if "sweep" in facts:
        import sweep_picture

        sweep_picture.draw(facts, folder / "sweep.png")
        return [folder / "sweep.png"]
    written = []
    if facts["plain_seconds"]:
        draw_speedup(facts, folder / "speedup.png")
        written.append(folder / "speedup.png")
    trace = Path(facts["trace"]) if facts.get("trace") else None
    if trace and trace.exists():
        import timeline_picture

        title = "chunks through the pipeline of the first device"
        timeline_picture.draw(trace, folder / "timeline.png", title=title)
        written.append(folder / "timeline.png")
    return written


APP = front.App(
    "blas_stream",
    "COACCEL's streamed BLAS test, timed, checked and drawn.",
    "--devices cpu:2 --m 512 --n 8192",
    pictures=("speedup.png", "timeline.json", "timeline.png", "sweep.png"),
    draw=draw,
)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    sweep = any(word.partition("=")[0] == "--sweep" for word in given)  # it has no timeline
    return front.main(APP, given, () if sweep else ("--trace", "{out}/timeline.json"))


if __name__ == "__main__":
    sys.exit(main())
