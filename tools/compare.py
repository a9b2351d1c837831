#!/usr/bin/env python3
"""Measures meshpost, raw CUDA, NCCL and NVSHMEM in one run: a table, JSON and a plot.

bench/compare/README.md explains the rows and their requirements. Table and JSON list the
measurements that are not possible here, with the reason and a remedy. Each program has a time
limit. If one exceeds it, or fails, the rows that it has printed are kept, and the others still run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import git_revision
from compare_meshpost import run_meshpost, systems
from compare_peers import ENVIRONMENT, PEERS, Missing, build, read, run_peer
from compare_petsc import row_of as petsc_row
from compare_studies import DEVICES, STUDIES, row_of
from compare_studies import Missing as NoStudy
from compare_table import table

KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, 64, 512, KIB, 4 * KIB, 8 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB)
# Without GPUs, unless more is requested: there is nothing to compare with, and CPU devices share
# the cores.
CPU_SIZES, CPU_DEVICES = (8, 512, 8 * KIB, 64 * KIB), [2]
LANES = (0, 32)


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def gpu_count() -> int:
    """GPUs that programs may use."""
    there = sum(line.startswith("GPU ") for line in output_of("nvidia-smi", "-L").splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return there if visible is None else min(there, len([g for g in visible.split(",") if g]))


def bytes_of(text: str) -> int:
    """ "64K" and the like as a number."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(i?B)?", text.strip())
    number = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0
    if number == 0 or number % 8:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: a multiple of 8, as 8, 64K or 256M")
    return number


def count_of(text: str) -> int:
    if not text.strip().isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of GPUs: 2 or more, as 2,4,8")
    return int(text)


def listed(of) -> object:
    """For argparse: words with commas between them."""
    return lambda text: sorted({of(one) for one in text.split(",")})


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run compare", description=__doc__.splitlines()[0])
    names = ["meshpost", *(peer.name for peer in PEERS), "plain", "petsc"]
    parser.add_argument("--program", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument(
        "--gpus",
        type=listed(count_of),
        help="2,4,8 unless given; without GPUs so many CPU devices, 2 unless given",
    )
    parser.add_argument("--sizes", type=listed(bytes_of), help="8,64K,256M; of each message")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("out/compare.json"))
    parser.add_argument("--plot", type=Path, default=Path("out/compare.svg"), help="SVG or PNG")
    parser.add_argument(
        "--peers",
        type=lambda text: text.split(","),
        default=names,
        help=f"all of {','.join(names)} unless given; plain: the case studies, meshpost beside "
        "plain OpenMP, or CUDA where there is a GPU; petsc: apps/cg on CPU devices beside PETSc",
    )
    parser.add_argument("--limit", type=float, default=300, help="seconds for each program")
    arguments = parser.parse_args()
    if unknown := set(arguments.peers) - set(names):
        parser.error(f"--peers {','.join(sorted(unknown))}: there are {', '.join(names)}")
    if arguments.repetitions < 1 or arguments.limit <= 0:
        parser.error("repetitions and limit must be positive")
    if arguments.plot.suffix not in (".svg", ".png"):
        parser.error(f"--plot {arguments.plot}: must end with .svg or .png")
    return arguments


