#!/usr/bin/env python3
"""Horizontal diffusion of an elevation model on every rank of every device, checked and drawn.

Started by `./run app diffusion`. Prepares the input, runs the C++ program `diffusion`, repeats its
work in NumPy, and draws the field before and after with the timeline of the ranks.

Exit status: 0 done, 1 a run or a check failed, 2 a wrong argument or input, 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = "jacksboro_fault_dem.npz"
COEFFICIENT = 0.025  # c; without the limiter, steps are stable up to 2/64
HALO = 2  # cells on each side that no step changes: the radius of the stencil
POINT_STEPS_CHECKED = 500_000_000  # NumPy does about 5e7 a second: ten seconds
TYPES = {"float": np.float32, "double": np.float64}


class Misuse(Exception):
    """An argument or an input that can't be used: names the value, the limit and the remedy."""


class Failure(Exception):
    """The program ran, or tried to, and gave no result."""


# --- the reference -----------------------------------------------------------------------------


def step(u: np.ndarray, scheme: str = "gridtools") -> np.ndarray:
    """One step of COSMO's flux-limited horizontal diffusion, as in GridTools' example of that name.

    With i along columns (west to east) and j along rows:

        lap(i,j) = 4 u - ((u(i-1) + u(i+1)) + (u(j-1) + u(j+1)))
        flx(i,j) = lap(i+1) - lap(i), but 0 where flx (u(i+1) - u(i)) > 0
        fly(i,j) = lap(j+1) - lap(j), but 0 where fly (u(j+1) - u(j)) > 0
        out      = u - c ((flx - flx(i-1)) + (fly - fly(j-1))),  c = 0.025

    u: float32 or float64 of shape (..., rows, columns), both at least 5, in any unit.
    Returns a new array of the same shape, type and unit; its outer two cells on each side are u's.

    The brackets are the C++ kernel's too. NumPy rounds every operation by itself, so a kernel
    compiled without fused multiply-adds gives the same bits.
    """
    west, east = u[..., 1:-1, :-2], u[..., 1:-1, 2:]
    south, north = u[..., :-2, 1:-1], u[..., 2:, 1:-1]
    lap = 4 * u[..., 1:-1, 1:-1] - ((west + east) + (south + north))
    if scheme == "cosmo":  # the opposite sign, exactly: this one smooths
        lap = -lap

    flx = lap[..., 1:-1, 1:] - lap[..., 1:-1, :-1]
    np.putmask(flx, flx * (u[..., 2:-2, 2:-1] - u[..., 2:-2, 1:-2]) > 0, 0)
    fly = lap[..., 1:, 1:-1] - lap[..., :-1, 1:-1]
    np.putmask(fly, fly * (u[..., 2:-1, 2:-2] - u[..., 1:-2, 2:-2]) > 0, 0)

    c = u.dtype.type(COEFFICIENT)
    out = u.copy()
    out[..., 2:-2, 2:-2] -= c * (
        (flx[..., :, 1:] - flx[..., :, :-1]) + (fly[..., 1:, :] - fly[..., :-1, :])
    )
    return out


@dataclasses.dataclass(frozen=True)
class Check:
    """What the comparison with NumPy found. Errors are in the unit of the field."""

    passed: bool | None  # None: not compared
    reason: str
    identical: bool | None = None
    max_error: float | None = None
    allowed_error: float | None = None
    seconds: float | None = None


def allowed_error(largest: float, change: float, iterations: int, precision: str) -> float:
    """Largest error that rounding explains, in the unit of the field.

    One step rounds by at most about 2 eps of the largest value (the last subtraction half an eps,
    c times four limited fluxes of up to 16 u the rest), rounding errors of different steps add
    like a random walk, and 4 is the margin: 8 eps sqrt(iterations). Nor may the error exceed a
    hundredth of the largest change, or a field that barely moves would pass without moving.

    This covers rounding only. The limiter is a switch: where it is near to turning, one different
    rounding turns it, which changes a cell by far more. So the kernel must keep step()'s order.
    """
    rounding = 8 * float(np.finfo(TYPES[precision]).eps) * math.sqrt(iterations) * largest
    return min(rounding, 0.01 * change)


