"""The front that the case studies share: one run that is checked, or a figure over devices."""

from __future__ import annotations

import argparse
import dataclasses
import functools
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


def scaling(runs: list[dict]) -> str:
    """What stays the same when devices are added."""
    return "in all" if runs[0].get("strong") else "for each device"


def table(study: Study, runs: list[dict]) -> str:
    """The seed's claim, and the figures that were measured here."""
    lines = [f"{'devices':<18} {'two models':>12} {'messages':>10} {'one kernel':>12} {'ratio':>7}"]
    for run in runs:
        kernel, other = run["kernel"]["median"], run["two_model"]["median"]
        lines.append(
            f"{label(run):<18} {1e3 * other:>9.4g} ms {1e3 * run['communication']['median']:>7.4g}"
            f" ms {1e3 * kernel:>9.4g} ms {other / kernel if kernel else 0:>7.3g}"
        )
    lines.append(f"ratio: how many times as fast one kernel is; the same work {scaling(runs)}")
    if any("cpu" in label(run) for run in runs):
        lines.append("CPU devices share the host's cores, so more devices take longer")
    return "\n".join([*lines, f"the dCUDA thesis, on GPUs: {study.claim}"])


def app_of(study: Study, draw: Callable[[dict, Path], list[Path]]) -> front.App:
    """What the fronts of all applications share."""
    return front.App(
        study.name, study.description, study.example, pictures=study.pictures, draw=draw
    )


def draw(study: Study, facts: dict, folder: Path) -> list[Path]:
    """Draws figures of any kind: of --figure, of --oversubscribe, or of one run."""
    if runs := facts.get("runs"):
        import study_picture

        picture = folder / ("oversubscribe.png" if "factor" in runs[0] else "figure.png")
        if "factor" in runs[0]:
            study_picture.draw_oversubscription(study.name, runs, picture)
        else:
            study_picture.draw_scaling(study.name, runs, picture)
        return [picture]
    if study.draw is None:
        raise front.Misuse(
            f"there is no picture of a single run of {study.name}; --figure draws one"
        )
    return study.draw(facts, folder)


def run_once(command: list[str], file: Path) -> tuple[int, dict]:
    """Runs the program. Returns its exit status, and its figures if that is 0."""
    file.unlink(missing_ok=True)
    status = front.run_binary([*command, "--json", str(file)])
    facts = {} if status else json.loads(file.read_text())
    file.unlink(missing_ok=True)
    return status if status in (0, 1, 2) else 1, facts


def finish(study: Study, options: argparse.Namespace, runs: list[dict], text: str) -> int:
    """Writes, prints and draws the figures of several runs. Returns an exit status."""
    whole = {"study": study.name, "claim": study.claim, "runs": runs}
    front.write_figures(options.json, whole)
    print(f"\n{text}\n\nfigures     {options.json}")
    if options.plot:
        front.draw(app_of(study, functools.partial(draw, study)), options.json, options.out)
    return 0


def measure(study: Study, options: argparse.Namespace, others: list[str]) -> int:
    """The figure: runs the program for each number of devices. Returns an exit status."""
    outputs = [front.writable(file) for file in (options.json, options.out / "figure.png")]
    return front.replacing(outputs, lambda: measured(study, options, others))


def measured(study: Study, options: argparse.Namespace, others: list[str]) -> int:
    binary, available = front.find_binary(study.name), gpus()
    runs = []
    for spec in options.series or [devices_of(count, available) for count in study.counts]:
        print(f"--- {spec}", flush=True)
        command = [str(binary), "--devices", spec, *others]
        status, facts = run_once(command, options.out / "run.json")
        if status:
            print(f"{study.name}: --devices {spec} failed: see its message above", file=sys.stderr)
            return status
        runs.append(facts)
    return finish(study, options, runs, table(study, runs))


def oversubscribe(study: Study, options: argparse.Namespace, others: list[str]) -> int:
    """Runs the one kernel with more ranks than multiprocessors or cores. Returns an exit status.

    While some ranks wait, others compute: that hides latency, as far as they fit.
    """
    outputs = [front.writable(file) for file in (options.json, options.out / "oversubscribe.png")]
    return front.replacing(outputs, lambda: oversubscribed(study, options, others))


def oversubscribed(study: Study, options: argparse.Namespace, others: list[str]) -> int:
    binary, available = front.find_binary(study.name), gpus()
    counts = (1, study.devices or 2)  # `devices`: a square
    runs: list[dict] = []
    for spec in options.series or [devices_of(count, available) for count in counts]:
        usual = 0
        for factor in (1, 2, 4):
            print(f"--- {spec}, {factor} times as many ranks", flush=True)
            command = [str(binary), "--devices", spec, "--against", "none", *others]
            command += ["--ranks", str(usual * factor)] if usual else []
            status, facts = run_once(command, options.out / "run.json")
            if status and not usual:
                return status
            if status:
                print(f"{spec}: {factor} times as many ranks are left out: see the message above")
                continue
            runs.append(facts | {"factor": factor, "spec": spec})
            usual = usual or facts["ranks_per_device"]
    lines = [f"{'devices':<20} {'ranks':>6} {'one kernel':>14}"]
    for row in runs:
        median = 1e3 * row["kernel"]["median"]
        lines.append(f"{row['spec']:<20} {row['ranks_per_device']:>6} {median:>11.4g} ms")
    return finish(study, options, runs, "\n".join(lines))


def one_run(study: Study, arguments: list[str]) -> int:
    """One run, checked. Returns an exit status."""
    drawn = study.draw or (lambda _facts, _folder: [])
    if any(word.partition("=")[0] == "--draw" for word in arguments):
        drawn = functools.partial(draw, study)
    app = app_of(study, drawn)
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
