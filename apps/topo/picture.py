"""Draws a machine: its places on a ring of boxes joined by links, and the matrix of rates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

COLOURS = {"host_threads": "tab:green", "copy_engine": "tab:blue", "through_host": "tab:red"}
MOVERS = {
    "host_threads": "threads of the host",
    "copy_engine": "a device's copy engine",
    "through_host": "the driver, through the host",
}


def fastest(machine: dict) -> dict[tuple[str, str], dict]:
    """The fastest link of each ordered pair of places."""
    best: dict[tuple[str, str], dict] = {}
    for link in machine["links"]:
        pair = link["from"], link["to"]
        if pair not in best or link["rate"] > best[pair]["rate"]:
            best[pair] = link
    return best


def groups(machine: dict) -> list[list[dict]]:
    """The places of each NUMA node, host memory first; a node is drawn as one column."""
    nodes: dict[int, list[dict]] = {}
    for place in machine["places"]:
        nodes.setdefault(place["numa_node"], []).append(place)
    return [nodes[number] for number in sorted(nodes)]


def positions(machine: dict) -> dict[str, tuple[float, float]]:
    """Devices in a row, host memory of their node beneath them."""
    where, x = {}, 0.0
    for places in groups(machine):
        devices = [p["place"] for p in places if not p["place"].startswith(("pageable", "pinned"))]
        host = [p["place"] for p in places if p["place"] not in devices]
        width = max(len(devices), len(host), 1)
        for row, names in ((1.0, devices), (0.0, host)):
            for i, name in enumerate(names):
                # Devices on an arc, so that links between non-adjacent devices can be told apart.
                lift = 0.45 * math.sin(math.pi * (i + 0.5) / width) if row else 0.0
                where[name] = (x + (i + 0.5) * width / len(names), row + lift)
        x += width + 0.5
    return where


def gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.0f}" if rate >= 9.95e9 else f"{rate / 1e9:.1f}"


def draw_links(axis, machine: dict) -> None:
    where, links = positions(machine), fastest(machine)
    most = max((link["rate"] for link in machine["links"]), default=0) or 1
    used = set()
    for (source, target), link in links.items():
        back = links.get((target, source))
        if source >= target and back is not None:
            continue  # one line for both directions, none within a place
        rate = min(link["rate"], back["rate"]) if back else link["rate"]
        (x, y), (u, v) = where[source], where[target]
        mover = link["mover"]
        used.add(mover)
        wide = 0.6 + 5 * math.sqrt(rate / most)
        style = "--" if mover == "through_host" else "-"
        axis.plot([x, u], [y, v], style, color=COLOURS[mover], linewidth=wide, alpha=0.45, zorder=1)
    for place in machine["places"]:
        x, y = where[place["place"]]
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "0.3"}
        axis.text(x, y, place["place"], ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    for mover in sorted(used):
        style = "--" if mover == "through_host" else "-"
        axis.plot([], [], style, color=COLOURS[mover], linewidth=3, label=MOVERS[mover])
    media = sorted({link["medium"] for (a, b), link in links.items() if a != b})
    axis.set_title("links, wider is faster: " + ", ".join(media), fontsize=10)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0), frameon=False, fontsize=8, ncols=3)
    axis.margins(0.12, 0.15)
    axis.set_axis_off()


def draw_matrix(figure, axis, machine: dict) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import NullLocator

    names = [place["place"] for place in machine["places"]]
    rates = np.full((len(names), len(names)), np.nan)
    for (source, target), link in fastest(machine).items():
        if link["rate"] > 0:
            rates[names.index(source), names.index(target)] = link["rate"] / 1e9
    known = rates[np.isfinite(rates)]
    if known.size == 0:
        axis.text(0.5, 0.5, "not measured", ha="center", transform=axis.transAxes)
        axis.set_axis_off()
        return
    low, high = known.min(), known.max()
    norm = LogNorm(low * 0.7, high * 1.4)
    image = axis.imshow(rates, cmap="viridis", norm=norm)
    size = max(5, min(9, 90 / len(names)))
    for row, column in zip(*np.nonzero(np.isfinite(rates)), strict=True):
        value = rates[row, column]
        dark = norm(value) < 0.6
        text = gigabytes(value * 1e9)
        colour = "white" if dark else "black"
        axis.text(column, row, text, ha="center", va="center", color=colour, fontsize=size)
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=size)
    axis.set_yticks(range(len(names)), names, fontsize=size)
    axis.set_xlabel("to")
    axis.set_ylabel("from")
    axis.set_title("GB/s of one link alone", fontsize=10)
    bar = figure.colorbar(image, ax=axis, shrink=0.8, label="GB/s")
    bar.set_ticks(np.geomspace(low, high, 5 if high > 1.2 * low else 1))
    bar.ax.yaxis.set_major_formatter(lambda value, _: gigabytes(value * 1e9))
    bar.ax.yaxis.set_minor_locator(NullLocator())


def draw(machine: dict, file: Path) -> None:
    """Draws `machine`, as meshpost-topo --json writes it, into `file`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 6.5), dpi=130, layout="constrained")
    figure.suptitle(f"{machine['host']}: memories and links", fontsize=13)
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
    draw_links(left, machine)
    draw_matrix(figure, right, machine)
    figure.savefig(file)
