"""The front that the case studies share: one run that is checked, or a figure over devices."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import front


@dataclasses.dataclass(frozen=True)
class Study:
    """The properties in which one study differs from another."""

    name: str
    description: str
    example: str  # arguments
    claim: str  # of the seed, one line: how much faster the one kernel was
    # Compares the results in the folder with NumPy's or SciPy's; returns what it found, or throws
    # Wrong. `facts` are the figures of the run. Imports what it needs.
    check: Callable[[dict, Path], str]
    # More files in --out that the check needs: "initial.npy" is what --initial writes.
    files: tuple[str, ...] = ()
    # Device counts of the figure, if there are enough; logical devices make up for missing ones.
    counts: tuple[int, ...] = (1, 2, 4, 8)
    devices: int = 0  # so many devices of one run, unless --devices names them; 0: all
    pictures: tuple[str, ...] = ()  # that `draw` makes of one run, in --out
    draw: Callable[[dict, Path], list[Path]] | None = None


class Wrong(Exception):
    """A result differs from the reference."""


def gpus() -> int:
    """How many GPUs this host has."""
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def devices_of(count: int, available: int) -> str:
    """So many devices of this host: whole GPUs, parts of GPUs, or CPU devices."""
    if available == 0:
        return f"cpu:{count}"
    used = max(n for n in range(1, min(count, available) + 1) if count % n == 0)
    split = "" if used == count else f"*{count // used}"
    return "cuda:" + ",".join(str(gpu) for gpu in range(used)) + split


def label(facts: dict) -> str:
    """The devices of a run, in a few words."""
    kinds = {name.split(":")[0] for name in facts["devices"]}
    split = any("." in name.split(" ")[0] for name in facts["devices"])
    return f"{facts['device_count']} {'/'.join(sorted(kinds))}{' logical' if split else ''}"


def draw_scaling(study: Study, runs: list[dict], picture: Path) -> None:
    """Times of both versions over the number of devices, with intervals of 95 %."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    at = range(len(runs))
    against = {run["against"] for run in runs} - {""}
    rows = (
        ("two_model", f"two models: kernels, messages by {', '.join(sorted(against))}", "o-"),
        ("communication", "of that: messages", "s--"),
        ("kernel", "one kernel that puts and notifies", "^-"),
    )
    for name, text, style in rows:
        if not against and name != "kernel":
            continue
        values = [[1e3 * run[name][key] for run in runs] for key in ("median", "lower", "upper")]
        (line,) = axes.plot(at, values[0], style, label=text)
        axes.fill_between(at, values[1], values[2], color=line.get_color(), alpha=0.25)
    axes.set_xticks(list(at), [label(run) for run in runs], rotation=20)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"time of {runs[0]['steps']} steps, ms")
    count = len(runs[0]["kernel"]["samples"])
    interval = "95 % interval" if count > 5 else "range"
    runs_of = f"median and {interval} of {count} runs" if count > 1 else "one run"
    axes.set_title(f"{study.name}: {runs_of}, the same work for each device")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def table(study: Study, runs: list[dict]) -> str:
    """The seed's claim, and the figures that were measured here."""
    lines = [f"{'devices':<18} {'two models':>12} {'messages':>10} {'one kernel':>12} {'ratio':>7}"]
    for run in runs:
        kernel, other = run["kernel"]["median"], run["two_model"]["median"]
        lines.append(
            f"{label(run):<18} {1e3 * other:>9.4g} ms {1e3 * run['communication']['median']:>7.4g}"
            f" ms {1e3 * kernel:>9.4g} ms {other / kernel if kernel else 0:>7.3g}"
        )
    lines.append("ratio: how many times as fast one kernel is; the same work for each device")
    if any("cpu" in label(run) for run in runs):
        lines.append("CPU devices share the host's cores, so more devices take longer")
    return "\n".join([*lines, f"the dCUDA thesis, on GPUs: {study.claim}"])


