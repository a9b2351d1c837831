#!/usr/bin/env python3
"""COACCEL's streamed BLAS test, run and drawn: speed-up by iteration, stages over time.

Started by `./run app blas_stream`; takes the options of the C++ program, and --out FOLDER.
Exit status: that of the program; 2 for a wrong argument.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "apps" / "common")]
from front import launched


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


def take_out(arguments: list[str]) -> tuple[Path, list[str]]:
    """Splits --out FOLDER or --out=FOLDER off the program's arguments."""
    out, rest = Path("out/blas_stream"), []
    words = iter(arguments)
    for word in words:
        if word == "--out":
            out = Path(next(words, ""))
        elif word.startswith("--out="):
            out = Path(word.removeprefix("--out="))
        else:
            rest.append(word)
    return out, rest


def main(arguments: list[str]) -> int:
    """The program; returns its exit status."""
    binary = os.environ.get("MESHPOST_APP_BINARY")
    if not binary:
        print("blas_stream: start it with ./run app blas_stream", file=sys.stderr)
        return 2
    out, rest = take_out(arguments)
    if {"-h", "--help"} & set(rest):
        print("--out FOLDER: where result.json and the pictures go (default: out/blas_stream)\n")
        return subprocess.call([binary, "--help"])
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"blas_stream: can't make {out}: {error.strerror}", file=sys.stderr)
        return 2
    result, trace = out / "result.json", out / "timeline.json"
    for name in ("result.json", "timeline.json", "speedup.png", "timeline.png"):
        (out / name).unlink(missing_ok=True)  # an earlier run's must not pass for this one's
    try:
        command = [binary, "--json", str(result), "--trace", str(trace), *rest]
        status = subprocess.call(launched(command))
    except KeyboardInterrupt:
        return 130
    if not result.exists():
        return status
    facts = json.loads(result.read_text())
    written = [result]
    if facts["plain_seconds"]:
        draw_speedup(facts, out / "speedup.png")
        written.append(out / "speedup.png")
    if trace.exists():
        from timeline_picture import draw

        draw(trace, out / "timeline.png", title="chunks through the pipeline of the first device")
        written += [trace, out / "timeline.png"]
    print("wrote", ", ".join(map(str, written)))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
