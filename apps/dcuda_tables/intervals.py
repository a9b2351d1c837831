"""Medians, lines by least squares, and their 95 % intervals, over independent starts of a job."""

from __future__ import annotations

import dataclasses
import math
import statistics

# Student's t, two-sided, 95 %, by degrees of freedom from 1.
T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
NORMAL95 = 1.959964


@dataclasses.dataclass(frozen=True)
class Value:
    """A figure with its interval. The bounds are None if there are too few starts for one."""

    value: float
    lower: float | None = None
    upper: float | None = None


def t95(freedom: int) -> float:
    """Student's t for an interval of 95 %."""
    if freedom <= len(T95):
        return T95[freedom - 1]
    z = NORMAL95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def median(values: list[float]) -> Value:
    """The median. The bounds are two of the sorted values, which suits any distribution.

    The k-th values from both ends hold the true median unless k - 1 or fewer are on one side of it.
    With fewer than six values no two of them hold it with 95 %.
    """
    ordered, count, tail, rank = sorted(values), len(values), 0.0, 0
    while True:
        tail += math.comb(count, rank) / 2**count
        if 2 * tail > 0.05 or rank > count // 2:
            break
        rank += 1
    middle = statistics.median(ordered)
    return Value(middle, ordered[rank - 1], ordered[-rank]) if rank else Value(middle)


def mean(values: list[float]) -> Value:
    """The mean, with Student's interval."""
    middle = statistics.fmean(values)
    if len(values) < 2:
        return Value(middle)
    half = t95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return Value(middle, middle - half, middle + half)


def line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope of the line with the least squares. Needs two different x."""
    slope, intercept = statistics.linear_regression(*zip(*points, strict=True))
    return intercept, slope


@dataclasses.dataclass(frozen=True)
class Hockney:
    """t = latency + bytes / bandwidth, in seconds and bytes a second."""

    latency: Value
    bandwidth: Value | None  # None: time does not grow with bytes


def hockney(starts: list[list[tuple[float, float]]]) -> Hockney:
    """The fit of (bytes, seconds) of each start.

    Points of one start share its placement on cores, so their errors are not independent. Each
    start gives a line, and the intervals come from how the lines differ.
    """
    lines = [line(points) for points in starts]
    slope = mean([one[1] for one in lines])
    latency = mean([one[0] for one in lines])
    if slope.value <= 0:
        return Hockney(latency, None)
    if slope.lower is None:
        return Hockney(latency, Value(1 / slope.value))
    fastest = 1 / slope.lower if slope.lower > 0 else math.inf
    return Hockney(latency, Value(1 / slope.value, 1 / slope.upper, fastest))
