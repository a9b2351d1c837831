"""Other libraries' programs in bench/compare/: finds their requirements, builds and runs them, and
reads their output."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "bench" / "compare"

# Multicast stays off, so that all systems use the same links in the same way. Kernels are loaded
# before the first one waits for another GPU.
ENVIRONMENT = {
    "NCCL_NVLS_ENABLE": "0",
    "NVSHMEM_DISABLE_NVLS": "1",
    "CUDA_MODULE_LOADING": "EAGER",
}


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str  # of its source file, too
    header: str = ""
    libraries: tuple[str, ...] = ()  # names of files to link with; any version may follow
    wheel: str = ""
    flags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # after the libraries that need them
    # Its measurements: between two GPUs, among any number of them, launches on such a number.
    modes: tuple[str, ...] = ("pairs", "groups")
    process_a_gpu: bool = False


PEERS = (
    Peer("launches", modes=("launches",)),
    Peer("raw", modes=("pairs",)),
    Peer("nccl", "nccl.h", ("libnccl.so",), "nvidia-nccl"),
    Peer(
        "nvshmem",
        "nvshmem.h",
        ("libnvshmem_host.so", "libnvshmem_device.a"),
        "nvidia-nvshmem",
        ("-rdc=true",),
        ("-lcuda",),
        process_a_gpu=True,
    ),
)


class Missing(Exception):
    """Why a peer has no results, and a remedy."""

    def __init__(self, reason: str, remedy: str):
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


# --- building -------------------------------------------------------------------------------------


def python_folders() -> list[Path]:
    """Package folders of this Python and of the one on the PATH, which may differ."""
    folders = [Path(one) for one in sys.path if one]
    if other := shutil.which("python3"):
        code = "import sys; print(*sys.path[1:], sep='\\n')"
        done = subprocess.run([other, "-c", code], capture_output=True, text=True, check=False)
        folders += [Path(one) for one in done.stdout.splitlines() if one]
    return folders


def package_folders(name: str) -> list[tuple[Path, Path]]:
    """Pairs of folders that may hold the headers and the libraries, best first."""
    pairs = []
    if home := os.environ.get(f"{name.upper()}_HOME"):
        pairs += [(Path(home) / "include", Path(home) / lib) for lib in ("lib", "lib64")]
    for folder in python_folders():
        pairs.append((folder / "nvidia" / name / "include", folder / "nvidia" / name / "lib"))
    system = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
    pairs += [(Path("/usr/include"), system), (Path("/usr/include"), Path("/usr/lib64"))]
    if nvcc := shutil.which("nvcc"):
        toolkit = Path(nvcc).resolve().parents[1]
        pairs.append((toolkit / "include", toolkit / "lib64"))
    for folder in sorted(Path("/usr/include").glob(f"{name}_*"), reverse=True):  # by CUDA version
        pairs.append((folder, system / name / folder.name.partition("_")[2]))
    return pairs


def find_package(peer: Peer) -> list[str]:
    """Options of the compiler for the first folders that hold all that the peer needs."""
    if not peer.header:
        return []
    for include, lib in package_folders(peer.name):
        found = [sorted(lib.glob(library + "*")) for library in peer.libraries]
        if (include / peer.header).is_file() and all(found):
            # nvcc links GPU code from static libraries only if they are given as files.
            best = [files[0] for files in found]
            names = [str(f) if f.suffix == ".a" else f"-l:{f.name}" for f in best]
            return [f"-I{include}", f"-L{lib}", *names, "-Xlinker", f"-rpath={lib}"]
    raise Missing(
        f"found no {peer.header} with {' and '.join(peer.libraries)}",
        f".venv/bin/python -m pip install {peer.wheel}-cu13 (or -cu12, as the CUDA toolkit is), "
        f"or set {peer.name.upper()}_HOME",
    )


def build(peer: Peer, folder: Path, limit: float) -> Path:
    options = find_package(peer)
    program = folder / peer.name
    source = SOURCES / f"{peer.name}.cu"
    command = ["nvcc", "-std=c++20", "-O2", "-arch=native", *peer.flags, str(source)]
    ended = run_limited([[*command, "-o", str(program), *options, *peer.links]], limit)
    if ended.problem:
        raise Missing(f"{source.name} does not compile: {ended.problem}", "see that message")
    return program


# --- running --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Ended:
    text: str  # output of all processes
    problem: str  # empty if all ended well


def end(process: subprocess.Popen) -> None:
    """Ends a process and its children. A process blocked in the driver is left behind."""
    for number, timeout in ((signal.SIGTERM, 5), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def last_lines(text: str) -> str:
    return " / ".join(text.strip().splitlines()[-3:])[-400:]


def run_limited(
    commands: list[list[str]], limit: float, environments: list[dict[str, str]] | None = None
) -> Ended:
    """Runs processes side by side until all have ended, one has failed, or the limit is over."""
    environments = environments or [{}] * len(commands)
    with tempfile.TemporaryDirectory() as folder:
        processes, outputs, errors = [], [], []
        for i, (command, more) in enumerate(zip(commands, environments, strict=True)):
            outputs.append(Path(folder) / f"{i}.out")
            errors.append(Path(folder) / f"{i}.err")
            with outputs[-1].open("wb") as output, errors[-1].open("wb") as error:
                environment = os.environ | ENVIRONMENT | more
                processes.append(
                    subprocess.Popen(
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=error,
                        env=environment,
                        start_new_session=True,
                    )
                )
        problem = watch(processes, limit)
        texts = [file.read_text(errors="replace") for file in outputs]
        said = last_lines("\n".join(file.read_text(errors="replace") for file in errors))
    if problem and said:
        problem += f": {said}"
    return Ended("\n".join(texts), problem)


def watch(processes: list[subprocess.Popen], limit: float) -> str:
    """Waits for all, ends the remaining ones, and returns the error."""
    deadline = time.monotonic() + limit
    problem = ""
    try:
        while None in (states := [process.poll() for process in processes]):
            if any(states) and not problem:  # others may print why, or wait for ever
                problem = "a process failed"
                deadline = min(deadline, time.monotonic() + 5)
            if time.monotonic() > deadline:
                problem = problem or f"not done after {limit:g} s, so it was ended"
                break
            time.sleep(0.02)
    finally:
        status = next((process.returncode for process in processes if process.returncode), 0)
        for process in processes:
            if process.poll() is None:
                end(process)
    if status:
        return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return problem


def run_peer(
    peer: Peer,
    program: Path,
    mode: str,
    gpus: int,
    repetitions: int,
    sizes: list[int],
    limit: float,
) -> Ended:
    command = [str(program), mode, str(gpus), str(repetitions), *map(str, sizes)]
    count = gpus if peer.process_a_gpu else 1
    with tempfile.TemporaryDirectory() as folder:
        meeting = {"COMPARE_MEETING": str(Path(folder) / "meeting")}
        environments = [meeting | {"COMPARE_PROCESS": str(process)} for process in range(count)]
        return run_limited([command] * count, limit, environments)


# --- reading --------------------------------------------------------------------------------------


def summarised(row: dict, times: list[float]) -> dict:
    """The row with the median and the spread of its times, in us, and GB/s where bytes moved."""
    median = statistics.median(times)
    row = {
        **row,
        "median_us": median,
        "min_us": min(times),
        "max_us": max(times),
        "repetitions": len(times),
    }
    if row["bytes"] and median > 0:  # all_reduce: bytes of one vector, however many blocks
        moved = row["bytes"] * (max(row["blocks"], 1) if row["measure"] != "all_reduce" else 1)
        row["gb_per_s"] = moved / median * 1e-3
    return row


def row_of(one: dict) -> dict | None:
    """A row as programs print it, with its times summarised; None if it is no row."""
    row = {key: one.get(key) for key in ("system", "measure", "timed", "gpus", "blocks", "bytes")}
    words, numbers = list(row.values())[:3], list(row.values())[3:]
    if not all(isinstance(word, str) for word in words):
        return None
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return None
    if isinstance(one.get("skipped"), str):
        return {**row, "skipped": one["skipped"]}
    times = one.get("us")
    if not isinstance(times, list) or not times:
        return None
    if not all(isinstance(us, int | float) and math.isfinite(us) and us >= 0 for us in times):
        return None
    return summarised(row, times)


def read(text: str) -> tuple[list[dict], dict[str, str], int]:
    """Rows, versions, and the number of lines that look like a row but are none. Libraries print to
    standard output, too, so lines that do not begin like ours are skipped."""
    rows, versions, unreadable = [], {}, 0
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            unreadable += 1
            continue
        if "version_of" in one:
            versions[str(one["version_of"])] = str(one.get("version"))
        elif row := row_of(one):
            rows.append(row)
        else:
            unreadable += 1
    return rows, versions, unreadable