def measure(study: Study, options: argparse.Namespace, others: list[str]) -> int:
    """The figure: runs the program for each number of devices. Returns an exit status."""
    binary, available = front.find_binary(study.name), gpus()
    specs = options.series or [devices_of(count, available) for count in study.counts]
    figures, picture = options.json, options.out / "figure.png"
    for output in (figures, picture):
        front.writable(output).unlink(missing_ok=True)
    runs, file = [], front.writable(options.out / "run.json")
    for spec in specs:
        file.unlink(missing_ok=True)
        print(f"--- {spec}", flush=True)
        command = [str(binary), "--devices", spec, *others, "--json", str(file)]
        if status := front.run_binary(command):
            print(f"{study.name}: --devices {spec} failed: see its message above", file=sys.stderr)
            return status if status in (1, 2) else 1
        runs.append(json.loads(file.read_text()))
    file.unlink(missing_ok=True)
    whole = {"study": study.name, "claim": study.claim, "runs": runs}
    part = figures.with_suffix(".part")
    part.write_text(json.dumps(whole, indent=1) + "\n")
    part.replace(figures)  # an interrupted run leaves no half of it
    print(f"\n{table(study, runs)}\n\nfigures     {figures}")
    if options.plot:
        draw_figure(study, whole, picture)
    return 0


def oversubscribe(study: Study, options: argparse.Namespace, others: list[str]) -> int:
    """Runs the one kernel with more ranks than multiprocessors or cores. Returns an exit status.

    While some ranks wait, others compute: that hides latency, as far as they fit.
    """
    binary, available = front.find_binary(study.name), gpus()
    least = study.devices or 1
    specs = options.series or [devices_of(count, available) for count in (least, 2 * least)]
    if study.devices and not options.series:  # a square
        specs = [devices_of(1, available), devices_of(least, available)]
    figures, picture = options.json, options.out / "oversubscribe.png"
    file = front.writable(options.out / "run.json")
    for output in (figures, picture):
        front.writable(output).unlink(missing_ok=True)
    rows: list[dict] = []
    for spec in specs:
        usual = 0
        for factor in (1, 2, 4):
            file.unlink(missing_ok=True)
            print(f"--- {spec}, {factor} times as many ranks", flush=True)
            command = [str(binary), "--devices", spec, "--against", "none", *others]
            command += ["--ranks", str(usual * factor)] if usual else []
            status = front.run_binary([*command, "--json", str(file)])
            if status and not usual:
                return status if status in (1, 2) else 1
            if status:
                print(f"{spec}: {factor} times as many ranks are left out: see the message above")
                continue
            rows.append(json.loads(file.read_text()) | {"factor": factor, "spec": spec})
            usual = usual or rows[-1]["ranks_per_device"]
    file.unlink(missing_ok=True)
    front.writable(figures).write_text(json.dumps({"study": study.name, "runs": rows}) + "\n")
    print(f"\n{'devices':<20} {'ranks':>6} {'one kernel':>14}")
    for row in rows:
        median = 1e3 * row["kernel"]["median"]
        print(f"{row['spec']:<20} {row['ranks_per_device']:>6} {median:>11.4g} ms")
    print(f"\nfigures     {figures}")
    if options.plot:
        try:
            draw_oversubscription(study, rows, picture)
            print(f"picture     {picture}")
        except ImportError as error:
            front.explain_no_picture(error, f"./run app {study.name} --oversubscribe")
    return 0


