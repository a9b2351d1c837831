"""Reads the initial field, and explains why a field can't be used."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from errors import Misuse
from reference import HALO, TYPES

SAMPLE = "jacksboro_fault_dem.npz"


@dataclasses.dataclass(frozen=True)
class Field:
    """An input, and its properties for the picture."""

    values: np.ndarray  # float64, C order, (levels, rows, columns)
    name: str
    label: str = "value"  # of a colour bar, with the unit
    extent: tuple[float, float, float, float] | None = None  # degrees: west, east, south, north


def sample_path() -> Path:
    """The elevation model that is part of Matplotlib; needs no network."""
    try:
        from matplotlib import cbook

        return Path(cbook.get_sample_data(SAMPLE, asfileobj=False))
    except (ImportError, OSError) as error:
        raise Misuse(
            f"the sample {SAMPLE} comes with Matplotlib, which lacks it here ({error}): "
            "install matplotlib with pip, or give --input FILE"
        ) from error


def choose_array(archive: np.lib.npyio.NpzFile, path: Path, wanted: str | None) -> str:
    """The array to use: the requested one, else the largest numeric one of 2 or 3 dimensions."""
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

    path: None for the sample. Raises Misuse, which says what is wrong and what to do.
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
