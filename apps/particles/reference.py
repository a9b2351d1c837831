"""The simulation of particles in NumPy, with the sums in the order of the C++ program."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial import cKDTree

LIMIT = 10_000_000  # particles times steps; above it takes too long


@dataclasses.dataclass
class Particles:
    """All particles, in the order of their segments and of their places there."""

    x: np.ndarray
    y: np.ndarray  # above the lower edge of the segment
    vx: np.ndarray
    vy: np.ndarray
    segment: np.ndarray
    number: np.ndarray

    def taken(self, order: np.ndarray) -> Particles:
        """The particles in another order."""
        return Particles(*(getattr(self, field.name)[order] for field in dataclasses.fields(self)))


@dataclasses.dataclass(frozen=True)
class Model:
    """The numbers of the program's Model, of its precision."""

    real: type
    cutoff: np.floating
    strength: np.floating
    dt: np.floating
    width: np.floating
    height: np.floating
    segments: int


def model_of(facts: dict) -> Model:
    """The model of a run."""
    real = np.float64 if facts["precision"] == "double" else np.float32
    return Model(
        real,
        *(real(facts[key]) for key in ("cutoff", "strength", "dt", "width", "segment_height")),
        facts["segments"],
    )


def forces(model: Model, all_: Particles) -> tuple[np.ndarray, np.ndarray]:
    """Forces along x and y: the sum for each particle takes the others in their order."""
    real, height = model.real, model.height
    # A tree finds candidates, a few more than needed; the test below is the program's.
    places = np.stack(
        [all_.x.astype(np.float64), all_.segment * float(height) + all_.y.astype(np.float64)], 1
    )
    pairs = cKDTree(places).query_pairs(1.001 * float(model.cutoff), output_type="ndarray")
    pairs = pairs[np.abs(all_.segment[pairs[:, 0]] - all_.segment[pairs[:, 1]]) <= 1]
    i, j = np.concatenate([pairs, pairs[:, ::-1]]).T
    order = np.lexsort((j, i))
    i, j = i[order], j[order]
    above = all_.segment[j] - all_.segment[i]
    shift = np.choose(above + 1, [height, real(0), -height])
    dx, dy = all_.x[i] - all_.x[j], (all_.y[i] - all_.y[j]) + shift
    squared = dx * dx + dy * dy
    near = (squared < model.cutoff * model.cutoff) & (squared > 0)
    i, dx, dy, r = i[near], dx[near], dy[near], np.sqrt(squared[near])
    q = real(1) - r * (real(1) / model.cutoff)
    scale = model.strength * q * q / r
    fx, fy = np.zeros_like(all_.x), np.zeros_like(all_.y)
    np.add.at(fx, i, scale * dx)  # one after the other, in the order of i and j
    np.add.at(fy, i, scale * dy)
    return fx, fy


def step(model: Model, all_: Particles) -> Particles:
    """One step of leapfrog, with walls, and the order in which the next step has the particles."""
    fx, fy = forces(model, all_)
    vx, vy = all_.vx + fx * model.dt, all_.vy + fy * model.dt
    x, y = all_.x + vx * model.dt, all_.y + vy * model.dt
    left, right = x < 0, x > model.width
    x = np.where(left, -x, np.where(right, model.width - (x - model.width), x))
    vx = np.where(left | right, -vx, vx)
    low, high = y < 0, y >= model.height
    first, last = all_.segment == 0, all_.segment == model.segments - 1
    bottom, top = low & first, high & last
    way = np.where(high & ~last, 1, 0) - np.where(low & ~first, 1, 0)
    y = np.select(
        [bottom, top, way < 0, way > 0],
        [-y, model.height - (y - model.height), y + model.height, y - model.height],
        y,
    )
    vy = np.where(bottom | top, -vy, vy)
    moved = Particles(x, y, vx, vy, all_.segment + way, all_.number)
    # In a segment: those from below, those that stayed, those from above.
    return moved.taken(np.lexsort((-way, moved.segment)))


def simulate(facts: dict, initial: np.ndarray) -> np.ndarray:
    """All steps, from the rows (x, y, vx, vy, segment) of all particles to those at the end."""
    model = model_of(facts)
    columns = [initial[:, k].astype(model.real) for k in range(4)]
    segment = initial[:, 4].astype(np.int64)
    all_ = Particles(*columns, segment, np.arange(len(initial)))
    all_ = all_.taken(np.argsort(segment, kind="stable"))
    for _ in range(facts["steps"]):
        all_ = step(model, all_)
    rows = np.empty_like(initial)
    for k, values in enumerate((all_.x, all_.y, all_.vx, all_.vy, all_.segment)):
        rows[all_.number, k] = values
    return rows