def check_result(
    before: np.ndarray,
    after: np.ndarray,
    iterations: int,
    precision: str,
    scheme: str = "gridtools",
) -> Check:
    """Compares `after` with `iterations` NumPy steps from `before`; both (levels, rows, columns).

    A result that has NaN, is unchanged, or is all zero fails, unless the reference is so too.
    """
    if after.shape != before.shape:
        return Check(False, f"the result has shape {after.shape}, the input {before.shape}")
    if after.dtype != np.float64:
        return Check(False, f"the result holds {after.dtype}, not float64")
    if wrong := int(np.count_nonzero(~np.isfinite(after))):
        return Check(False, f"the result has {wrong} values that are NaN or infinite")

    start = before.astype(TYPES[precision])
    with np.errstate(over="ignore"):
        if precision == "float" and not np.array_equal(after, after.astype(np.float32)):
            return Check(False, "the result has values that are no float32: computed in double?")
    kept = np.ones(before.shape[-2:], bool)
    kept[HALO:-HALO, HALO:-HALO] = False
    if not np.array_equal(after[..., kept], start[..., kept]):
        return Check(False, f"the outer {HALO} cells, which no step may change, have changed")

    if before.size * iterations > POINT_STEPS_CHECKED:
        size = f"{before.size * iterations:.2g} point-steps"
        return Check(None, f"{size} exceed the {POINT_STEPS_CHECKED:.0e} that NumPy does in ~10 s")

    began = time.perf_counter()
    expected = start
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(iterations):
            expected = step(expected, scheme)
    seconds = time.perf_counter() - began
    if not np.isfinite(expected).all():
        return Check(False, f"NumPy overflows in {precision} too: scale the input down")
    expected = expected.astype(np.float64)

    error = float(np.abs(after - expected).max())
    change = float(np.abs(expected - start).max())
    allowed = allowed_error(float(np.abs(expected).max()), change, iterations, precision)
    found = {"max_error": error, "allowed_error": allowed, "seconds": seconds}
    found["identical"] = error == 0
    if error == 0:
        return Check(True, "the same bits as NumPy", **found)
    numbers = f"largest error {error:.3g}, allowed {allowed:.3g}, largest change {change:.3g}"
    if error <= allowed:
        return Check(True, numbers, **found)
    if np.array_equal(after, start):
        return Check(False, f"the result is the unchanged input; {numbers}", **found)
    if not after[..., HALO:-HALO, HALO:-HALO].any():
        return Check(False, f"the result is zero; {numbers}", **found)
    level, row, column = np.unravel_index(np.abs(after - expected).argmax(), after.shape)
    place = f"at level {level}, row {row}, column {column}"
    hint = "; was the kernel compiled with fused multiply-adds?" if error < change else ""
    return Check(False, f"{numbers}, {place}{hint}", **found)


# --- input -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Field:
    """An input and what is known of it for the picture."""

    values: np.ndarray  # float64, C order, (levels, rows, columns)
    name: str
    label: str = "value"  # of a colour bar, with the unit
    extent: tuple[float, float, float, float] | None = None  # degrees: west, east, south, north


def sample_path() -> Path:
    """The elevation model that ships inside Matplotlib; needs no network."""
    try:
        from matplotlib import cbook

        return Path(cbook.get_sample_data(SAMPLE, asfileobj=False))
    except (ImportError, OSError) as error:
        raise Misuse(
            f"the sample {SAMPLE} comes with Matplotlib, which lacks it here ({error}): "
            "install matplotlib with pip, or give --input FILE"
        ) from error


