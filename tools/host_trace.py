"""Reads a timeline of the host and its streams, and finds the steps that repeat in it."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
from collections import defaultdict
from pathlib import Path

SENDS = ("write", "notify", "read")  # categories of the host's own messages
STREAM_WAITS = ("wait", "receive")  # calls that let a stream wait
LEAST_STEPS = 3


class TraceError(ValueError):
    """A timeline can't be used. Says what is wrong and what to do."""


@dataclasses.dataclass(frozen=True)
class Span:
    """A call of the host, or an operation of a stream. Times in us."""

    name: str
    category: str
    start: float
    length: float
    of: str = ""  # a task's or kernel's name

    @property
    def stop(self) -> float:
        return self.start + self.length

    @property
    def token(self) -> tuple[str, str, str]:
        return self.category, self.name, self.of


@dataclasses.dataclass(frozen=True)
class Steps:
    """The part of a thread's calls that repeats: calls[first:] has `count` times `calls_each`."""

    calls: list[Span]
    calls_each: int
    count: int


@dataclasses.dataclass(frozen=True)
class HostTrace:
    """A timeline: the calls of the busiest thread, and the rows of streams and runs."""

    path: Path
    calls: list[Span]
    threads: int
    rows: dict[str, list[Span]]
    runs: list[Span]

    @functools.cached_property
    def steps(self) -> Steps:
        """See find_steps."""
        return find_steps(self)


def argument(event: dict, name: str) -> str:
    """One of the event's arguments, as text."""
    given = event.get("args")
    return str(given.get(name, "")) if isinstance(given, dict) else ""


