"""The scheme in NumPy, in the same order of operations as scheme.hpp."""

from __future__ import annotations

import numpy as np

DENSITY, MOMENTUM_X, MOMENTUM_Y, MOMENTUM_Z, ENERGY = range(5)
HALO = 2
LIMIT = 2e7  # cells times stages; above, NumPy takes minutes
WEIGHTS = (1.0, 0.25, 2.0 / 3.0)  # Shu and Osher's


def with_halo(u: np.ndarray, hydrostatic: float) -> np.ndarray:
    """The cells with their halo: [component][z][y][x], periodic in x and y, mirrored in z."""
    sides = ((0, 0), (0, 0), (HALO, HALO), (HALO, HALO))
    around = np.pad(u, sides, mode="wrap")
    around = np.pad(around, ((0, 0), (HALO, HALO), (0, 0), (0, 0)), mode="symmetric")
    for z in (0, 1, -1, -2):
        around[MOMENTUM_Z, z] = -around[MOMENTUM_Z, z]
        # Cells from the mirror image to this one; see Equations::point.
        cells = {0: -3.0, 1: -1.0, -1: 3.0, -2: 1.0}[z]
        around[ENERGY, z] = around[ENERGY, z] + cells * (hydrostatic * around[DENSITY, z])
    return around


def outflow(around: np.ndarray, direction: int, facts: dict) -> np.ndarray:
    """What flows out of each cell in one direction (0: x), per volume and time."""
    axis = 2 - direction  # of [z][y][x]
    inner = [slice(HALO, -HALO)] * 3
    inner[axis] = slice(None)
    u = around[(slice(None), *inner)]
    rho, mx, my, mz, total = u
    volume = 1.0 / rho
    kinetic = 0.5 * (((mx * mx + my * my) + mz * mz) * volume)
    velocity = u[1 + direction] * volume
    pressure = (facts["gamma"] - 1.0) * (total - kinetic)
    sound = np.sqrt(facts["gamma"] * pressure * volume)
    speed = np.abs(velocity) + facts["damping"] * sound
    flux = u * velocity
    flux[DENSITY] = u[1 + direction]
    flux[1 + direction] = flux[1 + direction] + pressure
    flux[ENERGY] = (total + pressure) * velocity

    def part(values: np.ndarray, first: int, count: int) -> np.ndarray:
        return np.take(values, range(first, first + count), axis=axis - 3)

    faces = u.shape[axis + 1] - 3
    ua, ub, uc, ud = (part(u, k, faces) for k in range(4))
    fa, fb, fc, fd = (part(flux, k, faces) for k in range(4))
    fastest = np.maximum(part(speed, 1, faces), part(speed, 2, faces))
    face = (7.0 * (fb + fc) - (fa + fd)) + fastest * (3.0 * (ub - uc) + (ud - ua))
    return facts["per_cell"][direction] * (part(face, 1, faces - 1) - part(face, 0, faces - 1))


def advance(now: np.ndarray, begin: np.ndarray, stage: int, facts: dict) -> np.ndarray:
    """A stage of a Runge-Kutta step; fields are [component][z][y][x]."""
    around = with_halo(now, facts["hydrostatic"])
    # Only cells beyond walls have the corrected pressure, and only fluxes along z read those.
    along_x, along_y, along_z = (outflow(around, d, facts) for d in range(3))
    force = np.zeros_like(now)
    force[MOMENTUM_Z] = facts["gravity"] * now[DENSITY]
    force[ENERGY] = facts["gravity"] * now[MOMENTUM_Z]
    rate = force - ((along_x + along_y) + along_z)
    return begin + WEIGHTS[stage] * ((now - begin) + facts["dt"] * rate)


def simulate(initial: np.ndarray, facts: dict) -> np.ndarray:
    """All steps. `facts`: those of the C++ program."""
    begin = initial
    for _ in range(facts["steps"]):
        now = begin
        for stage in range(3):
            now = advance(now, begin, stage, facts)
        begin = now
    return begin