def choose_array(archive: np.lib.npyio.NpzFile, path: Path, wanted: str | None) -> str:
    """The array to use: the one wanted, else the largest 2-D or 3-D numeric one."""
    names = ", ".join(archive.files) or "none"
    if wanted is not None:
        if wanted not in archive.files:
            raise Misuse(f"{path} has no array {wanted!r}: it has {names}; choose with --array")
        return wanted
    fitting = {}
    for name in archive.files:
        try:
            array = archive[name]
        except ValueError:  # Python objects, which are never loaded
            continue
        if array.ndim in (2, 3) and array.dtype.kind in "biuf":
            fitting[name] = array.size
    if not fitting:
        raise Misuse(f"{path} has no numeric array of 2 or 3 dimensions: it has {names}")
    return max(fitting, key=fitting.get)


def load_array(path: Path, wanted: str | None) -> np.ndarray:
    """The array in a .npy or .npz file, as it is stored."""
    if not path.exists():
        raise Misuse(f"no file {path}: give a .npy or .npz with --input, or leave it out")
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            if wanted is not None:
                raise Misuse(f"{path} is one array without a name: leave out --array {wanted}")
            return loaded
        with loaded:
            return loaded[choose_array(loaded, path, wanted)]
    except (ValueError, OSError, EOFError) as error:
        raise Misuse(f"{path} is no .npy or .npz array NumPy can read: {error}") from error


def read_field(path: Path | None, wanted: str | None, precision: str) -> Field:
    """Reads and tests the input.

    path: None for the sample. Raises Misuse, which names what is wrong and what to do.
    """
    file = sample_path() if path is None else path
    array = load_array(file, wanted)
    if array.dtype.kind == "c":
        raise Misuse(f"{file} holds {array.dtype}, a complex type: give its .real, .imag or abs()")
    if array.dtype.kind not in "biuf":
        raise Misuse(f"{file} holds {array.dtype}, not numbers: give floats or integers")
    if array.ndim not in (2, 3):
        raise Misuse(
            f"{file} has {array.ndim} dimensions, not 2 (rows, columns) or 3 (levels, rows, "
            "columns): give a slice of it"
        )
    if min(array.shape[-2:]) < 2 * HALO + 1 or array.shape[0] == 0:
        raise Misuse(
            f"{file} has shape {array.shape}: at least 1 level, 5 rows and 5 columns are needed, "
            "as the outer 2 on each side never change; give a larger array"
        )
    values = np.ascontiguousarray(array.reshape(-1, *array.shape[-2:]), dtype="<f8")
    if wrong := int(np.count_nonzero(~np.isfinite(values))):
        raise Misuse(
            f"{file} has {wrong} of {values.size} values that are NaN or infinite, and each would "
            "spread: fill them, with numpy.nan_to_num for instance"
        )
    largest, limit = float(np.abs(values).max()), float(np.finfo(TYPES[precision]).max) / 64
    if largest > limit:  # 64: the most that one step's intermediates exceed the field by
        raise Misuse(
            f"{file} reaches {largest:.3g}, above {limit:.3g}, where {precision} overflows: "
            "scale it down" + (" or use --precision double" if precision == "float" else "")
        )
    if path is not None:
        return Field(values, file.name)
    with np.load(file) as sample:  # its ymin is the latitude of row 0, the northern edge
        edges = tuple(float(sample[edge]) for edge in ("xmin", "xmax", "ymax", "ymin"))
    return Field(values, "Jacksboro fault, Tennessee", "elevation (m)", edges)


# --- the run -----------------------------------------------------------------------------------