class Comparison:
    def __init__(self, arguments: argparse.Namespace):
        self.given = arguments
        self.there = gpu_count()
        self.on_gpus = self.there > 1 and shutil.which("nvcc") is not None
        self.sizes = arguments.sizes or list(SIZES if self.on_gpus else CPU_SIZES)
        self.rows: list[dict] = []
        self.studies: list[dict] = []
        self.cg: dict | None = None  # beside PETSc
        self.missing: list[dict] = []
        self.seen: dict[str, str] = {}  # meshpost's devices
        self.versions = {"meshpost": git_revision()}
        if output_of("git", "status", "--porcelain", "--untracked-files=no"):
            self.versions["meshpost"] += ", modified"
        query = ("nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader")
        gpus = [line.split(", ", 1) for line in output_of(*query).splitlines() if ", " in line]
        if gpus:
            self.versions["driver"] = gpus[0][0]
        if nvcc := re.search(r"release [\d.]+, V([\d.]+)", output_of("nvcc", "--version")):
            self.versions["nvcc"] = nvcc[1]
        self.machine = {
            "date": datetime.date.today().isoformat(),
            "machine": platform.processor() or platform.machine(),
            "system": platform.platform(),
            "devices": "GPUs" if self.on_gpus else "CPU devices",
            "gpus": [name for _, name in gpus],
        }

    def miss(self, what: str, reason: str, remedy: str) -> None:
        self.missing.append({"what": what, "reason": reason, "remedy": remedy})

    def tasks(self) -> list[tuple[str, int]]:
        """Measurements between two GPUs, and with each available number of GPUs."""
        groups = self.given.gpus or ([2, 4, 8] if self.on_gpus else CPU_DEVICES)
        if self.on_gpus:
            for gpus in [gpus for gpus in groups if gpus > self.there]:
                reason = f"this machine has {self.there} GPUs"
                self.miss(f"all systems, {gpus} GPUs", reason, "run it where there are so many")
            groups = [gpus for gpus in groups if gpus <= self.there]
        launches = [("launches", gpus) for gpus in (1, *groups)]
        return [*launches, ("pairs", 2), *(("groups", gpus) for gpus in groups)]

    def meshpost(self, mode: str, gpus: int) -> None:
        kind = "cuda:" + ",".join(map(str, range(gpus))) if self.on_gpus else f"cpu:{gpus}"
        for lanes in LANES:
            what = f"{systems(lanes)}, {mode} of {gpus}"
            print(f"compare: {what}", file=sys.stderr)
            given = self.given
            rows, context, ended = run_meshpost(
                given.program, mode, gpus, kind, lanes, given.repetitions, self.sizes, given.limit
            )
            self.rows += rows
            self.versions["meshpost release"] = context.pop("meshpost", "unknown")
            self.seen |= context
            self.judge(what, "meshpost", ended.problem, bool(rows), "")

    def peer(self, peer, folder: Path, tasks: list[tuple[str, int]]) -> None:
        if not self.on_gpus:
            reason = "no nvcc" if self.there > 1 else f"{self.there or 'no'} GPU"
            self.miss(
                peer.name, reason, "run it on a host with two GPUs or more and the CUDA toolkit"
            )
            return
        try:
            print(f"compare: building {peer.name}", file=sys.stderr)
            program = build(peer, folder, self.given.limit)
        except Missing as missing:
            self.miss(peer.name, missing.reason, missing.remedy)
            return
        for mode, gpus in tasks:
            if mode not in peer.modes:
                continue
            what = f"{peer.name}, {mode} of {gpus}"
            print(f"compare: {what}", file=sys.stderr)
            given = self.given
            ended = run_peer(peer, program, mode, gpus, given.repetitions, self.sizes, given.limit)
            rows, versions, unreadable = read(ended.text)
            self.rows += rows
            self.versions |= versions
            problem = ended.problem
            if unreadable:
                problem = problem or f"{unreadable} of its lines can't be read"
            self.judge(what, peer.name, problem, bool(rows), ended.text)

    def plain(self) -> None:
        kind = "cuda" if self.there and shutil.which("nvcc") else "cpu"  # as ./run builds
        for study in STUDIES:
            what = f"plain, {study.name} on {DEVICES[kind]}"
            print(f"compare: {what}", file=sys.stderr)
            given = self.given
            try:
                self.studies.append(
                    row_of(study, given.program.parents[1], kind, given.repetitions, given.limit)
                )
            except NoStudy as missing:
                self.miss(what, str(missing), "to see it alone: ./run compare --peers plain")
            self.save()

    def petsc(self) -> None:
        print("compare: petsc, cg on CPU devices", file=sys.stderr)
        given = self.given
        try:
            self.cg = petsc_row(given.program.parents[1], given.repetitions, given.limit)
        except Missing as missing:
            self.miss("petsc, cg on CPU devices", missing.reason, missing.remedy)
        self.save()

    def judge(self, what: str, name: str, problem: str, some: bool, text: str) -> None:
        if not problem and not some:
            began = f"; it began: {text.strip()[:80]}" if text.strip() else ""
            problem = f"printed nothing that could be read{began}"
        if problem:
            kept = "; rows it had printed before are kept" if some else ""
            again = f"./run compare --peers {name}, with a longer --limit if it is slow"
            self.miss(what, problem + kept, f"to see it alone: {again}")
        self.save()

    def run(self) -> None:
        tasks = self.tasks()
        self.miss(
            "MSCCL++", "has no program in bench/compare yet", "write bench/compare/mscclpp.cu"
        )
        if "meshpost" in self.given.peers:
            for mode, gpus in tasks:
                self.meshpost(mode, gpus)
        with tempfile.TemporaryDirectory() as folder:
            for peer in PEERS:
                if peer.name in self.given.peers:
                    self.peer(peer, Path(folder), tasks)
        if "plain" in self.given.peers:
            self.plain()
        if "petsc" in self.given.peers:
            self.petsc()

    def result(self) -> dict:
        return {
            **self.machine,
            "meshpost_devices": self.seen,
            "versions": self.versions,
            "environment": ENVIRONMENT,
            "sizes": self.sizes,
            "repetitions": self.given.repetitions,
            "limit_s": self.given.limit,
            "rows": self.rows,
            "studies": self.studies,
            "cg": self.cg,
            "missing": self.missing,
        }

    def save(self) -> None:
        """After each program, so that a batch system that ends the whole leaves the results."""
        self.given.output.parent.mkdir(parents=True, exist_ok=True)
        self.given.output.write_text(json.dumps(self.result(), indent=1) + "\n")


def main() -> int:
    arguments = parse()
    # Programs run in sessions of their own; they must end when this program is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    comparison = Comparison(arguments)
    comparison.run()
    result = comparison.result()
    comparison.save()
    parts = (result["studies"], result["cg"])
    print(table(result["rows"], result["missing"], result["devices"], *parts))
    print("NVLink multicast was off for all: NCCL_NVLS_ENABLE=0, NVSHMEM_DISABLE_NVLS=1.")
    print(f"written: {arguments.output}")
    measured = any("median_us" in row for row in result["rows"])
    different = [row["study"] for row in result["studies"] if not row["identical"]]
    cg = result["cg"]
    if cg and not cg["same_residual"]:
        different.append("cg")
    if different:
        print(f"compare: results differ: {', '.join(different)}", file=sys.stderr)
    status = 0 if (measured or result["studies"] or cg) and not different else 1
    if measured:
        try:
            from compare_plot import draw
        except ImportError as missing:
            print(f"no plot: {missing}; ./run setup installs Matplotlib", file=sys.stderr)
            return status
        arguments.plot.parent.mkdir(parents=True, exist_ok=True)
        draw(result, arguments.plot)
        print(f"written: {arguments.plot}")
    return status


if __name__ == "__main__":
    sys.exit(main())
