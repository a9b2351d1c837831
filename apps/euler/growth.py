"""Growth rates of small waves, from the frames of a run."""

from __future__ import annotations

import numpy as np

WAVES = ("(1, 0)", "(0, 1)", "(1, 1)")
# The part of a run that is fitted, in units of 1 / rate: behind the sound waves of the beginning,
# which is no solution of the linear equations, and before waves act on each other.
BEGIN, END = 1.2, 3.6
NOISE = 1e-12  # speeds that rounding alone makes


def fit(time: np.ndarray, speed: np.ndarray, about: float) -> float:
    """The rate r of a exp(r t) + b exp(-r t) that is nearest to the speeds.

    A wave that begins with a speed and no height has both terms. `about`: where to search. The
    errors are weighted with the speeds, as their logarithms are what one sees.
    """
    best, least = 0.0, np.inf
    for rate in np.linspace(0.3 * about, 1.5 * about, 2401):
        terms = np.stack([np.exp(rate * time), np.exp(-rate * time)], axis=1) / speed[:, None]
        weights, *_ = np.linalg.lstsq(terms, np.ones_like(time), rcond=None)
        error = float(((terms @ weights - 1) ** 2).sum())
        if error < least:
            best, least = float(rate), error
    return best


def rates(facts: dict) -> dict[str, tuple[float, float]]:
    """Of each wave: the measured growth rate, and that of linear theory.

    Throws ValueError if there are too few frames.
    """
    time = np.array([frame["time"] for frame in facts["frames"]])
    found = {}
    for wave, name in enumerate(WAVES):
        theory = facts["growth_rates"][wave]
        speed = np.array([frame["modes"][wave] for frame in facts["frames"]])
        used = (time * theory >= BEGIN) & (time * theory <= END) & (speed > NOISE)
        if used.sum() < 5:
            raise ValueError(
                f"wave {name} has {used.sum()} frames from time {BEGIN / theory:.2f} to "
                f"{END / theory:.2f}, and a fit needs 5; run longer, or give a smaller --every"
            )
        found[name] = fit(time[used], speed[used], theory), theory
    return found
