"""Draws a comparison: one-way times and rates by size, a line for each system, named beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from compare_table import size

# A system keeps its colour in all panels.
COLOURS = {
    "meshpost": "#c2185b",
    "meshpost, direct": "#f06292",
    "NVSHMEM": "#2e7d32",
    "NVSHMEM on a stream": "#81c784",
    "NCCL": "#1565c0",
    "CUDA stores": "#424242",
    "CUDA copy engine": "#9e9e9e",
}
OTHER = "#6d4c41"
SHORT, LONG = 64 << 10, 1 << 10  # times are drawn up to here, and rates from here on
LEAST_APART = 0.045  # of the axis's height: between two names beside the lines
Lines = dict[str, list[dict]]


def lines_of(
    rows: list[dict], wanted: Callable[[dict], bool], name: Callable[[dict], str]
) -> Lines:
    lines: Lines = {}
    for row in sorted(rows, key=lambda row: row["bytes"]):
        if "median_us" in row and row["bytes"] and wanted(row):
            lines.setdefault(name(row), []).append(row)
    return lines


def apart(heights: list[float], least: float, lowest: float, highest: float) -> list[float]:
    """The heights, in their order, moved as little as possible to keep at least this distance."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    moved = list(heights)
    at = lowest - least
    for i in order:
        at = moved[i] = max(heights[i], at + least)
    at = highest + least
    for i in reversed(order):
        at = moved[i] = min(moved[i], at - least)
    return moved


def name_lines(axis, ends: list[tuple[str, float, float, str]]) -> None:
    """Writes each line's name at the right, at the height of its end if there is room."""
    axis.autoscale_view()  # otherwise the limits are still those of an empty plot
    to_axis = axis.transAxes.inverted()
    points = [to_axis.transform(axis.transData.transform((x, y))) for _, x, y, _ in ends]
    heights = apart([y for _, y in points], LEAST_APART, 0.0, 1.0)
    for (label, _, _, colour), (x, y), height in zip(ends, points, heights, strict=True):
        axis.annotate(
            label,
            (x, y),
            (1.03, height),
            "axes fraction",
            "axes fraction",
            color=colour,
            fontsize=8,
            va="center",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 0.6,
                "alpha": 0.6,
                "shrinkB": 3,
                "relpos": (0, 0.5),  # from the name's left edge, so that it does not cross the name
            },
        )


def draw_floor(axis, us: float) -> None:
    axis.axhline(us, color="black", lw=0.8, ls=":")
    axis.annotate(
        f"bare flag {us:.2g} us", (0.02, us), (0, 3), axis.get_yaxis_transform(),
        "offset points", fontsize=8,
    )  # fmt: skip


def panel(
    axis,
    title: str,
    lines: Lines,
    what: str,
    across: Callable[[dict], int],
    floor: float | None = None,
) -> None:
    """`what` is median_us or gb_per_s by `across`, with the spread of the repetitions as a band;
    `floor` is a lower bound of all times."""
    axis.set_title(title, fontsize=10, loc="left")
    if not lines:
        axis.set_axis_off()
        axis.text(0, 0.5, "nothing was measured", fontsize=9, color="#666666")
        return
    ends = []
    for label, rows in lines.items():
        colour = COLOURS.get(rows[0]["system"], OTHER)
        one_block = what == "gb_per_s" and rows[0]["blocks"] == 1
        x = [across(row) for row in rows]
        y = [row[what] for row in rows]
        low, high = ([row[f"{end}_us"] for row in rows] for end in ("min", "max"))
        if what == "gb_per_s":  # the longest time is the smallest rate
            scale = [row["gb_per_s"] * row["median_us"] for row in rows]
            low, high = (
                [s / max(us, 1e-9) for s, us in zip(scale, times, strict=True)]
                for times in (high, low)
            )
        axis.plot(x, y, "--" if one_block else "-", color=colour, lw=1.5, marker="o", ms=3)
        axis.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        ends.append((label, x[-1], y[-1], colour))
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    shown = sorted({across(row) for rows in lines.values() for row in rows})
    step = 8 if shown[-1] >= shown[0] << 10 else 2
    axis.xaxis.set_major_locator(matplotlib.ticker.LogLocator(base=step, numticks=12))
    axis.xaxis.set_major_formatter(lambda value, _: size(round(value)))
    axis.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    if what == "median_us" and axis.get_ylim()[1] < 1e3:  # room for names between the decades
        axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    axis.tick_params(axis="x", labelrotation=40, labelsize=8)
    axis.tick_params(axis="y", labelsize=8)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_ylabel("us" if what == "median_us" else "GB/s")
    axis.margins(x=0.02)
    if floor is not None:
        draw_floor(axis, floor)
    name_lines(axis, ends)


def with_blocks(row: dict) -> str:
    if row["blocks"] == 0:
        return row["system"]
    return f"{row['system']}, " + ("1 block" if row["blocks"] == 1 else f"{row['blocks']} blocks")


def draw(result: dict, file: Path) -> None:
    rows, unit = result["rows"], result["devices"]
    most = max((row["gpus"] for row in rows if row["measure"] == "all_reduce"), default=2)
    figure, axes = plt.subplots(2, 2, figsize=(13, 9))
    flags = [r["median_us"] for r in rows if r["measure"] == "flag" and "median_us" in r]
    flag = min(flags, default=None)

    def own(row: dict) -> int:
        return row["bytes"]

    puts = "put with notification, one way, 2 " + unit
    short = [row for row in rows if row["measure"] == "put_notify" and row["bytes"] <= SHORT]
    pair = lines_of(short, lambda r: r["blocks"] < 2, lambda r: r["system"])
    everyone = lines_of(short, lambda r: r["blocks"] > 1, lambda r: r["system"])
    rates = lines_of(rows, lambda r: r["measure"] == "put_rate" and r["bytes"] >= LONG, with_blocks)
    reduced = lines_of(
        rows, lambda r: r["measure"] == "all_reduce" and r["gpus"] == most, with_blocks
    )
    panel(axes[0, 0], f"{puts}: one pair", pair, "median_us", own, flag)
    panel(axes[0, 1], f"{puts}: all blocks at once", everyone, "median_us", own, flag)
    panel(
        axes[1, 0], f"puts in a row, 2 {unit}: rate", rates, "gb_per_s",
        lambda r: r["bytes"] * max(r["blocks"], 1),
    )  # fmt: skip
    panel(axes[1, 1], f"all_reduce, {most} {unit}", reduced, "median_us", own)
    for axis in (axes[0, 0], axes[0, 1]):
        axis.set_xlabel("bytes of a message")
    axes[1, 0].set_xlabel("bytes in flight, of all blocks")
    axes[1, 1].set_xlabel("bytes of a vector")
    versions = result["versions"]
    named = [f"{of} {versions[of]}" for of in ("NCCL", "NVSHMEM", "driver") if of in versions]
    machine = f"{len(result['gpus'])} x {result['gpus'][0]}" if result["gpus"] else "CPU devices"
    revision = versions["meshpost"][:10]
    title = ", ".join([machine, f"meshpost {revision}", *named, result["date"]])
    spread = f"lines: medians of {result['repetitions']}; bands: smallest to largest"
    figure.suptitle(f"{title}\n{spread}", fontsize=10, x=0.01, ha="left")
    figure.tight_layout(w_pad=3)
    figure.savefig(file, dpi=150)
    plt.close(figure)
