"""The seed's measurement: a step and its exchange, direct and through the host, over devices."""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
from pathlib import Path

import front
import study

COUNTS = (1, 2, 4, 8)  # devices
WAYS = ("direct", "through-host")


def defaults(gpus: int) -> tuple[list[int], int, int]:
    """Sizes, steps and timed runs: the seed's on GPUs, fewer where CPU devices share cores."""
    if gpus:
        return [16, 32, 64, 128, 256, 512], 1000, 5
    return [16, 32], 10, 3


def timed(app: front.App, options: argparse.Namespace, words: list[str]) -> tuple[int, dict | None]:
    """Runs the program once. Its figures, or None if this machine can't hold the grid."""
    file = options.out / "run.json"
    file.unlink(missing_ok=True)
    print("---", shlex.join(words), flush=True)
    command = [str(front.find_binary(app.name)), *words, "--no-check", "--json", str(file)]
    status = front.run_binary(command)
    facts = json.loads(file.read_text()) if status == 0 else None
    file.unlink(missing_ok=True)
    return status, facts


def row(facts: dict, spec: str, size: int, kind: str) -> dict:
    """What the tables need of a run, in seconds a step."""
    steps = facts["steps"]
    return {
        "devices": spec,
        "count": facts["device_count"],
        "label": study.label(facts),
        "size": size,
        "kind": kind,
        "cells": facts["cells"],
        "steps": steps,
        "exchange": facts["exchange"],
        "step": statistics.median(facts["seconds"]) / steps,
        # Of one kernel only.
        "waiting": statistics.median(facts["waiting"]) / steps if facts["waiting"] else None,
        "seconds": facts["seconds"],
    }


def measured(app: front.App, options: argparse.Namespace, others: list[str]) -> int:
    """Runs all sizes on all devices, both ways. Returns an exit status."""
    gpus = study.gpus()
    sizes, steps, repetitions = defaults(gpus)
    sizes = options.sizes or sizes
    common = ["--steps", str(options.steps or steps)]
    common += ["--repetitions", str(options.repetitions or repetitions), *others]
    runs: list[dict] = []
    for spec in options.series or [study.devices_of(count, gpus) for count in COUNTS]:
        count = 0
        for kind in ("same grid", "same part"):
            for size in sizes:
                if kind == "same part" and count < 2:
                    continue
                high = size * count if kind == "same part" else size
                for way in WAYS if kind == "same grid" and count != 1 else WAYS[:1]:
                    words = ["--devices", spec, "--grid", f"{size}x{size}x{high}"]
                    status, facts = timed(app, options, [*words, "--exchange", way, *common])
                    if facts is None and status == 2:
                        return status
                    if facts is None:
                        print(f"{spec}, {size}: left out, see the message above", file=sys.stderr)
                        continue
                    count = facts["device_count"]
                    if count == 1 and way != "direct":
                        continue
                    runs.append(row(facts, spec, size, kind))
    if not runs:
        return 1
    front.write_figures(options.json, {"runs": runs})
    print(f"\n{table(runs)}\n\nfigures     {options.json}")
    if options.plot:
        front.draw(app, options.json, options.out)
    return 0


def pick(runs: list[dict], **wanted) -> dict | None:
    """The run with these properties, if there is one."""
    return next((r for r in runs if all(r[name] == v for name, v in wanted.items())), None)


