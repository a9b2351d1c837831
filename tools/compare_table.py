"""The comparison as text: results by system and size, missing results, and what was timed."""

from __future__ import annotations

from compare_petsc import lines_of as petsc_lines
from compare_studies import lines_of

ORDER = (
    "launch",
    "launch_queued",
    "launch_graph",
    "flag",
    "notify",
    "put_notify",
    "stream_put",
    "stream_put_graph",
    "put_rate",
    "barrier",
    "all_reduce",
)
TITLES = {
    "launch": "empty kernel, launched and waited for",
    "launch_queued": "empty kernel, queued, each",
    "launch_graph": "empty kernel, in a graph, each",
    "flag": "bare flag, one way",
    "notify": "notification alone, one way",
    "put_notify": "put with notification, one way",
    "stream_put": "a stream's put and notification",
    "stream_put_graph": "the same, in a graph",
    "put_rate": "puts in a row, each",
    "barrier": "barrier",
    "all_reduce": "all_reduce",
}


def size(number: int) -> str:
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= factor and number % factor == 0:
            return f"{number // factor} {unit}"
    return f"{number} B"


def blocks(row: dict) -> str:
    return str(row["blocks"]) if row["blocks"] else "library's"


def order(row: dict) -> tuple:
    measures = ORDER.index(row["measure"]) if row["measure"] in ORDER else len(ORDER)
    many = (row["blocks"] > 1, row["blocks"])
    return (measures, row["gpus"], row["bytes"], many, row["system"])


def numbered(rows: list[dict]) -> dict[str, int]:
    """A number for each timed operation."""
    return {timed: n for n, timed in enumerate(dict.fromkeys(row["timed"] for row in rows), 1)}


def described(rows: list[dict], notes: dict[str, int]) -> list[str]:
    lines = []
    for timed, number in notes.items():
        systems = dict.fromkeys(row["system"] for row in rows if row["timed"] == timed)
        lines.append(f"[{number}] {' and '.join(systems)}: {timed}")
    return lines


def cells(row: dict, note: int) -> tuple[str, ...]:
    head = (size(row["bytes"]) if row["bytes"] else "", blocks(row), row["system"])
    if "skipped" in row:
        return (*head, "-", "", "", "", f"[{note}] {row['skipped']}")
    rate = f"{row['gb_per_s']:.3g}" if "gb_per_s" in row else ""
    times = (f"{row[key]:.3f}" for key in ("median_us", "min_us", "max_us"))
    return (*head, *times, rate, f"[{note}]")


def table(
    rows: list[dict],
    missing: list[dict],
    unit: str = "GPUs",
    studies: list[dict] | None = None,
    cg: dict | None = None,
) -> str:
    """`unit` is the kind of devices: GPUs or CPU devices."""
    rows = sorted(rows, key=order)
    notes = numbered(rows)
    header = ("bytes", "blocks", "system", "median us", "min", "max", "GB/s", "timed")
    sections: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        title = f"{TITLES.get(row['measure'], row['measure'])}, {row['gpus']} {unit}"
        lines = sections.setdefault(title, [])
        lines.append(cells(row, notes[row["timed"]]))
    every = [header, *(line for lines in sections.values() for line in lines)]
    widths = [max(len(line[i]) for line in every) for i in range(len(header))]

    def text(line: tuple[str, ...]) -> str:
        aligned = [
            cell.ljust(width) if i in (2, 7) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(aligned).rstrip()

    out = []
    for title, lines in sections.items():
        out += [title, text(header), *map(text, lines), ""]
    out += lines_of(studies or [])
    out += petsc_lines(cg)
    if notes:
        out.append("what was timed (blocks: of each device; GB/s: of all blocks together)")
        out += described(rows, notes)
    if missing:
        out += ["", "missing"]
        out += [f"{one['what']}: {one['reason']}; {one['remedy']}" for one in missing]
    return "\n".join(out)
