"""The case studies on one device: one kernel of meshpost beside a plain OpenMP or CUDA program.

Both get the same arguments and write their results, which must be equal to the bit.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import tempfile
from pathlib import Path

from compare_peers import run_limited

VERSIONS = {"cpu": "OpenMP", "cuda": "CUDA"}
DEVICES = {"cpu": "cpu:1", "cuda": "cuda:0"}
# Threads that spin at a barrier are faster on an idle host, and much slower on a busy one. The
# faster way counts.
WAYS = {"cpu": ({}, {"OMP_WAIT_POLICY": "passive"}), "cuda": ({},)}


@dataclasses.dataclass(frozen=True)
class Study:
    name: str  # of the application, too
    steps_option: str
    steps: dict[str, int]  # on a kind of device: few enough for a first look
    arguments: tuple[str, ...] = ()  # of both programs
    # Other programs run one kernel several times. This one does it once, so it is started anew.
    once: bool = False


STUDIES = (
    Study("stencil", "--iterations", {"cpu": 40, "cuda": 200}),
    Study("diffusion", "--iterations", {"cpu": 40, "cuda": 500},
          ("--input", "random:26x320x128:1"), once=True),
    Study("particles", "--steps", {"cpu": 20, "cuda": 100}),
    Study("spmv", "--products", {"cpu": 100, "cuda": 100}),
    Study("power_iteration", "--iterations", {"cpu": 100, "cuda": 100}),
)  # fmt: skip


class Missing(Exception):
    """Why a study has no row."""


def times_of(seconds: list[float], steps: int) -> dict:
    """Of a step, in us."""
    us = [one / steps * 1e6 for one in seconds]
    return {
        "median_us": statistics.median(us),
        "min_us": min(us),
        "max_us": max(us),
        "repetitions": len(us),
    }


def found(facts: dict, *keys: str) -> object:
    """A value of the figures. Raises Missing if there is none."""
    try:
        for key in keys:
            facts = facts[key]
    except (KeyError, TypeError, IndexError):
        raise Missing(f"its figures have no {'.'.join(keys)}") from None
    return facts


def figures(
    command: list[str], limit: float, folder: Path, name: str, way: dict | None = None
) -> tuple[dict, bytes]:
    """What a program writes for --json and --output."""
    figures, result = folder / f"{name}.json", folder / f"{name}.npy"
    command = [*command, "--json", str(figures), "--output", str(result)]
    ended = run_limited([command], limit, [way or {}])
    if ended.problem:
        raise Missing(f"{name}: {ended.problem}")
    try:
        return json.loads(figures.read_text()), result.read_bytes()
    except (OSError, ValueError) as error:
        raise Missing(f"{name} wrote no figures or no result: {error}") from error


def meshpost_of(
    study: Study, program: Path, kind: str, common: list[str], repetitions: int, limit: float,
    folder: Path,
) -> tuple[list[float], list[bytes]]:  # fmt: skip
    """Seconds of each run, and the results."""
    command = [str(program), "--devices", DEVICES[kind], "--no-check", *common]
    if not study.once:
        command += ["--against", "none", "--repetitions", str(repetitions)]
        facts, result = figures(command, limit, folder, "meshpost")
        return found(facts, "kernel", "samples"), [result]
    command += ["--progress", "never"]
    runs = [figures(command, limit, folder, "meshpost") for _ in range(repetitions)]
    return [found(facts, "seconds") for facts, _ in runs], [result for _, result in runs]


def row_of(study: Study, build: Path, kind: str, repetitions: int, limit: float) -> dict:
    """Raises Missing if one of the programs has no figures."""
    programs = {
        "plain": build / "bench/plain/plain",
        "app": build / "apps" / study.name / study.name,
    }
    for program in programs.values():
        if not program.is_file():
            raise Missing(f"there is no {program}, which ./run compare builds with the apps")
    steps = study.steps[kind]
    common = [*study.arguments, study.steps_option, str(steps)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own, results = meshpost_of(
            study, programs["app"], kind, common, repetitions, limit, folder
        )  # fmt: skip
        command = [str(programs["plain"]), study.name, "--on", kind, *common]
        command += ["--repetitions", str(repetitions)]
        ways = []
        for way in WAYS[kind]:
            facts, expected = figures(command, limit, folder, "plain", way)
            results.append(expected)
            ways.append(times_of(found(facts, "plain", "samples"), steps) | {"environment": way})
    own, plain = times_of(own, steps), min(ways, key=lambda times: times["median_us"])
    return {
        "study": study.name,
        "arguments": " ".join(common),
        "device": DEVICES[kind],
        "steps": steps,
        "meshpost": own,
        "against": VERSIONS[kind],
        "plain": plain,
        "ratio": plain["median_us"] / own["median_us"],
        "identical": all(result == expected for result in results),
    }


def lines_of(rows: list[dict]) -> list[str]:
    """The part of the table for the studies."""
    if not rows:
        return []
    against, device = rows[0]["against"], rows[0]["device"]
    cells = [("study", "meshpost us", "min", "max", f"{against} us", "min", "max", "ratio", "")]
    for row in rows:
        times = [f"{row[of][key]:.2f}" for of in ("meshpost", "plain")
                 for key in ("median_us", "min_us", "max_us")]  # fmt: skip
        same = "equal to the bit" if row["identical"] else "DIFFERENT"
        cells.append((row["study"], *times, f"{row['ratio']:.2f}", same))
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = [f"case studies on {device}, a step: one kernel of meshpost beside plain {against}"]
    for line in cells:
        first, *others = (
            cell.ljust(width) if i in (0, 8) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        lines.append("  ".join((first, *others)).rstrip())
    return [*lines, f"ratio: meshpost's speed by that of plain {against}", ""]