def table(runs: list[dict]) -> str:
    """Times of a step, and the seed's ratios."""
    lines = [
        f"{'devices':<16} {'grid':>6} {'direct':>11} {'exchange':>11} {'by host':>11} "
        f"{'exchange':>11} {'ratio':>6} {'saved':>7} {'weak':>6}"
    ]
    for first in (r for r in runs if r["kind"] == "same grid" and r["exchange"] == "direct"):
        same = {"devices": first["devices"], "size": first["size"]}
        host = pick(runs, **same, kind="same grid", exchange="through-host")
        weak = pick(runs, **same, kind="same part")
        one = pick(runs, count=1, size=first["size"], kind="same grid")
        text = f"{first['label']:<16} {first['size']:>4}^3"
        for run in (first, host):
            for name in ("step", "waiting"):
                known = run and run[name] is not None
                text += f" {1e3 * run[name]:>8.3g} ms" if known else f" {'-':>11}"
        ratio = f"{host['step'] / first['step']:.2f}" if host else "-"
        saved = f"{saving(first, host):.0%}" if host and host["waiting"] else "-"
        scaled = f"{one['step'] / weak['step']:.3f}" if weak and one else "-"
        lines.append(f"{text} {ratio:>6} {saved:>7} {scaled:>6}")
    lines += [
        "a step and what the exchange adds to it, direct and through the host",
        "ratio: how many times as fast direct is (the seed's figure 2: up to 2.75)",
        "saved: of the exchange's time (the seed's table 2: -25 % to 73 %)",
        "weak: one device's time over this one's, with as many cells on each device",
    ]
    if any("cpu" in run["label"] for run in runs):
        lines.append("CPU devices share the host's cores, so more devices take longer")
    return "\n".join(lines)


def saving(direct: dict, host: dict) -> float:
    """The part of the exchange's time that is saved."""
    return 1 - direct["waiting"] / host["waiting"]


def draw(facts: dict, folder: Path) -> list[Path]:
    """The seed's figure 2, its table 2 as bars, and weak scaling, over the size of the grid."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    runs = facts["runs"]
    figure = Figure(figsize=(14, 4.4), dpi=130, layout="constrained")
    ratio, saved, weak = figure.subplots(1, 3)
    for spec in dict.fromkeys(run["devices"] for run in runs):
        own = [run for run in runs if run["devices"] == spec and run["exchange"] == "direct"]
        pairs = [
            (run, pick(runs, devices=spec, size=run["size"], exchange="through-host"))
            for run in own
            if run["kind"] == "same grid"
        ]
        pairs = [(run, host) for run, host in pairs if host]
        label = own[0]["label"] if own else spec
        sizes = [run["size"] for run, _ in pairs]
        ratio.plot(sizes, [host["step"] / run["step"] for run, host in pairs], "o-", label=label)
        percent = [100 * saving(run, host) if host["waiting"] else 0 for run, host in pairs]
        saved.plot(sizes, percent, "o-", label=label)
        scaled = [
            (run["size"], one["step"] / run["step"])
            for run in own
            if run["kind"] == "same part"
            and (one := pick(runs, count=1, size=run["size"], kind="same grid"))
        ]
        weak.plot([size for size, _ in scaled], [value for _, value in scaled], "o-", label=label)
    for axes, title, unit in (
        (ratio, "direct beside through the host", "times as fast"),
        (saved, "time of the exchange that is saved", "%"),
        (weak, "weak scaling: as many cells on each device", "of one device's speed"),
    ):
        axes.set_title(title)
        axes.set_xlabel("cells along an edge")
        axes.set_ylabel(unit)
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    file = folder / "figure.png"
    figure.savefig(file)
    return [file]


def numbers(text: str) -> list[int]:
    """Reads "16 32"."""
    words = text.replace(",", " ").split()
    if not words or any(not word.isdigit() or int(word) < 2 for word in words):
        raise front.Misuse(f'--sizes {text!r}: it is no list of sizes from 2 on, such as "16 32"')
    return [int(word) for word in words]


def measure(app: front.App, arguments: list[str]) -> int:
    """The figure over devices. Returns an exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--sizes")
    parser.add_argument("--series", type=shlex.split)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--out", type=Path, default=Path("out", app.name))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-plot", dest="plot", action="store_false")
    options, others = parser.parse_known_args(arguments)
    options.sizes = numbers(options.sizes) if options.sizes else []
    options.json = options.json or options.out / "figure.json"
    outputs = [front.writable(file) for file in (options.json, options.out / "figure.png")]
    return front.replacing(outputs, lambda: measured(app, options, others))
