"""Pictures of a simulation of particles: the end, the energy over time, a film."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure


def load(name: str) -> np.ndarray:
    """An array that the program wrote. Throws ValueError if it is not there any more."""
    try:
        return np.load(name)
    except OSError as error:
        raise ValueError(f"{name or 'the result'} can't be read ({error.strerror})") from error


def places(rows: np.ndarray, facts: dict) -> np.ndarray:
    """Positions in the whole domain."""
    return np.stack([rows[..., 0], rows[..., 4] * facts["segment_height"] + rows[..., 1]], -1)


def speeds(rows: np.ndarray) -> np.ndarray:
    """The speed of each particle."""
    return np.hypot(rows[..., 2], rows[..., 3])


def dots(axes: Axes, rows: np.ndarray, facts: dict, top: float) -> PathCollection:
    """The particles as dots, coloured by speed."""
    at = places(rows, facts)
    size = max(0.2, min(12, 40_000 / len(rows)))
    image = axes.scatter(
        at[:, 0], at[:, 1], s=size, c=speeds(rows), cmap="viridis", vmin=0, vmax=top, linewidths=0
    )
    axes.set_xlim(0, facts["width"])
    axes.set_ylim(0, facts["length"])
    axes.set_aspect("equal")
    return image


def draw(facts: dict, file: Path) -> None:
    """The particles at the end; beside them, if there are frames, the energy over time."""
    rows, frames = load(facts["output"]), facts["frames"]
    figure = Figure(figsize=(12 if frames else 7, 6), dpi=130, layout="constrained")
    left, *right = np.atleast_1d(figure.subplots(1, 2 if frames else 1))
    image = dots(left, rows, facts, float(np.percentile(speeds(rows), 99)) or 1)
    figure.colorbar(image, ax=left, label="speed")
    left.set_title(f"{facts['particles']} particles after {facts['steps']} steps")
    for axes in right:
        step = [frame["step"] for frame in frames]
        parts = {name: np.array([f[name] for f in frames]) for name in ("kinetic", "potential")}
        for name, values in parts.items():
            axes.plot(step, values, label=name)
        axes.plot(step, sum(parts.values()), "k--", label="sum")
        axes.set_xlabel("step")
        axes.set_ylabel("energy")
        axes.set_ylim(bottom=0)
        axes.set_title(f"energy: {facts['energy_drift']:+.2g} of it after all steps")
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(file)


def film(facts: dict, file: Path) -> None:
    """The particles of all frames, one after the other."""
    import matplotlib.pyplot as plt

    frames = load(facts["film"])
    figure, axes = plt.subplots(figsize=(6, 6), dpi=90)
    top = float(np.percentile(speeds(frames), 99)) or 1
    image = dots(axes, frames[0], facts, top)
    writer = PillowWriter(fps=8)
    part = file.with_suffix(".part.gif")
    with writer.saving(figure, str(part), dpi=90):
        for rows, frame in zip(frames, facts["frames"], strict=True):
            image.set_offsets(places(rows, facts))
            image.set_array(speeds(rows))
            axes.set_title(f"step {frame['step']}")
            writer.grab_frame()
    plt.close(figure)
    part.replace(file)  # an interrupted run leaves no half of it
