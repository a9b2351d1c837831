#!/usr/bin/env python3
"""Runs the benchmarks, prints a table of medians and spread, and writes them as JSON.

The JSON holds the machine, the versions and, for each benchmark, the median, the smallest and the
largest time of its repetitions in microseconds, with GB/s if bytes were moved. The program runs
four times: alone, then in jobs of two processes, of four, and of two that act as two nodes. Jobs
run the benchmarks between processes.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TO_US = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


JOBS = ((2, 1), (4, 1), (2, 2))  # processes, and nodes that they act as


def run_benchmarks(command: list[str], pattern: str, repetitions: int) -> dict:
    """Returns Google Benchmark's JSON, without results if no benchmark has such a name."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        command = [
            *command,
            f"--benchmark_filter={pattern}",
            f"--benchmark_repetitions={repetitions}",
            "--benchmark_enable_random_interleaving=false",
            f"--benchmark_out={raw}",
            "--benchmark_out_format=json",
        ]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        text = raw.read_text() if raw.exists() else ""
        if done.returncode != 0:
            program = " ".join(command[:-5])
            sys.exit(f"bench: {program} ended with status {done.returncode}; see its message above")
        return json.loads(text) if text else {"context": {}, "benchmarks": []}


def joining(raw: dict, pattern: str) -> list[dict]:
    """Time of the first World, whose constructor joins the job: once, so there is no spread."""
    name = f"first_world_of_job/processes:{raw['context'].get('processes')}"
    took = raw["context"].get("first_world_us")
    if took is None or not re.search(pattern, name):
        return []
    took = float(took)
    return [{"name": name, "median_us": took, "min_us": took, "max_us": took, "repetitions": 1}]


def summarise(raw: dict) -> list[dict]:
    """One entry for each benchmark: median, min, max in us over its repetitions."""
    runs: dict[str, list[dict]] = {}
    for one in raw["benchmarks"]:
        if one.get("run_type") == "iteration":
            runs.setdefault(one["run_name"], []).append(one)
    rows = []
    for name, repeats in runs.items():
        name = name.removesuffix("/manual_time").removesuffix("/real_time")
        if any(one.get("error_occurred") for one in repeats):
            rows.append({"name": name, "skipped": repeats[0].get("error_message", "")})
            continue
        times = [one["real_time"] * TO_US[one["time_unit"]] for one in repeats]
        row = {
            "name": name,
            "median_us": statistics.median(times),
            "min_us": min(times),
            "max_us": max(times),
            "repetitions": len(times),
        }
        rates = [one["bytes_per_second"] for one in repeats if one.get("bytes_per_second")]
        if rates:
            row["gb_per_s"] = statistics.median(rates) * 1e-9
        rows.append(row)
    return rows


def between_nodes(rows: list[dict], nodes: int) -> list[dict]:
    """Of a job over several nodes, the benchmarks that use the network."""
    parts = ("two_processes", "_job")
    chosen = [row for row in rows if any(part in row["name"] for part in parts)]
    return [{**row, "name": f"{row['name']}/nodes:{nodes}"} for row in chosen]


def print_table(rows: list[dict]) -> None:
    width = max(len(row["name"]) for row in rows)
    print(f"{'benchmark':{width}}  {'median us':>11} {'min':>10} {'max':>10} {'GB/s':>8}")
    for row in rows:
        if "skipped" in row:
            print(f"{row['name']:{width}}  skipped: {row['skipped']}")
            continue
        rate = f"{row['gb_per_s']:8.2f}" if "gb_per_s" in row else " " * 8
        print(
            f"{row['name']:{width}}  {row['median_us']:11.3f} {row['min_us']:10.3f} "
            f"{row['max_us']:10.3f} {rate}"
        )


def git_revision() -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, default=Path("out/bench.json"), help="where to write")
    parser.add_argument("--filter", default=".", help="only benchmarks that match this expression")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    program = arguments.build / "bench" / "meshpost_bench"
    if not program.exists():
        parser.error(f"there is no {program}; build it first (./run bench does)")
    if arguments.repetitions < 1:
        parser.error(f"--repetitions {arguments.repetitions}: it must be at least 1")

    launcher = arguments.build / "apps" / "launch" / "launch"
    if not launcher.exists():
        parser.error(f"there is no {launcher}; build it first (./run bench does)")

    raw, rows = {}, []
    for processes, nodes in ((1, 1), *JOBS):
        job = [] if processes == 1 else [str(launcher), "--no-label", "-n", str(processes)]
        job += [] if nodes == 1 else ["--nodes", str(nodes)]
        one = run_benchmarks([*job, str(program)], arguments.filter, arguments.repetitions)
        more = summarise(one) + joining(one, arguments.filter)
        rows += more if nodes == 1 else between_nodes(more, nodes)
        raw = raw or one
    if not rows:
        sys.exit(f"bench: no benchmark matches '{arguments.filter}'")
    print_table(rows)
    context = {
        key: value
        for key, value in raw["context"].items()
        if key not in ("executable", "caches", "host_name", "processes", "first_world_us")
    }
    result = {
        "date": datetime.date.today().isoformat(),
        "revision": git_revision(),
        "machine": platform.processor() or platform.machine(),
        "system": platform.platform(),
        "devices": os.environ.get("MESHPOST_DEVICES", ""),
        "context": context,
        "results": rows,
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written: {arguments.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