def draw_oversubscription(study: Study, rows: list[dict], picture: Path) -> None:
    """Times over ranks for each multiprocessor or core, a line for each set of devices."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for spec in dict.fromkeys(row["spec"] for row in rows):
        mine = [row for row in rows if row["spec"] == spec]
        values = [
            [1e3 * row["kernel"][key] for row in mine] for key in ("median", "lower", "upper")
        ]
        (line,) = axes.plot([row["factor"] for row in mine], values[0], "o-", label=spec)
        axes.fill_between(
            [row["factor"] for row in mine],
            values[1],
            values[2],
            color=line.get_color(),
            alpha=0.25,
        )
    axes.set_xticks([1, 2, 4])
    axes.set_xlabel("ranks, of the usual number (one on each multiprocessor of a GPU)")
    axes.set_ylabel(f"time of {rows[0]['steps']} steps in one kernel, ms")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{study.name}: more ranks than multiprocessors")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=130)
    plt.close(figure)


def draw_figure(study: Study, whole: dict, picture: Path) -> None:
    """Draws the figure, or prints how it can be drawn."""
    try:
        draw_scaling(study, whole["runs"], picture)
    except ImportError as error:
        front.explain_no_picture(error, f"./run app {study.name} --figure")
        return
    print(f"picture     {picture}")


def draw_again(study: Study, file: Path, folder: Path) -> bool:
    """Draws the figures that --figure or --oversubscribe wrote; False if they are another run's."""
    try:
        facts = json.loads(file.read_text())
    except (OSError, ValueError):
        return False  # the front says what is wrong
    runs = facts.get("runs") if isinstance(facts, dict) else None
    if not runs:
        if study.draw is None:
            raise front.Misuse(
                f"{file}: there is no picture of a single run of {study.name}; --figure draws one"
            )
        return False
    front.writable(folder / "x")
    if "factor" in runs[0]:
        draw_oversubscription(study, runs, folder / "oversubscribe.png")
        print(f"picture     {folder / 'oversubscribe.png'}")
    else:
        draw_figure(study, facts, folder / "figure.png")
    return True


def one_run(study: Study, arguments: list[str]) -> int:
    """One run, checked. Returns an exit status."""
    app = front.App(
        study.name,
        study.description,
        study.example,
        pictures=study.pictures,
        draw=study.draw or (lambda _facts, _folder: []),
    )
    options, _ = front.parse(app, [word for word in arguments if word not in ("-h", "--help")])
    if options.draw and draw_again(study, options.draw, options.out):
        return 0
    more = [f"--{name.partition('.')[0]}={{out}}/{name}" for name in study.files]
    status = front.run(app, arguments, ("--output={out}/result.npy", *more))
    options, others = front.parse(app, arguments)
    if status != 0 or options.draw or "--no-check" in others:
        return status
    try:
        found = study.check(json.loads(options.json.read_text()), options.out)
    except ImportError as error:
        print(f"reference   not compared: {error}; ./run setup installs it", file=sys.stderr)
        return 0
    except Wrong as error:
        print(f"reference   DIFFERS: {error}")
        return 1
    print(f"reference   {found}")
    return 0


def with_devices(study: Study, arguments: list[str]) -> list[str]:
    """The arguments, with as many devices as the study wants, unless the user has named some."""
    named = any(word.partition("=")[0] in ("--devices", "--draw") for word in arguments)
    if study.devices == 0 or named or "MESHPOST_DEVICES" in os.environ:
        return arguments
    return [*arguments, "--devices", devices_of(study.devices, gpus())]


def run(study: Study, arguments: list[str]) -> int:
    """The whole front. Returns an exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--figure", action="store_true")
    parser.add_argument("--oversubscribe", action="store_true")
    parser.add_argument("--series", type=shlex.split)
    parser.add_argument("--out", type=Path, default=Path("out", study.name))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--no-plot", dest="plot", action="store_false")
    options, others = parser.parse_known_args(arguments)
    if options.oversubscribe:
        if options.figure:
            raise front.Misuse("--figure and --oversubscribe are two figures; ask for one")
        options.json = options.json or options.out / "oversubscribe.json"
        return oversubscribe(study, options, others)
    if not options.figure:
        if options.series is not None:
            raise front.Misuse(
                "--series needs --figure or --oversubscribe; for one run, name the devices by "
                "--devices"
            )
        if {"-h", "--help"} & set(others):
            print(
                f"{study.description}\n\n./run app {study.name} --figure "
                '[--series "SPEC SPEC ..."] [OPTIONS]: both versions for several numbers of\n'
                "devices, in one picture with a table; --series names them, as for --devices\n\n"
                f"./run app {study.name} --oversubscribe: one, two and four ranks on each "
                "multiprocessor or core\n"
            )
        return one_run(study, with_devices(study, arguments))
    options.json = options.json or options.out / "figure.json"
    return measure(study, options, others)


def main(study: Study) -> int:
    """The program of a front; returns its exit status."""
    return front.guarded(study.name, lambda: run(study, sys.argv[1:]))
