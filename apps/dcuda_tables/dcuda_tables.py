#!/usr/bin/env python3
"""The thesis's tables of dCUDA beside this machine's figures: latency, host, bandwidth.

Started by `./run app dcuda_tables`. Starts the C++ program in jobs: alone, twice on this node, and
twice as two nodes with each network engine. Each job is started several times, in turns.

Exit status: 0 done, 1 a job or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "common")]
import front
import study
import tables

JOBS = ("device", "node", "ofi", "mpi")
PICTURE = "dcuda_tables.png"


def draw(facts: dict, folder: Path) -> list[Path]:
    """Draws the fits and the latencies."""
    import picture

    picture.draw(facts, folder / PICTURE)
    return [folder / PICTURE]


APP = front.App(
    "dcuda_tables",
    "Latency, host-device round trip and bandwidth of notified access, beside the thesis's.\n"
    "--jobs device,node,ofi,mpi: only these. --starts N: of each job (default 6).",
    "--jobs device,node --starts 6",
    pictures=(PICTURE,),
    draw=draw,
)


def command_of(job: str, binary: Path) -> list[str]:
    """What starts a job. MESHPOST_NODE of the caller must not separate processes of a node."""
    launch = binary.parents[1] / "launch" / "launch"
    two = [str(launch), "--no-label", "-n", "2"]
    mpirun = [str(front.ROOT / "tests" / "mpi" / "mpirun.sh"), "2"]
    return ["env", "-u", "MESHPOST_NODE"] + {
        "device": [str(binary)],
        "node": [*two, str(binary)],
        # A network takes ten times as long, and more. The user's --rounds comes later, and counts.
        "ofi": ["MESHPOST_NET=ofi", *two, "--nodes", "2", str(binary), "--rounds", "200"],
        "mpi": [*mpirun, str(binary), "--mpi", "--rounds", "200"],
    }[job]


def engines_of(binary: Path) -> list[str]:
    """The network engines that the program was built with."""
    asked = subprocess.run(
        [str(binary), "--engines"], capture_output=True, text=True, timeout=60, check=False
    )
    if asked.returncode:
        raise front.Failure(f"{binary} --engines failed: {asked.stderr.strip()}")
    return asked.stdout.split()


def reasons_against(jobs: list[str], binary: Path, devices_named: bool) -> dict[str, str]:
    """The jobs that can't be started here, each with the reason."""
    engines, missing = engines_of(binary), {}
    for job in ("ofi", "mpi"):
        if job not in engines:
            missing[job] = "the program was built without this engine"
    if "mpi" in engines and not shutil.which("mpirun"):
        missing["mpi"] = "there is no mpirun; install openmpi-bin"
    on_gpus = "/cuda/" in str(binary) and not devices_named
    if on_gpus and study.gpus() == 1:
        for job in JOBS[1:]:
            missing[job] = "it needs a GPU for each of two processes, and there is one"
    return {job: reason for job, reason in missing.items() if job in jobs}


def measure(options: argparse.Namespace, others: list[str]) -> int:
    """Starts all jobs in turns. Returns an exit status; figures are written only if all is well."""
    if os.environ.get("MESHPOST_APP_LAUNCH"):
        raise front.Misuse("--processes: it starts its jobs itself; leave --processes out")
    outputs = [front.writable(file) for file in (options.json, options.out / PICTURE)]
    return front.replacing(outputs, lambda: measured(options, others))


def measured(options: argparse.Namespace, others: list[str]) -> int:
    binary = front.find_binary(APP.name)
    named = any(word.partition("=")[0] == "--devices" for word in others)
    missing = reasons_against(options.jobs, binary, named or "MESHPOST_DEVICES" in os.environ)
    found = {job: [] for job in options.jobs if job not in missing}
    file = options.out / "job.json"
    for start in range(options.starts):
        for job, runs in found.items():
            print(f"--- {job}, start {start + 1} of {options.starts}", flush=True)
            file.unlink(missing_ok=True)
            command = [*command_of(job, binary), *others, "--json", str(file.resolve())]
            status = front.run_binary(command)
            if status or not file.exists():
                print(f"dcuda_tables: job {job} failed: see its message above", file=sys.stderr)
                return status if status in (1, 2) else 1
            runs.append(json.loads(file.read_text()))
    file.unlink(missing_ok=True)
    facts = {"starts": options.starts, "missing": missing, "jobs": found}
    front.write_figures(options.json, facts)
    print(f"\n{tables.text(facts)}\n\nfigures     {options.json}")
    if options.plot:
        front.draw(APP, options.json, options.out)
    return 0


def jobs_of(text: str) -> list[str]:
    """The jobs that --jobs names."""
    jobs = list(dict.fromkeys(text.split(",")))
    for job in jobs:
        if job not in JOBS:
            raise front.Misuse(f"--jobs {text}: there is no job '{job}'; name {', '.join(JOBS)}")
    return jobs


def run(arguments: list[str]) -> int:
    """The whole front. Returns an exit status."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--starts", default="6")
    own, rest = parser.parse_known_args(arguments)
    options, others = front.parse(APP, rest)
    if options.draw:
        if others:
            raise front.Misuse(
                f"--draw runs no program, so {others[0]} has no effect: leave it out"
            )
        facts = json.loads(options.draw.read_text())
        print(tables.text(facts))
        front.draw(APP, options.draw, options.out)
        return 0
    if not own.starts.isdigit() or not 1 <= int(own.starts) <= 1000:
        raise front.Misuse(f"--starts {own.starts}: it is a number from 1 to 1000")
    options.jobs, options.starts = jobs_of(own.jobs), int(own.starts)
    return measure(options, others)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    return front.guarded(APP.name, lambda: run(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    sys.exit(main())
