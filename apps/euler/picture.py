"""Pictures of a run: slices of the density in time, the growth of waves, a film."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import growth

matplotlib.use("Agg")
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

SHOWN = 5  # slices
# The problem has no other units (README.md).
DENSITY = "density (1: the light gas)"
TIME = "time (unit of length / speed of sound)"
UNITS = "length: the box is {:g} wide and {:g} high; speed: 1 is that of sound in the light gas"


def load(name: str) -> np.ndarray:
    """The slices that the program wrote. Throws ValueError if they are not there any more."""
    try:
        return np.load(name)
    except OSError as error:
        raise ValueError(f"{name or 'the slices'} can't be read ({error.strerror})") from error


def show(axes: Axes, density: np.ndarray, facts: dict) -> AxesImage:
    """A slice [z][x]."""
    width, _, height = facts["size"]
    extent = (-width / 2, width / 2, -height / 2, height / 2)
    image = axes.imshow(density, origin="lower", extent=extent, cmap="viridis", vmin=0.9, vmax=2.1)
    axes.set_xlabel("x (length)")
    axes.locator_params(axis="x", nbins=3)
    return image


def draw(facts: dict, file: Path) -> None:
    """Slices through the middle of y, and the growth of the waves."""
    slices, frames = load(facts["slices"]), facts["frames"]
    shown = np.unique(np.linspace(0, len(frames) - 1, min(SHOWN, len(frames))).round().astype(int))
    figure = Figure(figsize=(2.1 * len(shown) + 6, 5), dpi=130, layout="constrained")
    *left, right = figure.subplots(1, len(shown) + 1, width_ratios=[1] * len(shown) + [2.2])
    for axes, k in zip(left, shown, strict=True):
        image = show(axes, slices[k], facts)
        axes.set_title(f"time {frames[k]['time']:.3g}")
        axes.tick_params(labelleft=axes is left[0])
    left[0].set_ylabel("z (length)")
    figure.colorbar(image, ax=left[-1], label=DENSITY)

    time = np.array([frame["time"] for frame in frames])
    for wave, name in enumerate(growth.WAVES):
        speed = np.abs([frame["modes"][wave] for frame in frames])
        (line,) = right.plot(time, speed, "os^"[wave], ms=4, mfc="none", label=f"wave {name}")
        theory = facts["growth_rates"][wave]
        if wave != 1:  # (0, 1) has the rate of (1, 0)
            start = speed[0] or np.nan
            right.plot(
                time,
                start * np.cosh(theory * time),
                color=line.get_color(),
                lw=0.8,
                label=f"cosh({theory:.3g} t), linear theory",
            )
    most = max(abs(mode) for frame in frames for mode in frame["modes"])
    if most > 0:  # without a perturbation there is nothing to draw
        right.set_yscale("log")
        right.set_ylim(top=5 * most)  # the theory's waves grow for ever
    right.set_title("growth of the waves")
    right.set_xlabel(TIME)
    right.set_ylabel("speed along z at z = 0 (1: sound)")
    right.grid(alpha=0.3)
    right.legend(fontsize=8, title="wave: periods along (x, y)", title_fontsize=8)
    cells = " x ".join(str(n) for n in facts["cells"])
    steps = f"{facts['first_step']} to {facts['first_step'] + facts['steps']}"
    units = UNITS.format(facts["size"][0], facts["size"][2])
    figure.suptitle(
        f"Rayleigh-Taylor instability, {cells} cells, steps {steps}: the density in the middle of y"
        f"\n{units}",
        fontsize=11,
    )
    figure.savefig(file)


def film(facts: dict, file: Path) -> None:
    """The slices of all frames, one after the other."""
    import matplotlib.pyplot as plt

    slices = load(facts["slices"])
    figure, axes = plt.subplots(figsize=(3.6, 5.6), dpi=90, layout="constrained")
    image = show(axes, slices[0], facts)
    axes.set_ylabel("z (length)")
    figure.colorbar(image, ax=axes, label=DENSITY)
    writer = PillowWriter(fps=8)
    part = file.with_suffix(".part.gif")
    with writer.saving(figure, str(part), dpi=90):
        for density, frame in zip(slices, facts["frames"], strict=True):
            image.set_data(density)
            axes.set_title(f"time {frame['time']:.3g}")
            writer.grab_frame()
    plt.close(figure)
    part.replace(file)  # an interrupted run leaves no half of it
