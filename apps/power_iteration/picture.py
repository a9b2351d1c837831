"""Draws how fast |A b| converges."""

from __future__ import annotations

from pathlib import Path


def changes(lengths: list[float]) -> list[float]:
    """How much each length differs from the last one, as a part of it."""
    return [abs(length / lengths[-1] - 1) for length in lengths]


def draw(facts: dict, file: Path) -> None:
    """Writes the picture. `facts` is the program's report."""
    from matplotlib.figure import Figure

    lengths = facts["lengths"]
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(lengths) + 1), lengths, ".-", color="#2f6db3")
    left.set(xlabel="iteration", ylabel="|A b|", title=f"in the end {lengths[-1]:.12g}")
    right.semilogy(
        range(1, len(lengths)),
        [max(c, 1e-17) for c in changes(lengths)[:-1]],
        ".-",
        color="#b3432f",
    )
    right.set(xlabel="iteration", title="relative difference from the last")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=130)
