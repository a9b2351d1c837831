"""Conjugate gradients on two cores: meshpost's apps/cg on CPU devices beside PETSc with MPI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from compare_peers import SOURCES, Missing, run_limited
from compare_studies import times_of

SIDE, ITERATIONS, CORES = 64, 50, 2
MPIRUN = SOURCES.parents[1] / "tests" / "mpi" / "mpirun.sh"
# Processes that poll are faster on an idle host, and much slower on a busy one. The faster way
# counts.
WAYS = ({}, {"OMPI_MCA_mpi_yield_when_idle": "1"})


def find_petsc() -> list[str]:
    """Options of the compiler. Raises Missing if there is no PETSc."""
    remedy = "install libpetsc-real-dev and libopenmpi-dev, or set PETSC_DIR"
    for tool in ("mpicxx", "mpirun", "pkg-config"):
        if not shutil.which(tool):
            raise Missing(f"found no {tool}", remedy)
    folders = [*Path("/usr/lib/petscdir").glob("petsc*/*-real"), Path("/usr/lib/petsc")]
    if home := os.environ.get("PETSC_DIR"):
        folders = [Path(home), Path(home) / os.environ.get("PETSC_ARCH", "")]
    paths = [str(folder / "lib" / "pkgconfig") for folder in folders]
    found = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "PETSc"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PKG_CONFIG_PATH": ":".join(paths)},
    )
    if found.returncode:
        raise Missing("found no PETSc", remedy)
    return found.stdout.split()


def petsc_of(program: Path, repetitions: int, limit: float) -> dict:
    """The figures of PETSc, of the faster way."""
    best: dict = {}
    for way in WAYS:
        words = (SIDE, ITERATIONS, repetitions)
        command = [str(MPIRUN), str(CORES), str(program), *map(str, words)]
        ended = run_limited([command], limit, [way])
        if ended.problem:
            raise Missing(f"petsc: {ended.problem}", "see that message")
        try:
            lines = [line for line in ended.text.splitlines() if line.startswith("{")]
            facts = json.loads(lines[-1])
            times = times_of(facts["seconds"], facts["iterations"])
        except (IndexError, KeyError, ValueError, TypeError) as error:
            raise Missing(
                f"petsc printed no figures: {error}", "see bench/compare/petsc.cpp"
            ) from error
        if not best or times["median_us"] < best["times"]["median_us"]:
            best = facts | {"times": times | {"environment": way}}
    return best


def meshpost_of(app: Path, repetitions: int, limit: float, folder: Path) -> dict:
    """A mode's figures of apps/cg."""
    figures = folder / "cg.json"
    command = [str(app), "--devices", f"cpu:{CORES}", "--ranks", "1", "--mode", "kernel"]
    command += ["--laplacian", "27", "--grid", f"{SIDE}x{SIDE}x{SIDE}", "--tolerance", "0"]
    command += ["--iterations", str(ITERATIONS), "--repetitions", str(repetitions)]
    ended = run_limited([[*command, "--json", str(figures)]], limit)
    if ended.problem:
        raise Missing(f"cg: {ended.problem}", "see that message")
    run = json.loads(figures.read_text())["runs"][0]
    return {
        "times": times_of(run["iteration"]["samples"], 1),
        "residual": run["residuals"][-1],
    }


def row_of(build: Path, repetitions: int, limit: float) -> dict:
    """Raises Missing if one of the programs has no figures."""
    app = build / "apps" / "cg" / "cg"
    if not app.is_file():
        raise Missing(f"there is no {app}", "./run compare builds it")
    options = find_petsc()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "petsc"
        source = SOURCES / "petsc.cpp"
        command = ["mpicxx", "-std=c++20", "-O2", str(source), "-o", str(program), *options]
        ended = run_limited([command], limit)
        if ended.problem:
            raise Missing(f"{source.name} does not compile: {ended.problem}", "see that message")
        petsc = petsc_of(program, repetitions, limit)
        own = meshpost_of(app, repetitions, limit, folder)
    # Both add in orders of their own, so rounding differs.
    same = abs(own["residual"] / petsc["residual"] - 1) < 1e-6
    return {
        "study": "cg",
        "arguments": f"27-point Laplacian of {SIDE}^3, {ITERATIONS} iterations",
        "cores": CORES,
        "meshpost": own["times"],
        "petsc": petsc["times"],
        "version": petsc["version"],
        "ratio": petsc["times"]["median_us"] / own["times"]["median_us"],
        "same_residual": same,
    }


def lines_of(row: dict | None) -> list[str]:
    """The part of the table."""
    if not row:
        return []
    lines = [f"conjugate gradients on {row['cores']} cores, an iteration: {row['arguments']}"]
    for name, of in (
        ("meshpost, CPU devices", "meshpost"),
        (f"PETSc {row['version']}, MPI", "petsc"),
    ):
        times = row[of]
        lines.append(
            f"{name:<24} {times['median_us']:>10.1f} us  ({times['min_us']:.1f} to "
            f"{times['max_us']:.1f})"
        )
    same = "equal residuals" if row["same_residual"] else "RESIDUALS DIFFER"
    return [*lines, f"ratio: meshpost is {row['ratio']:.2f} times as fast; {same}", ""]
