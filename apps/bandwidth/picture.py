"""Draws the measurements: a heat map for each variant and size, from row to column."""

from __future__ import annotations

from pathlib import Path

import numpy as np

MOST_SIZES = 3  # rows of the picture: the largest sizes
SMALL = 1 << 20  # below this size, the time of a copy is drawn instead of its rate


def size_name(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024 or count % 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GiB"


def placement(report: dict) -> str:
    """The NUMA nodes of --cpu-node in words; empty if processes were not bound."""
    nodes = report.get("cpu_nodes", [])
    return f"node of each process: {', '.join(map(str, nodes))}" if nodes else ""


def matrix(report: dict, variant: str, size: int) -> np.ndarray:
    """GB/s, or microseconds of small copies, by source and target; NaN if not measured."""
    places = report["places"]
    values = np.full((len(places), len(places)), np.nan)
    for one in report["results"]:
        if (one["variant"], one["bytes"]) != (variant, size) or one["problem"]:
            continue
        value = one["seconds"] * 1e6 if size < SMALL else one["rate"] / 1e9
        if value > 0:
            values[places.index(one["from"]), places.index(one["to"])] = value
    return values


def percent_longer(report: dict, comparison: dict, size: int) -> np.ndarray:
    """How much longer copies by one variant take than by another, in percent."""
    of, other = (matrix(report, comparison[name], size) for name in ("of", "with"))
    with np.errstate(invalid="ignore"):  # not measured
        return 100 * ((of / other if size < SMALL else other / of) - 1)


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def draw_map(axis, values: np.ndarray, norm, colours: str, places: list[str], form=number):
    image = axis.imshow(values, cmap=colours, norm=norm)
    size = max(5, min(9, 80 / len(places)))
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        shade = norm(values[row, column])
        bright = {"viridis": shade > 0.6, "viridis_r": shade < 0.4}.get(
            colours, 0.25 < shade < 0.75
        )
        axis.text(
            column,
            row,
            form(values[row, column]),
            ha="center",
            va="center",
            color="black" if bright else "white",
            fontsize=size,
        )
    axis.set_xticks(range(len(places)), places, rotation=45, ha="right", fontsize=size)
    axis.set_yticks(range(len(places)), places, fontsize=size)
    return image


def set_ticks(bar, low: float, high: float) -> None:
    """Ticks of a logarithmic bar from `low` to `high`."""
    from matplotlib.ticker import NullLocator

    bar.set_ticks(np.geomspace(low, high, 5 if high > 1.2 * low else 1))
    bar.ax.yaxis.set_major_formatter(lambda value, _: number(value))
    bar.ax.yaxis.set_minor_locator(NullLocator())


def draw_percent(figure, axis, values: np.ndarray, places: list[str], controls: list) -> None:
    """Differences in percent: red is longer, blue is shorter. Controls are framed."""
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    known = np.abs(values[np.isfinite(values)])
    most = max(10.0, known.max()) if known.size else 10.0
    norm = Normalize(-most, most)
    image = draw_map(axis, values, norm, "RdBu_r", places, form=lambda value: f"{value:+.0f}")
    for source, target in controls:
        corner = places.index(target) - 0.45, places.index(source) - 0.45
        axis.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, edgecolor="0.5", linestyle=":"))
    figure.colorbar(image, ax=axis, label="% longer", shrink=0.8)


def draw(report: dict, file: Path) -> None:
    """Draws `report`, as the program's --json writes it, into `file`."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    sizes = sorted({one["bytes"] for one in report["results"]}, reverse=True)[:MOST_SIZES]
    variants, places = report["variants"], report["places"]
    comparisons = report.get("comparisons", [])
    columns = len(variants) + len(comparisons)
    side = max(3.6, 0.5 * len(places) + 1.2)
    figure = Figure(
        figsize=(side * columns + 1.5, side * max(1, len(sizes)) + 0.8),
        dpi=130,
        layout="constrained",
    )
    note = placement(report)
    figure.suptitle(f"Copies from the row's memory to the column's{note and f' ({note})'}")
    axes = figure.subplots(max(1, len(sizes)), columns, squeeze=False)
    for row, size in zip(axes, sizes, strict=False):
        maps = {variant: matrix(report, variant, size) for variant in variants}
        known = np.concatenate([values[np.isfinite(values)] for values in maps.values()])
        low, high = (known.min(), known.max()) if known.size else (1.0, 1.0)
        norm = LogNorm(low * 0.8, high * 1.25)
        unit, colours = ("us", "viridis_r") if size < SMALL else ("GB/s", "viridis")
        for axis, (variant, values) in zip(row, maps.items(), strict=False):
            image = draw_map(axis, values, norm, colours, places)
            axis.set_title(f"{variant}, {size_name(size)}\n{variants[variant]}", fontsize=9)
        bar = figure.colorbar(image, ax=list(row[: len(variants)]), label=unit, shrink=0.8)
        set_ticks(bar, low, high)
        for axis, one in zip(row[len(variants) :], comparisons, strict=True):
            controls = one.get("controls", [])
            draw_percent(figure, axis, percent_longer(report, one, size), places, controls)
            note = "; framed: P2P can't help" if controls else ""
            axis.set_title(
                f"{one['title']}, {size_name(size)}\n{one['of']} against {one['with']}{note}",
                fontsize=9,
            )
    figure.savefig(file)