def find_binary() -> Path:
    """The C++ program: MESHPOST_APP_BINARY, else the newest one built in this checkout."""
    remedy = "build it with ./run app diffusion, or set MESHPOST_APP_BINARY"
    if named := os.environ.get("MESHPOST_APP_BINARY"):
        binary = Path(named)
        if not (binary.is_file() and os.access(binary, os.X_OK)):
            raise Misuse(f"MESHPOST_APP_BINARY is {named}, which is no program: {remedy}")
        return binary.resolve()
    built = [path for path in ROOT.glob("build/*/apps/diffusion/diffusion") if path.is_file()]
    if not built:
        raise Misuse(f"no program build/*/apps/diffusion/diffusion under {ROOT}: {remedy}")
    return max(built, key=lambda path: path.stat().st_mtime)


def run_binary(command: list[str]) -> int:
    """Runs the program on this terminal, so that its progress shows. Returns its exit status.

    Whatever ends this function, the program has ended too.
    """
    began = time.perf_counter()
    try:
        child = subprocess.Popen(command)
    except OSError as error:
        raise Failure(f"{command[0]} can't be started: {error.strerror}; rebuild it") from error
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        seconds = time.perf_counter() - began
        print(
            f"\nstopped {Path(command[0]).name} (process {child.pid}) after {seconds:.1f} s; "
            "there is no result",
            file=sys.stderr,
        )
        raise


def compute(options: argparse.Namespace, field: Field, trace: Path) -> tuple[np.ndarray, dict, int]:
    """Runs the program on `field`. Returns its result, its JSON report and its exit status."""
    result = options.out / "result.npy"
    with tempfile.TemporaryDirectory(prefix="diffusion-") as folder:
        source, report = Path(folder, "input.npy"), Path(folder, "report.json")
        np.save(source, field.values)
        command = [str(find_binary()), "--input", str(source), "--output", str(result)]
        command += ["--iterations", str(options.iterations), "--precision", options.precision]
        if options.scheme != "gridtools":
            command += ["--scheme", options.scheme]
        command += ["--json", str(report), "--trace", str(trace)]
        command += ["--check" if options.check else "--no-check"]
        if options.devices is not None:
            command += ["--devices", options.devices]
        if options.ranks is not None:
            command += ["--ranks", str(options.ranks)]
        sys.stdout.flush()
        status = run_binary(command)
        if status == 2:
            raise Misuse("the program refused its arguments: see its message above")
        if status < 0:
            raise Failure(f"{command[0]} was ended by {signal.Signals(-status).name}")
        if status != 0 and not (result.exists() and report.exists()):
            raise Failure(f"{command[0]} ended with status {status}: see its message above")
        try:
            after = np.load(result, allow_pickle=False)
            facts = json.loads(report.read_text())
            if not isinstance(facts, dict):
                raise ValueError("the report is no JSON object")
        except (OSError, ValueError, EOFError) as error:
            raise Failure(f"{command[0]} ended with status {status} but: {error}") from error
    return after, facts, status


# --- the pictures ------------------------------------------------------------------------------


def describe_run(facts: dict, options: argparse.Namespace) -> str:
    """One line for a title: iterations, devices, ranks, precision."""
    devices = [d if isinstance(d, str) else d.get("name", "?") for d in facts.get("devices", [])]
    where = " + ".join(devices) if len(devices) <= 4 else f"{len(devices)} devices"
    ranks = facts.get("ranks", "?")
    plural = "" if ranks == 1 else "s"
    return (
        f"{options.iterations} iterations on {where or 'unknown devices'}, {ranks} rank{plural}, "
        f"{options.precision}, scheme {options.scheme}"
    )


