"""Draws runs in one process and in several side by side: four panels, and their ratio."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import picture

WITH_PEERS = ("driver", "memcpy")  # in one process, whichever was measured
WITHOUT_PEERS = ("no_peers",)
WITH_IPC, WITHOUT_IPC = ("put", "get"), ("put_staged", "get_staged")  # in several; the faster


def of_processes(report: dict) -> bool:
    """True if the run had several processes: "1/cuda:0" is a place of process 1."""
    return any("/" in place for place in report["places"])


def in_order(first: dict, second: dict) -> tuple[dict, dict]:
    """The run in one process, then the one in several."""
    return (second, first) if of_processes(first) else (first, second)


def fastest(report: dict, variants: tuple[str, ...], size: int) -> np.ndarray:
    """GB/s by the fastest of these variants (microseconds of small copies: the shortest)."""
    found = [name for name in variants if name in report["variants"]]
    if not found:
        raise ValueError(
            f"--beside: one of the runs has no variant {' or '.join(variants)}; "
            f"it has {', '.join(report['variants'])}: measure it without --variants"
        )
    best = np.fmin if size < picture.SMALL else np.fmax
    return best.reduce([picture.matrix(report, name, size) for name in found])


def common_size(one: dict, several: dict) -> int:
    """The largest size that both runs have."""
    sizes = [{result["bytes"] for result in report["results"]} for report in (one, several)]
    if not sizes[0] & sizes[1]:
        raise ValueError(
            f"--beside: the runs have no size in common, only {sorted(sizes[0])} and "
            f"{sorted(sizes[1])} bytes: give both the same --size"
        )
    return max(sizes[0] & sizes[1])


def counterparts(several: list[str]) -> dict[str, str]:
    """By place of a process, the place in a run of one process.

    Host memory is the same. Devices have their names, unless two processes have devices of the
    same name, as CPU devices do. Then they are counted over all processes.
    """
    inside = {place: place.partition("/")[2].replace("shared:", "pageable:") for place in several}
    kinds: dict[str, list[str]] = {}
    for place in several:
        kinds.setdefault(inside[place].partition(":")[0], []).append(place)
    for kind, places in kinds.items():
        names = [inside[place] for place in places]
        if kind not in ("pageable", "pinned") and len(set(names)) < len(names):
            inside |= {place: f"{kind}:{i}" for i, place in enumerate(places)}
    return inside


def peers_or_ipc(report: dict) -> tuple[str, ...]:
    """The variants with P2P of a run in one process, with IPC of one in several."""
    return WITH_IPC if of_processes(report) else WITH_PEERS


def ratios(base: dict, run: dict, size: int) -> np.ndarray:
    """The rates of `run` over those of `base`, by place of `run`; NaN if one was not measured."""
    below, above = (fastest(report, peers_or_ipc(report), size) for report in (base, run))
    if size < picture.SMALL:
        below, above = 1 / below, 1 / above
    places, at = run["places"], base["places"].index
    same_kind = of_processes(base) == of_processes(run)
    other = {place: place for place in places} if same_kind else counterparts(places)
    values = np.full_like(above, np.nan)
    for row, source in enumerate(places):
        for column, target in enumerate(places):
            if {other[source], other[target]} <= set(base["places"]):
                values[row, column] = (
                    above[row, column] / below[at(other[source]), at(other[target])]
                )
    if not np.isfinite(values).any():
        raise ValueError(
            "--beside: no pair was measured in both runs; measure "
            f"{', '.join(sorted(set(other.values())))} in the other one, for example with more "
            "--devices"
        )
    return values


def draw_panels(one: dict, several: dict, file: Path) -> None:
    """{one process, several} x {with, without P2P or IPC}, in one range of colours."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    size = common_size(one, several)
    small = size < picture.SMALL
    rows = [
        (one, [(WITH_PEERS, "one process, with P2P"), (WITHOUT_PEERS, "one process, without P2P")]),
        (several, [(WITH_IPC, "processes, with IPC"), (WITHOUT_IPC, "processes, without IPC")]),
    ]
    maps = [[fastest(report, names, size) for names, _ in panels] for report, panels in rows]
    known = np.concatenate([m[np.isfinite(m)] for row in maps for m in row])
    low, high = (known.min(), known.max()) if known.size else (1.0, 1.0)
    norm = LogNorm(low * 0.8, high * 1.25)
    colours = "viridis_r" if small else "viridis"
    side = max(4.0, 0.5 * max(len(one["places"]), len(several["places"])) + 1.2)
    figure = Figure(figsize=(2 * side + 1.5, 2 * side + 0.8), dpi=130, layout="constrained")
    figure.suptitle(f"Copies of {picture.size_name(size)} from the row's memory to the column's")
    axes = figure.subplots(2, 2, squeeze=False)
    for row, (report, panels), values in zip(axes, rows, maps, strict=True):
        for axis, (names, title), each in zip(row, panels, values, strict=True):
            image = picture.draw_map(axis, each, norm, colours, report["places"])
            found = [name for name in names if name in report["variants"]]
            axis.set_title(f"{title}\n{' or '.join(found)}", fontsize=9)
    bar = figure.colorbar(image, ax=list(axes.flat), label="us" if small else "GB/s", shrink=0.6)
    picture.set_ticks(bar, low, high)
    figure.savefig(file)


def in_words(report: dict) -> str:
    """What distinguishes a run: its processes, its variants and where it ran."""
    found = [name for name in peers_or_ipc(report) if name in report["variants"]]
    kind = "processes" if of_processes(report) else "one process"
    note = picture.placement(report)
    return f"{kind}, {' or '.join(found)}{note and f', {note}'}"


def draw_ratio(base: dict, run: dict, file: Path) -> None:
    """The rates of `run` over those of `base`."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    size = common_size(base, run)
    values = ratios(base, run, size)
    places = run["places"]
    known = np.abs(np.log(values[np.isfinite(values)]))
    most = max(1.25, float(np.exp(known.max())))
    side = max(4.5, 0.6 * len(places) + 1.5)
    figure = Figure(figsize=(side + 1.2, side), dpi=130, layout="constrained")
    axis = figure.subplots()
    image = picture.draw_map(
        axis, values, LogNorm(1 / most, most), "RdBu", places, form=lambda value: f"{value:.2f}"
    )
    axis.set_title(
        f"Rates with {picture.size_name(size)}: {in_words(run)}\nagainst {in_words(base)}",
        fontsize=9,
    )
    bar = figure.colorbar(image, ax=axis, label="ratio of the rates; blue: faster", shrink=0.8)
    picture.set_ticks(bar, 1 / most, most)
    figure.savefig(file)
