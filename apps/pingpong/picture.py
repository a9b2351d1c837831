"""Draws the ping-pong's times against the size of a message, and the halo exchange's gains."""

from __future__ import annotations

from pathlib import Path

COLOURS = {"host": "#b3432f", "stream": "#2f6db3", "kernel": "#3a8f4d"}
BYTES = ("B", "KiB", "MiB", "GiB")


def size_name(count: float) -> str:
    unit = 0
    while count >= 1024 and unit < len(BYTES) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:g} {BYTES[unit]}"


def floor_of(facts: dict, buffer: str) -> tuple[float, float] | None:
    """Latency (s) and bandwidth (bytes/s) of the floor 2 (latency + bytes / bandwidth).

    The latency is half the shortest round trip of all modes and contains the kernel. The bandwidth
    is the highest that any message of at least a 16th of the largest had beyond that latency. None
    if no message took longer than the shortest.
    """
    rows = [r for r in facts["results"] if r["buffer"] == buffer and not r["problem"]]
    if not rows:
        return None
    shortest = min(row["seconds"] for row in rows)
    largest = max(row["bytes"] for row in rows)
    rates = [
        2 * row["bytes"] / (row["seconds"] - shortest)
        for row in rows
        if 16 * row["bytes"] >= largest and row["seconds"] > shortest
    ]
    return (shortest / 2, max(rates)) if rates else None


def draw_exchange(facts: dict, file: Path) -> None:
    """Writes figure 13 or 18. `facts` is the program's report."""
    from matplotlib.figure import Figure

    buffers = [b for b in ("device", "host") if any(r["buffer"] == b for r in facts["results"])]
    figure = Figure(figsize=(6.2 * len(buffers), 7.4), dpi=130, layout="constrained")
    kernel = facts["kernel_seconds"]
    devices = " and ".join(facts["devices"])
    with_kernel = f"with a kernel of {kernel * 1e6:g} us before each put" if kernel else "no kernel"
    figure.suptitle(f"Figure {facts['figure']}: ping-pong, {with_kernel}\n{devices}", fontsize=10)
    axes = figure.subplots(2, len(buffers), squeeze=False, sharex=True, sharey="row")
    for column, buffer in enumerate(buffers):
        time, cpu = axes[0][column], axes[1][column]
        sizes: set[int] = set()
        for mode, colour in COLOURS.items():
            rows = sorted(
                (r for r in facts["results"] if (r["mode"], r["buffer"]) == (mode, buffer)),
                key=lambda row: row["bytes"],
            )
            if not rows:
                continue
            x = [row["bytes"] for row in rows]
            sizes |= set(x)
            us = {key: [row[key] * 1e6 for row in rows] for key in rows[0] if "quartile" in key}
            time.fill_between(
                x, us["lower_quartile"], us["upper_quartile"], color=colour, alpha=0.2
            )
            time.plot(x, [r["seconds"] * 1e6 for r in rows], ".-", color=colour, label=mode)
            cpu.plot(x, [r["cpu_seconds"] * 1e6 for r in rows], ".-", color=colour, label=mode)
        if found := floor_of(facts, buffer):
            latency, bandwidth = found
            x = sorted(sizes)
            floor = [2e6 * (latency + size / bandwidth) for size in x]
            label = f"2 ({latency * 1e6:.2f} us + bytes / {bandwidth / 1e9:.1f} GB/s)"
            time.plot(x, floor, "--", color="gray", lw=1, label=label)
        time.set(xscale="log", yscale="log", title=f"{buffer} buffers")
        cpu.set(xscale="log", yscale="log", xlabel="message")
        ticks = [size for size in (1, 32, 1024, 32768, 1 << 20, 1 << 25) if size <= max(sizes)]
        cpu.set_xticks(ticks, [size_name(size) for size in ticks])
        for axis in (time, cpu):
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)
    axes[0][0].set_ylabel("round trip, us (median, quartiles)")
    axes[1][0].set_ylabel("CPU time of the process a round trip, us")
    figure.savefig(file)


def gains(facts: dict) -> list[dict]:
    """Results of the modes stream and kernel, with `gain`: percent of the host's time saved."""
    host = {
        (r["cube"], r["steps"], *r["tasks"]): r["seconds"]
        for r in facts["results"]
        if r["mode"] == "host"
    }
    if not host:
        raise ValueError("a gain is over the mode host, which was not measured")
    found = []
    for one in facts["results"]:
        key = (one["cube"], one["steps"], *one["tasks"])
        if one["mode"] != "host" and key in host:
            found.append(one | {"gain": 100 * (1 - one["seconds"] / host[key])})
    return found


def draw_halo(facts: dict, file: Path) -> None:
    """Writes the gains over repetitions, sizes and numbers of kernels."""
    from matplotlib.figure import Figure

    found = gains(facts)
    first = facts["results"][0]["tasks"]
    most = max(r["steps"] for r in facts["results"])
    cubes = sorted({r["cube"] for r in facts["results"]})
    figure = Figure(figsize=(15, 4.8), dpi=130, layout="constrained")
    blocks = "x".join(map(str, facts["blocks"]))
    figure.suptitle(
        f"Halo exchange, {blocks} blocks on {len(facts['devices'])} devices "
        f"({facts['devices'][0]}, ...): time saved against mode host",
        fontsize=10,
    )
    over_steps, over_sizes, over_tasks = figure.subplots(1, 3, sharey=True)
    styles = {"stream": "o-", "kernel": "s--"}
    for mode, style in styles.items():
        plain = [r for r in found if r["mode"] == mode and r["tasks"] == first]
        for place, cube in enumerate(cubes):
            rows = sorted((r["steps"], r["gain"]) for r in plain if r["cube"] == cube)
            if rows:
                over_steps.plot(
                    *zip(*rows, strict=True),
                    style,
                    ms=4,
                    color=f"C{place}",
                    label=f"{mode}, {cube}³",
                )
        rows = sorted((r["cube"], r["gain"]) for r in plain if r["steps"] == most)
        if rows:
            colour = COLOURS[mode]
            over_sizes.plot(*zip(*rows, strict=True), style, ms=4, color=colour, label=mode)
    counts = {c: len({tuple(r["tasks"]) for r in found if r["cube"] == c}) for c in cubes}
    cube = max(counts, key=lambda one: counts[one])
    rows = [r for r in found if r["cube"] == cube and r["steps"] == most]
    names = list(dict.fromkeys(",".join(map(str, r["tasks"])) for r in rows))
    for shift, mode in ((-0.2, "stream"), (0.2, "kernel")):
        heights = {",".join(map(str, r["tasks"])): r["gain"] for r in rows if r["mode"] == mode}
        places = [names.index(name) + shift for name in heights]
        over_tasks.bar(places, heights.values(), 0.38, color=COLOURS[mode], label=mode)
    over_tasks.set_xticks(range(len(names)), names)
    over_steps.set(xscale="log", xlabel="repetitions of the step", ylabel="time saved, %")
    over_sizes.set(xscale="log", xlabel=f"points of a device along an axis, {most} repetitions")
    over_sizes.set_xticks(cubes, [str(cube) for cube in cubes])
    over_sizes.minorticks_off()
    over_tasks.set(xlabel=f"kernels X,Y,Z of a step, {cube}³, {most} repetitions")
    for axis in (over_steps, over_sizes, over_tasks):
        axis.grid(alpha=0.3)
        axis.axhline(0, color="gray", lw=0.8)
        axis.legend(fontsize=7)
    figure.savefig(file)