def draw_fields(field: Field, after: np.ndarray, run: str, file: Path) -> None:
    """Draws before, after and the difference, of the middle level, as a PNG."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LightSource, Normalize
    from matplotlib.figure import Figure

    levels, rows, columns = field.values.shape
    middle = levels // 2
    old, new = field.values[middle], after[middle]
    extent, aspect, cell = (-0.5, columns - 0.5, rows - 0.5, -0.5), 1.0, (1.0, 1.0)
    if field.extent is not None:
        west, east, south, north = extent = field.extent
        narrowing = math.cos(math.radians((south + north) / 2))
        aspect = 1 / narrowing
        degree = 111_200.0  # metres of latitude
        cell = ((east - west) / columns * degree * narrowing, (north - south) / rows * degree)
    # Slopes of other data have no scale of their own: make a typical one as steep as a hill.
    slope = np.hypot(*np.gradient(old, cell[1], cell[0])).std()
    steepen = 0.3 / slope if slope > 0 else 1.0

    panel = float(
        np.clip(4.6 * aspect * abs((extent[3] - extent[2]) / (extent[1] - extent[0])), 1.4, 9)
    )
    figure = Figure(figsize=(16, panel + 1.4), dpi=150, layout="constrained")
    place = field.name + (f", level {middle}, the middle of {levels}" if levels > 1 else "")
    figure.suptitle(f"Horizontal diffusion: {place}\n{run}", fontsize=14)
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    light, height = LightSource(azdeg=315, altdeg=45), Normalize(*np.percentile(old, (0.5, 99.5)))
    if height.vmin == height.vmax:
        height = Normalize(old.min() - 0.5, old.max() + 0.5)
    earth = ScalarMappable(height, "gist_earth")
    for axis, values, name in zip(axes, (old, new), ("before", "after"), strict=False):
        shaded = light.shade(
            values, earth.cmap, height, "soft", vert_exag=steepen, dx=cell[0], dy=cell[1]
        )
        axis.imshow(shaded, extent=extent, aspect=aspect, interpolation="nearest")
        axis.set_title(name)
    figure.colorbar(earth, cax=axes[1].inset_axes([1.03, 0, 0.03, 1]), label=field.label)

    difference = new - old
    reach = float(np.percentile(np.abs(difference), 99.5)) or float(np.abs(difference).max()) or 1.0
    image = axes[2].imshow(
        difference, "RdBu_r", extent=extent, aspect=aspect, vmin=-reach, vmax=reach
    )
    image.set_interpolation("nearest")
    axes[2].set_title("difference, after - before")
    bar = axes[2].inset_axes([1.03, 0, 0.03, 1])
    figure.colorbar(image, cax=bar, label=f"change of {field.label}", extend="both")
    for axis in axes:
        axis.set_xlabel("column" if field.extent is None else "longitude (degrees)")
        axis.tick_params(labelsize=8)
        axis.locator_params(nbins=5)
    axes[0].set_ylabel("row" if field.extent is None else "latitude (degrees)")
    figure.savefig(file, bbox_inches="tight", pad_inches=0.15)


def draw_timeline(trace: Path, file: Path, title: str) -> None:
    """Draws the ranks' timeline with tools/timeline.py."""
    sys.path.insert(0, str(ROOT / "tools"))
    import timeline

    timeline.draw(trace, file, title=title)


def draw_all(options: argparse.Namespace, field: Field, after: np.ndarray, facts: dict) -> None:
    """Draws both pictures. One that can't be drawn is said and left out: the result stands."""
    run = describe_run(facts, options)
    try:
        draw_fields(field, after, run, options.out / "diffusion.png")
    except ImportError as error:
        print(f"no pictures: {error}; install matplotlib, or say --no-plot", file=sys.stderr)
        return
    try:
        trace = options.out / "timeline.json"
        draw_timeline(trace, options.out / "timeline.png", f"Horizontal diffusion, {run}")
    except (ValueError, OSError) as error:
        print(f"no timeline: {error}", file=sys.stderr)


# --- the command line --------------------------------------------------------------------------


