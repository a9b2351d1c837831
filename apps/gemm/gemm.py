#!/usr/bin/env python3
"""Multiplies matrices that are spread over devices, and draws rate and speed-up against their size.

Started by `./run app gemm`. Runs the C++ program `gemm`, which takes all other options, measures
and checks. Then draws its figures. With --variants it runs the program several times, over several
processes and in one, and draws all rates in one picture.

Exit status: 0 done, 1 the program or a check failed, 2 a wrong argument, 130 interrupted.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
import front

APP = front.App(
    "gemm",
    "C = A B on several devices, timed, checked and drawn.",
    "--devices cpu:4 --sweep 500:2000:500 --type double",
    pictures=("gemm.png",),
)


HELP = """\
  --variants: the same products over the processes of --processes without and with IPC, and in one
    process without and with P2P (CPU devices: once). All are curves of one picture.
"""


def in_one_process(names: list[str]) -> str:
    """--devices of one process that has the devices of a job: "process 1's cuda:0 (A model)"."""
    devices = [name.partition(" (")[0].rpartition("'s ")[2] for name in names]
    kind = devices[0].split(":")[0]
    if kind == "cpu":
        return f"cpu:{len(devices)}"
    shares = collections.Counter(device.split(":")[1].split(".")[0] for device in devices)
    if len(set(shares.values())) > 1:
        raise front.Misuse(
            f"the processes have {', '.join(devices)}: one process can't split them alike; "
            "give each GPU to as many processes"
        )
    (split,) = set(shares.values())
    return f"{kind}:{','.join(sorted(shares, key=int))}{f'*{split}' if split > 1 else ''}"


def without_devices(arguments: list[str]) -> list[str]:
    """The arguments but --devices and its value."""
    kept, skip = [], False
    for word in arguments:
        if not skip and word.partition("=")[0] != "--devices":
            kept.append(word)
        skip = word == "--devices"
    return kept


def variants(arguments: list[str]) -> int:
    """Runs and draws all variants; returns an exit status."""
    options, others = front.parse(APP, arguments)
    for word in others:
        if word.partition("=")[0] in ("--ipc", "--peer"):
            raise front.Misuse(f"--variants sets --ipc and --peer itself: leave {word} out")
    if options.draw:
        raise front.Misuse("--draw runs no program: leave --variants out")
    if not front.launched([]):
        raise front.Misuse(
            "--variants compares processes: say how many, as in "
            "./run app gemm --processes 2 --variants"
        )
    outputs = [options.json, *(options.out / name for name in APP.pictures)]
    return front.replacing(
        [front.writable(output) for output in outputs], lambda: compared(options, others)
    )


def compared(options: argparse.Namespace, others: list[str]) -> int:
    binary = front.find_binary(APP.name)
    file = front.writable(options.out / "variant.json")
    found, failed = [], False

    def run(name: str, given: list[str], *, launch: bool) -> int:
        nonlocal failed
        file.unlink(missing_ok=True)
        print(f"--- {name}", flush=True)
        status = front.run_binary([str(binary), *given, "--json", str(file)], launch=launch)
        if file.exists():
            found.append({"name": name, "report": json.loads(file.read_text())})
            failed = failed or status != 0  # a check failed: its figures are kept
            return 0
        print(f"{APP.name}: the variant '{name}' failed: see its message above", file=sys.stderr)
        return status if status in (1, 2) else 1

    if status := run("processes without IPC", [*others, "--ipc", "off"], launch=True):
        return status
    if status := run("processes with IPC", [*others, "--ipc", "on"], launch=True):
        return status
    devices = in_one_process(found[0]["report"]["devices"])
    alone = [*without_devices(others), "--devices", devices]
    single = {"one process": "on"}
    if not devices.startswith("cpu"):
        single = {"one process without P2P": "off", "one process with P2P": "on"}
    for name, peer in single.items():
        if status := run(name, [*alone, "--peer", peer], launch=False):
            return status
    file.unlink(missing_ok=True)
    front.write_figures(options.json, {"variants": found})
    print(f"\nfigures     {options.json}")
    if options.plot:
        front.draw(APP, options.json, options.out)
    return int(failed)


def run(arguments: list[str]) -> int:
    """Runs one of the two; returns an exit status."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
    elif "--variants" in arguments:
        return variants([word for word in arguments if word != "--variants"])
    return front.run(APP, arguments)


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    return front.guarded(APP.name, lambda: run(given))


if __name__ == "__main__":
    sys.exit(main())
