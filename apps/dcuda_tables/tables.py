"""The tables: the thesis's figure beside ours, each of ours with its 95 % interval."""

from __future__ import annotations

import math

import intervals
import seed

OTHER = ("ofi", "mpi")


def place_of(job: str) -> str:
    """The place in the thesis's tables that a job measures."""
    return "other" if job in OTHER else job


def samples(runs: list[dict], name: str) -> list[float]:
    """A figure of each start: the median of its repetitions, in seconds."""
    return [run[name]["seconds"]["median"] for run in runs]


def points(run: dict, one: bool) -> list[tuple[float, float]]:
    """Bytes of all pairs and seconds of one start: of one pair, or of all."""
    most = max(entry["pairs"] for entry in run["bandwidth"])
    pairs = 1 if one else most
    return [
        (entry["bytes"] * pairs, entry["seconds"]["median"])
        for entry in run["bandwidth"]
        if entry["pairs"] == pairs
    ]


def fit(runs: list[dict], one: bool) -> intervals.Hockney | None:
    """Hockney's line; None if there are not two sizes."""
    starts = [points(run, one) for run in runs]
    if any(len({x for x, _ in start}) < 2 for start in starts):
        return None
    return intervals.hockney(starts)


def show(value: intervals.Value | None, scale: float) -> str:
    """A figure and its interval in a unit."""
    if value is None:
        return "-"
    if value.lower is None:
        return f"{scale * value.value:.3g}"
    upper = "inf" if math.isinf(value.upper) else f"{scale * value.upper:.3g}"
    return f"{scale * value.value:.3g} ({scale * value.lower:.3g} to {upper})"


def show_seed(values: tuple) -> str:
    return " / ".join("-" if value is None else f"{value:g}" for value in values)


def latency(facts: dict) -> list[str]:
    rows = [f"{'one way, us':<30} {'thesis: verbs/MPI/original':<28} here"]
    for (what, place), theirs in seed.LATENCY.items():
        for job, runs in facts["jobs"].items():
            if place_of(job) != place:
                continue
            label = f"{what}, {seed.PLACES[job]}" + (f", {job}" if job in OTHER else "")
            ours = show(intervals.median(samples(runs, what)), 1e6)
            rows.append(f"{label:<30} {show_seed(theirs):<28} {ours}")
    return [*rows, "(access: a put of 4 bytes with its notification)"]


def host(facts: dict) -> list[str]:
    runs = facts["jobs"].get("device", [])
    if not runs:
        return []
    ours = [
        intervals.median([run["host"][i]["seconds"]["median"] for run in runs]) for i in range(2)
    ]
    flag, device, queues = seed.HOST
    return [
        f"{'host-device round trip, us':<30} {'thesis':<28} here",
        f"{flag:<30} {seed.HOST[flag]:<28} {show(ours[0], 1e6)}",
        f"{device:<30} {seed.HOST[device]:<28} not measured: a host needs gdrCOPY for it",
        f"{queues:<30} {show_seed(seed.HOST[queues]):<28} {show(ours[1], 1e6)} (notifications)",
    ]


def bandwidth(facts: dict) -> list[str]:
    rows = [
        f"{'bandwidth, GB/s':<30} {'thesis: GPUDirect/staged':<28} here; latency of the fit, us"
    ]
    for job, runs in facts["jobs"].items():
        for ranks in ("one", "all"):
            found = fit(runs, ranks == "one")
            theirs = show_seed(seed.BANDWIDTH[place_of(job), ranks])
            label = f"{seed.PLACES[job]}" + (f", {job}" if job in OTHER else "") + f", {ranks}"
            if found is None:
                ours = "not fitted: it needs two sizes"
            elif found.bandwidth is None:
                ours = "none: the time does not grow with the bytes"
            else:
                ours = f"{show(found.bandwidth, 1e-9)}; {show(found.latency, 1e6)}"
            rows.append(f"{label:<30} {theirs:<28} {ours}")
    return rows


def text(facts: dict) -> str:
    """All tables."""
    rows = [*latency(facts), "", *host(facts), "", *bandwidth(facts)]
    rows += [f"{job:<30} not measured: {reason}" for job, reason in facts["missing"].items()]
    devices = sorted({run["device"] for runs in facts["jobs"].values() for run in runs})
    rows += ["", f"devices here: {'; '.join(devices)}", intervals_note(facts["starts"])]
    return "\n".join(rows)


def intervals_note(starts: int) -> str:
    if starts < 2:
        return "one start of each job: no intervals"
    medians = "" if starts >= 6 else "; those of medians need 6 starts"
    return f"in parentheses: intervals of 95 % over {starts} starts of each job{medians}"