def read_host_trace(path: Path) -> HostTrace:
    """Reads a timeline of MESHPOST_TRACE_HOST. Raises TraceError if it is none."""
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise TraceError(
            f"can't read {path}: {error.strerror}; record it with MESHPOST_TRACE_HOST=FILE"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TraceError(
            f"{path} is no JSON: {error}; record it again, and let the program end by itself"
        ) from error
    events = content.get("traceEvents") if isinstance(content, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise TraceError(
            f"{path} has no list 'traceEvents', so it is no timeline: record one with "
            "MESHPOST_TRACE_HOST=FILE"
        )
    more = content.get("otherData")
    more = more if isinstance(more, dict) else {}
    if more.get("host") != 1:
        raise TraceError(
            f"{path} has no row for the host: record it with MESHPOST_TRACE_HOST=FILE or "
            "WorldOptions::trace_host (MESHPOST_TRACE has the ranks only)"
        )
    if more.get("lost_events", 0) != 0:
        raise TraceError(
            f"{path} has lost {more['lost_events']} events: raise MESHPOST_TRACE_EVENTS, or "
            "record fewer steps"
        )
    names = {
        (str(event.get("pid")), str(event.get("tid"))): argument(event, "name")
        for event in events
        if event.get("ph") == "M" and event.get("name") == "thread_name"
    }
    threads, rows, runs = defaultdict(list), defaultdict(list), []
    for event in events:
        if event.get("ph") != "X":
            continue
        values = [event.get(key) for key in ("ts", "dur", "pid", "tid")]
        if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
            raise TraceError(
                f"{path}: event {json.dumps(event)[:120]} has no numbers for its time and row; "
                "record the timeline again"
            )
        of = argument(event, "of")
        span = Span(str(event.get("name")), str(event.get("cat")), values[0], values[1], of)
        row = values[2], values[3]
        if values[2] == 0:
            threads[row].append(span)
        elif span.category == "run":
            runs.append(span)
        else:
            name = names.get((str(row[0]), str(row[1])), row[1])
            rows[f"{name} (row {row[1]})"].append(span)
    if not threads:
        raise TraceError(
            f"{path} has no calls of the host: record a program that queues work on streams, or "
            "launches runs"
        )
    for some in (*threads.values(), *rows.values(), runs):
        some.sort(key=lambda span: span.start)
    calls = max(threads.values(), key=len)
    return HostTrace(Path(path), calls, len(threads), dict(rows), runs)


def find_steps(trace: HostTrace) -> Steps:
    """The shortest group of calls that repeats, and covers most of the calls that repeat at all."""
    calls = [call for call in trace.calls if call.category != "other"]
    # A name with a number such as "step 7" differs from step to step.
    tokens = [tuple(re.sub(r"\d+", "#", part) for part in call.token) for call in calls]
    numbers: dict[tuple, int] = {}
    tokens = [numbers.setdefault(token, len(numbers)) for token in tokens]
    found = []
    for each in range(1, len(tokens) // LEAST_STEPS + 1):
        first = length = 0
        best = (0, 0)
        for i in range(len(tokens) - each):
            length = length + 1 if tokens[i] == tokens[i + each] else 0
            if length == 1:
                first = i
            best = max(best, (length, -first))
        count = (best[0] + each) // each
        if best[0] and count >= LEAST_STEPS:
            found.append((count * each, -each, -best[1]))
            if count * each >= 0.9 * len(tokens):
                break
    most = max((covered for covered, _, _ in found), default=0)
    good = [one for one in found if one[0] >= 0.8 * most]
    if not good or most < 0.5 * len(tokens):
        raise TraceError(
            f"{trace.path}: no repetition found in {len(tokens)} calls of the host: the loop must "
            f"make the same calls in at least {LEAST_STEPS} steps, and most calls must be its own"
        )
    covered, each, first = max(good, key=lambda one: one[1])
    each = -each
    # Calls before the loop may look like the end of a step: it begins at a launch, if it can.
    for shift in range(each):
        at = first + shift
        before = calls[at - 1].category if at else "other"
        if calls[at].category == "launch" and before != "launch" and at + covered <= len(calls):
            first = at
            break
    return Steps(calls[first : first + covered], each, covered // each)


def classes(steps: Steps, given: dict[str, str]) -> dict[str, str]:
    """A, B or C for each task of the steps: as given, as its name says, or by its place."""
    step = steps.calls[: steps.calls_each]

    def message(call: Span) -> str | None:
        if call.name in (*STREAM_WAITS, "Window::wait"):
            return "wait"
        return "send" if call.category in ("queue", *SENDS) else None

    found, kinds = {}, [message(call) for call in step]
    tasks = [i for i, call in enumerate(step) if call.category == "launch"]
    if not tasks:
        raise TraceError(
            "the steps have no tasks: name the work on streams with StreamEndpoint::task, or "
            "launch runs"
        )
    if unknown := set(given) - {step[i].of for i in tasks}:
        raise TraceError(
            f"--map names {', '.join(sorted(unknown))}, which is no task of a step; give one of "
            f"{', '.join(sorted({step[i].of for i in tasks}))}"
        )
    if not any(kinds):
        raise TraceError("the steps send nothing and wait for nothing: the model does not apply")
    for i in tasks:
        name = step[i].of
        if name in found:
            continue
        around = kinds[i:] + kinds[:i]  # from this call on, around the loop
        behind = next(kind for kind in around if kind)
        before = next(kind for kind in reversed(around) if kind)
        up_to = i + next(n for n, kind in enumerate(around) if kind)
        last = not any(
            step[j % len(step)].category == "launch" and step[j % len(step)].of != name
            for j in range(i + 1, up_to)
        )
        if name in given:
            found[name] = given[name]
        elif match := re.match(r"([ABC])(?![A-Za-z0-9_])", name):
            found[name] = match[1]
        elif behind == "send":
            found[name] = "A" if last or before == "send" else "C"
        else:
            found[name] = "B" if before == "send" else "C"
    # Names with a number differ from step to step.
    for i, call in enumerate(steps.calls):
        if call.category == "launch":
            found.setdefault(call.of, found[step[i % steps.calls_each].of])
    return found
