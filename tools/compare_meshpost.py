"""meshpost's own part of the comparison: its benchmark program, and its rows in the common form."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from bench import TO_US
from compare_peers import Ended, run_limited, summarised

MEASURES = {
    "flag_one_way": "flag",
    "notify_one_way": "notify",
    "put_notify_one_way": "put_notify",
    "put_stream": "put_rate",
    "barrier": "barrier",
    "all_reduce": "all_reduce",
    "run_nothing": "launch",
    "queue_nothing": "launch_queued",
    "graph_of_nothing": "launch_graph",
    "stream_put_notify_one_way": "stream_put",
    "stream_graph_one_way": "stream_put_graph",
}
TIMED = {
    "flag": "relaxed add to the other device, acquire polling there; half a round trip",
    "notify": "notify, wait; half a round trip",
    "put_notify": "put_notify by a rank, wait; half a round trip",
    "put_rate": "put_notify by a rank, 64 times (CPU: 8), wait of the other; ends with a reply",
    "barrier": "barrier of all ranks; delivers nothing by itself",
    "all_reduce": "all_reduce of a vector of each rank, maximum of doubles",
    "launch": "World::run; host's clock",
    "launch_queued": "200 times World::launch, one wait",
    "launch_graph": "a Graph of 20 runs, launched and waited for",
    "stream_put": "StreamEndpoint::put_notify and wait, all queued before; half a round trip",
    "stream_put_graph": "the same of 8 bytes, replayed from a CUDA graph for each GPU",
}


def systems(lanes: int) -> str:
    return "meshpost" if lanes else "meshpost, direct"


def whole(text: str) -> dict:
    """Google Benchmark's JSON. If the program ended early, the part that it had written."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        return json.loads(text[: text.rindex("}") + 1] + "]}")
    except ValueError:
        return {}


def rows_of(raw: dict, system: str, gpus: int) -> list[dict]:
    repeats: dict[str, list[dict]] = {}
    for one in raw.get("benchmarks", []):
        if one.get("run_type") == "iteration":
            repeats.setdefault(one["run_name"], []).append(one)
    rows = []
    for name, runs in repeats.items():
        kind, *axes = name.split("/")
        axis = {key: int(value) for key, _, value in (a.partition(":") for a in axes) if value}
        measure = MEASURES[kind]
        first = runs[0]
        blocks = first.get("pairs") or first.get("ranks", 0) / gpus
        row = {
            "system": system,
            "measure": measure,
            "timed": TIMED[measure],
            "gpus": gpus,
            "blocks": round(blocks) or 1,
            "bytes": axis.get("bytes", 0),
        }
        if first.get("error_occurred"):
            everyone = axis.get("all") == 1 or axis.get("ranks") == 0
            said = first.get("error_message", "")
            rows.append({**row, "skipped": said + (" (all blocks)" if everyone else "")})
            continue
        rows.append(summarised(row, [one["real_time"] * TO_US[one["time_unit"]] for one in runs]))
    return rows


def run_meshpost(
    program: Path,
    mode: str,
    gpus: int,
    devices: str,
    lanes: int,
    repetitions: int,
    sizes: list[int],
    limit: float,
) -> tuple[list[dict], dict, Ended]:
    """Rows, the context that the program prints (version, devices), and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.json"
        command = [
            str(program),
            f"--{mode}={','.join(map(str, sizes))}",
            f"--benchmark_repetitions={repetitions}",
            f"--benchmark_out={raw}",
            "--benchmark_out_format=json",
        ]
        environment = {"MESHPOST_DEVICES": devices, "MESHPOST_LANES": str(lanes)}
        ended = run_limited([command], limit, [environment])
        read = whole(raw.read_text() if raw.exists() else "")
    context = read.get("context", {})
    known = {k: v for k, v in context.items() if k == "meshpost" or re.match(r"(cuda|cpu):", k)}
    return rows_of(read, systems(lanes), gpus), known, ended