def count(least: int, what: str):
    """An argparse type: a whole number of at least `least`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {what} >= {least}")
        return value

    return parse


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Reads the command line; argparse ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="./run app diffusion",
        description="COSMO's horizontal diffusion of an elevation model, spread over all ranks of "
        "all devices, checked against NumPy and drawn.",
        epilog="example: ./run app diffusion --devices cpu:2 --ranks 16 --iterations 500",
    )
    add = parser.add_argument
    add(
        "--input",
        type=Path,
        metavar="FILE",
        help="a .npy or .npz of shape (rows, columns) or "
        "(levels, rows, columns); default: the elevation model that comes with Matplotlib",
    )
    add("--array", metavar="NAME", help="which array of a .npz; default: the largest that fits")
    add(
        "--iterations",
        type=count(0, "iterations"),
        default=200,
        metavar="N",
        help="steps to compute (default: %(default)s)",
    )
    add(
        "--devices",
        metavar="SPEC",
        help="devices to use, as the library names them; "
        "default: all GPUs, or the CPU where there are none",
    )
    add("--ranks", type=count(1, "ranks"), metavar="N", help="ranks on each device")
    add(
        "--precision",
        choices=tuple(TYPES),
        default="float",
        help="numbers to compute in (default: %(default)s)",
    )
    add(
        "--scheme",
        choices=("gridtools", "cosmo"),
        default="gridtools",
        help="sign of the Laplacian: gridtools has 4u - neighbours, cosmo the other, which "
        "smooths (default: %(default)s)",
    )
    add(
        "--check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with a run of one rank, bit for bit, and with NumPy (default: on)",
    )
    add(
        "--out",
        type=Path,
        default=Path("out/diffusion"),
        metavar="FOLDER",
        help="where the results go (default: %(default)s)",
    )
    add(
        "--json",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="where the report goes (default: FOLDER/result.json)",
    )
    add("--no-plot", action="store_true", help="draw no pictures")
    options = parser.parse_args(arguments)
    options.json = options.json or options.out / "result.json"
    return options


def prepare_folders(options: argparse.Namespace) -> None:
    """Makes the output folders, and tries them before the work, not after."""
    for folder in (options.out, options.json.parent):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise Misuse(
                f"can't write to {folder}: {error.strerror}; choose another with --out or --json"
            ) from error


def work(options: argparse.Namespace) -> int:
    """Does everything. Returns the exit status."""
    field = read_field(options.input, options.array, options.precision)
    find_binary()  # before the folders are made: a missing program leaves nothing behind
    prepare_folders(options)
    outputs = ["diffusion.png", "result.npy", "timeline.json", "timeline.png"]
    for name in outputs:  # what an earlier run left must not pass for this one's
        (options.out / name).unlink(missing_ok=True)
    options.json.unlink(missing_ok=True)
    levels, rows, columns = field.values.shape
    print(f"{field.name}: {levels} x {rows} x {columns} (levels, rows, columns)")
    after, facts, status = compute(options, field, options.out / "timeline.json")

    if options.check:
        check = check_result(
            field.values, after, options.iterations, options.precision, options.scheme
        )
    else:
        check = Check(None, "--no-check")
    verdict = {True: "passed", False: "FAILED", None: "skipped"}[check.passed]
    print(f"NumPy check {verdict}: {check.reason}", flush=True)

    drawable = after.shape == field.values.shape and np.isfinite(after).all()
    if not options.no_plot and drawable:
        draw_all(options, field, after, facts)
    files = {name: str(options.out / name) for name in outputs if (options.out / name).exists()}
    facts |= {"input": str(options.input or SAMPLE), "array": options.array}
    facts |= {"numpy_check": dataclasses.asdict(check), "files": files}
    options.json.write_text(json.dumps(facts, indent=2) + "\n")
    print("wrote", ", ".join([*files.values(), str(options.json)]))
    return 1 if status != 0 or check.passed is False else 0


def main(arguments: list[str] | None = None) -> int:
    """The program; returns its exit status."""
    # A job's end arrives as SIGTERM: the C++ program must end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return work(parse(arguments))
    except Misuse as error:
        print(f"diffusion: {error}", file=sys.stderr)
        return 2
    except Failure as error:
        print(f"diffusion: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("diffusion: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
