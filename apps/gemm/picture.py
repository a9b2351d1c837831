"""Draws rate and speed-up against the size of the matrices."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def lines(report: dict) -> dict[str, list[tuple[int, float]]]:
    """The curves: names to points (n, value), ordered by n. Rates are in GFlop/s."""
    results = sorted(report["results"], key=lambda result: result["n"])
    found: dict[str, list[tuple[int, float]]] = {
        "all": [],
        "one": [],
        "openblas": [],
        "speedup": [],
    }
    for result in results:
        n = result["n"]
        operations = 2e-9 * result["m"] * n * result["k"]
        found["all"].append((n, result["gflops"]))
        if result["one_device_seconds"] is not None:
            found["one"].append((n, result["one_device_gflops"]))
            found["speedup"].append((n, result["speedup"]))
        if result["openblas_seconds"] is not None:
            found["openblas"].append((n, operations / result["openblas_seconds"]))
    return found


def draw_variants(variants: list[dict], file: Path) -> None:
    """Writes the picture of several runs: the rate of each as one curve, and its speed-up."""
    reports = [variant["report"] for variant in variants]
    count = max(len(report["devices"]) for report in reports)
    model = reports[0]["devices"][0].partition(" (")[2].removesuffix(")")
    figure, (rate, speedup) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    figure.suptitle(f"C = A B in {reports[0]['type']}, {count} x {model}")
    for variant, style in zip(variants, ("v-", "o-", "s-", "^-"), strict=False):
        found = lines(variant["report"])
        for axes, key in ((rate, "all"), (speedup, "speedup")):
            if found[key]:
                axes.plot(
                    *zip(*found[key], strict=True), style, markersize=4, label=variant["name"]
                )
    rate.set(xlabel="N", ylabel="GFlop/s", ylim=(0, None))
    speedup.axhline(count, color="gray", linestyle="--", label=f"ideal: {count}")
    speedup.set(xlabel="N", ylabel="speed-up against one device", ylim=(0, None))
    for axes in (rate, speedup):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=120)
    plt.close(figure)


def draw(report: dict, file: Path) -> None:
    """Writes the picture. `report` is the program's, or holds those of several runs."""
    if "variants" in report:
        draw_variants(report["variants"], file)
        return
    count = len(report["devices"])
    model = report["devices"][0].partition(" (")[2].removesuffix(")")
    rows, columns = report["grid"]
    peer = {True: ", peer access", False: ", no peer access", None: ""}[report["peer"]]
    found = lines(report)
    figure, (rate, speedup) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    figure.suptitle(f"C = A B in {report['type']}, {count} x {model} as {rows} x {columns}{peer}")
    names = {"all": f"{count} devices", "one": "one device", "openblas": "OpenBLAS, all threads"}
    styles = {"all": "o-", "one": "s-", "openblas": "^:"}
    for key, name in names.items():
        if found[key] and not (key == "one" and count == 1):
            rate.plot(*zip(*found[key], strict=True), styles[key], markersize=4, label=name)
    rate.set(xlabel="N", ylabel="GFlop/s", ylim=(0, None))
    rate.legend()
    if found["speedup"]:
        speedup.plot(*zip(*found["speedup"], strict=True), "o-", markersize=4)
    speedup.axhline(count, color="gray", linestyle="--", label=f"ideal: {count}")
    speedup.set(xlabel="N", ylabel="speed-up against one device", ylim=(0, None))
    speedup.legend()
    for axes in (rate, speedup):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=120)
    plt.close(figure)
