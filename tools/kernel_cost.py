#!/usr/bin/env python3
"""Prints the resources of a multiprocessor that each operation takes, by the CUDA compiler (-Xptxas
-v).

There is one kernel for each operation, with and without lanes. Prints registers, stack and spilled
bytes of a thread, and shared memory of a rank. Also prints the number of ranks of 256 threads for
which a multiprocessor has registers. Needs nvcc, no GPU.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REGISTERS = 65536  # of a multiprocessor
WARP, CHUNK = 32, 256  # allocated to a warp in multiples of this
NAME = re.compile(r"9gpu_entryILb([01])EN.*?\d+([a-z_]+)E")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores")
HEAD = (
    f"{'operation':24}{'lanes':>6}{'registers':>10}{'stack':>7}{'spills':>7}"
    f"{'shared':>7}{'ranks':>6}"
)


def ranks_of(registers: int, threads: int = 256) -> int:
    of_warp = -(-registers * WARP // CHUNK) * CHUNK
    return REGISTERS // of_warp // (threads // WARP)


def costs(report: str) -> list[dict]:
    """The entries of ptxas's report."""
    found, name = [], None
    for line in report.splitlines():
        if "Compiling entry function" in line:
            name = NAME.search(line)
        elif name and (
            frame := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line)
        ):
            stack, spills = map(int, frame.groups())
        elif name and (used := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            registers = int(used[1])
            found.append(
                {
                    "operation": name[2],
                    "lanes": name[1] == "1",
                    "registers": registers,
                    "stack": stack,
                    "spills": spills,
                    "shared": int(shared[1]) if shared else 0,
                    "ranks": ranks_of(registers),
                }
            )
            name = None
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nvcc", default="nvcc", help="the compiler")
    parser.add_argument("--arch", default="sm_90", help="what to compile for")
    parser.add_argument("--json", type=Path, help="also write the table there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            options.nvcc,
            "-std=c++20",
            "-O3",
            f"-arch={options.arch}",
            "-cubin",
            "-Xptxas",
            "-v",
        ]
        command += ["-I", ROOT / "include", "-o", f"{folder}/cubin", ROOT / "bench/cost/kernels.cu"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            sys.exit(
                f"kernel_cost: {options.nvcc} can't be run: {error.strerror}; name one with --nvcc"
            )
    if done.returncode != 0:
        sys.exit(f"{done.stderr}kernel_cost: {options.nvcc} did not compile the kernels")
    rows = sorted(costs(done.stderr), key=lambda row: row["lanes"])
    print(HEAD)
    for row in rows:
        print(
            f"{row['operation']:24}{'yes' if row['lanes'] else 'no':>6}{row['registers']:10}"
            f"{row['stack']:7}{row['spills']:7}{row['shared']:7}{row['ranks']:6}"
        )
    if options.json:
        options.json.write_text(
            json.dumps({"arch": options.arch, "kernels": rows}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
