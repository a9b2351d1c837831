"""Compares a result with the NumPy reference."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from reference import HALO, TYPES, step

POINT_STEPS_CHECKED = 500_000_000  # NumPy does about 5e7 a second: ten seconds


@dataclasses.dataclass(frozen=True)
class Check:
    """Result of the comparison with NumPy. Errors are in the unit of the field."""

    passed: bool | None  # None: not compared
    reason: str
    identical: bool | None = None
    max_error: float | None = None
    allowed_error: float | None = None
    seconds: float | None = None


def allowed_error(largest: float, change: float, iterations: int, precision: str) -> float:
    """Largest error that rounding explains, in the unit of the field.

    One step rounds by at most about 2 eps of the largest value. The last subtraction causes half an
    eps, c times four limited fluxes of up to 16 u cause the rest. Rounding errors of different
    steps add like a random walk. With a margin of 4 this gives 8 eps sqrt(iterations). The error
    may also not exceed a hundredth of the largest change. Otherwise an unchanged field would pass
    if the right result differs little from the input.

    This covers rounding only. The limiter is a switch. Near its threshold one different rounding
    switches it, and that changes a cell by far more. So the kernel must keep step()'s order.
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

    A result that has NaN, is unchanged, or is all zero fails, unless the same holds for the
    reference.
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
