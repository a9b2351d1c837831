"""Draws the field before and after, and the timeline of the ranks."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from field import Field

from front import explain_no_picture  # isort: skip; errors.py adds its folder to the path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def describe_run(facts: dict, options: argparse.Namespace) -> str:
    """One line for a title: iterations, devices, ranks, precision."""
    devices = [d if isinstance(d, str) else d.get("name", "?") for d in facts.get("devices", [])]
    where = " + ".join(devices) if len(devices) <= 4 else f"{len(devices)} devices"
    if (processes := facts.get("processes", 1)) > 1:
        where = f"{facts['device_count']} devices of {processes} processes"
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
    # Slopes of other data have no natural scale: a typical one is drawn as steep as a hill.
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
    """Draws the ranks' timeline with tools/timeline_picture.py."""
    sys.path.insert(0, str(TOOLS))
    import timeline_picture

    timeline_picture.draw(trace, file, title=title)


def draw_all(
    options: argparse.Namespace,
    field: Field,
    after: np.ndarray,
    facts: dict,
    timelines: list[Path],
) -> None:
    """Draws both pictures. If one can't be drawn, prints that and leaves it out: the result is
    still valid."""
    run = describe_run(facts, options)
    try:
        draw_fields(field, after, run, options.out / "diffusion.png")
    except ImportError as error:
        explain_no_picture(error, options.command)
        return
    if not timelines:
        print("no timeline: nothing was run", file=sys.stderr)
        return
    try:
        trace = timelines[0]  # of process 0: each process records its own
        draw_timeline(trace, options.out / "timeline.png", f"Horizontal diffusion, {run}")
    except (ValueError, OSError) as error:
        print(f"no timeline: {error}", file=sys.stderr)
