"""The terms of the time model, from timelines, and its totals."""

from __future__ import annotations

import dataclasses
import heapq
from collections import defaultdict

from host_trace import SENDS, STREAM_WAITS, HostTrace, Steps, TraceError, classes

VERSIONS = ("synchronous", "stream", "kernel")
FEW_STEPS = 0.05  # C3: the first launch weighs less than this


@dataclasses.dataclass(frozen=True)
class Measured:
    """What a timeline says of its own time, in us."""

    path: str
    total: float
    steps: int | None  # not known of a kernel


def version_of(trace: HostTrace) -> str:
    """Of which version the timeline is."""
    if not trace.rows and len(trace.runs) == 1:
        return "kernel"
    steps = trace.steps
    step = steps.calls[: steps.calls_each]
    return "synchronous" if any(call.category == "sync" for call in step) else "stream"


def measure(trace: HostTrace, version: str) -> Measured:
    """The time from the first call of the loop to the end of its work."""
    if version == "kernel":
        run = trace.runs[0]
        return Measured(trace.path.name, run.length, None)
    steps = trace.steps
    begin, last = steps.calls[0].start, steps.calls[-1]
    spans = [*trace.runs, *(span for row in trace.rows.values() for span in row)]
    ends = [last.stop, *(span.stop for span in spans)]
    return Measured(trace.path.name, max(ends) - begin, steps.count)


def host_terms(steps: Steps, class_of: dict[str, str]) -> dict[str, float]:
    """The host's time of each term in a step, in us; `gap` is the host's own work between calls."""
    spent, now, stop = defaultdict(float), "TH", None
    for call in steps.calls:
        if stop is not None:
            spent["gap"] += max(0.0, call.start - stop)
        stop = call.stop
        if call.category == "launch":
            spent["L" + class_of[call.of]] += call.length
            now = "TH"
        elif call.category == "queue":
            waits = call.name in STREAM_WAITS
            spent["LW" if waits else "LS"] += call.length
            now = "W" if waits else "S"
        elif call.category == "sync":
            spent[now] += call.length  # it waits for what was queued last
        elif call.name == "Window::wait":
            spent["W"] += call.length
        elif call.category in SENDS:
            spent["S"] += call.length
    return {term: time / steps.count for term, time in spent.items()}


def device_terms(trace: HostTrace, steps: Steps, class_of: dict[str, str]) -> dict[str, float]:
    """The streams' time of each term in a step: those of the row with the longest sum, in us."""
    begin = steps.calls[0].start
    rows = trace.rows or {"runs": trace.runs}
    best: dict[str, float] = {}
    for row in rows.values():
        spent = dict.fromkeys("ABCSW", 0.0)
        for span in row:
            if span.start < begin:
                continue
            if span.category in ("task", "run"):
                # One that the loop does not launch is none of its own.
                if span.name in class_of:
                    spent[class_of[span.name]] += span.length
            else:
                spent["W" if span.category == "wait" else "S"] += span.length
        spent = {term: time / steps.count for term, time in spent.items()}
        if sum(spent[task] for task in "ABC") > sum(best.get(task, 0.0) for task in "ABC"):
            best = spent
    if not best:
        raise TraceError(
            f"{trace.path} has no times of tasks: put them on streams inside StreamEndpoint::task"
        )
    return best


def slowest_tasks(trace: HostTrace, steps: Steps, class_of: dict[str, str]) -> float:
    """The time of a step's tasks if each one waits for the one before on all rows, in us."""
    begin, longest = steps.calls[0].start, defaultdict(float)
    for row in trace.rows.values():
        seen = defaultdict(int)
        for span in row:
            if span.category == "task" and span.name in class_of and span.start >= begin:
                which = span.name, seen[span.name]
                seen[span.name] += 1
                longest[which] = max(longest[which], span.length)
    return sum(longest.values()) / steps.count


def host_delay(trace: HostTrace, steps: Steps) -> float | None:
    """The time that devices are idle because the host waits for them and launches again, in us.

    The host returns that late from the wait behind the last operation, and a device begins that
    late behind the first launch. The first launch also starts threads or loads code, which later
    ones don't: so the second delay counts at most as much as the first one. None if the timeline
    has not both.
    """
    spans = [span for row in trace.rows.values() for span in row]
    launched = steps.calls[0].start
    begun = min((span.start for span in spans if span.start >= launched), default=None)
    last = steps.calls[-1].stop
    waits = [call for call in trace.calls if call.category == "sync" and call.stop > last]
    if begun is None or not waits:
        return None
    done = max(span.stop for span in spans)
    back = min((call.stop for call in waits if call.stop >= done), default=done)
    return back - done + min(max(0.0, begun - steps.calls[0].stop), back - done)


def time_of_blocks(times, blocks: tuple[int, int, int], resident: int) -> float:
    """Time of a step whose blocks take their parts by tickets, those of A first, then B, then C.

    `times` are those of the three tasks as kernels of their own. There, a task of more blocks than
    are resident runs them in rounds, which share its time.
    """
    free, sent = [0.0] * resident, 0.0
    for task, (time, count) in enumerate(zip(times, blocks, strict=True)):
        rounds = max(1, -(-count // resident))
        for _ in range(count):
            begin = max(free[0], sent) if task == 2 else free[0]
            stop = begin + time / rounds
            heapq.heapreplace(free, stop)
            if task == 0:
                sent = stop  # the last block of A ends last
    return max(free)


@dataclasses.dataclass
class Model:
    """The model: timelines are added, then it reports."""

    given: dict[str, str]
    put: float | None = None
    wait: float | None = None
    blocks: tuple[int, int, int] | None = None
    resident: int | None = None
    sync: float | None = None
    host: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    device: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    count: int = 0  # R
    tasks: int = 0  # of a row, in a step
    rows: int = 1
    slowest: float = 0.0  # tasks of a step, of the stream version
    delay: float | None = None  # see host_delay, of the stream version

    def add(self, trace: HostTrace) -> None:
        """Takes the terms of a timeline of the synchronous or the stream version."""
        version, steps = version_of(trace), trace.steps
        if version in self.host:
            raise TraceError(f"{trace.path} is a second timeline of the {version} version")
        if self.count and self.count != steps.count:
            raise TraceError(
                f"{trace.path} has {steps.count} steps, the timeline before has {self.count}: "
                "record the same loop"
            )
        self.count = steps.count
        class_of = classes(steps, self.given)
        self.host[version] = host_terms(steps, class_of)
        self.device[version] = device_terms(trace, steps, class_of)
        step = steps.calls[: steps.calls_each]
        self.rows = max(1, len(trace.rows))
        self.tasks = -(-sum(call.category == "launch" for call in step) // self.rows)
        if version == "stream":
            self.slowest = slowest_tasks(trace, steps, class_of)
            self.delay = host_delay(trace, steps)
        threads = f", the busiest of {trace.threads} threads" if trace.threads > 1 else ""
        names = {call.of: class_of[call.of] for call in step if call.category == "launch"}
        tasks = ", ".join(f"{name} is {one}" for name, one in names.items() if name != one)
        self.notes.append(
            f"{trace.path.name}: {version} version, {steps.count} steps of {steps.calls_each} "
            f"calls of the host{threads}, {max(1, len(trace.rows))} rows of devices"
            + (f"; {tasks}" if tasks else "")
        )

    def terms(self) -> tuple[dict[str, float], dict[str, float]]:
        """The host's terms of the synchronous version, and the terms of the stream version."""
        sync, stream = self.host.get("synchronous"), self.host.get("stream")
        of_sync, of_stream = self.device.get("synchronous"), self.device.get("stream")
        gpu = dict(of_stream or of_sync)
        if not of_stream:
            # The host sends for all streams, one after the other; each stream sends its own.
            gpu["S"] = sync.get("S", 0.0) / self.rows
            gpu["W"] = of_sync["W"] or sync.get("W", 0.0)
        gpu["S"] = gpu["S"] if self.put is None else self.put
        gpu["W"] = gpu["W"] if self.wait is None else self.wait
        launches = {name: (stream or sync).get(name, 0.0) for name in ("LA", "LB", "LC")}
        there = [time for time in launches.values() if time]
        usual = sum(there) / max(1, len(there))
        for name in ("LS", "LW"):
            launches[name] = stream.get(name, 0.0) if stream else usual
        launches["gap"] = stream.get("gap", 0.0) if stream else 0.0
        if sync is None:
            delay = self.sync if self.sync is not None else self.delay or 0.0
            sync = {name: stream.get(name, 0.0) for name in ("LA", "LB", "LC")}
            sync["TH"] = max(self.slowest, sum(gpu[name] for name in "ABC")) + self.tasks * delay
            # A message of the host ends a copy, and its wait is one more.
            sync |= {"S": gpu["S"] * self.rows + delay, "W": gpu["W"] + delay}
        return sync, launches | gpu

    def overlap(self, gpu: dict[str, float]) -> tuple[float, float, float | None]:
        """Time of a step of the kernel version: at best, at worst, and by the blocks if given.

        C needs A and S of the neighbour, so only B overlaps with the others.
        """
        times = gpu["A"] + gpu["S"], gpu["B"], gpu["W"] + gpu["C"]
        best, worst = max(times[0] + times[2], times[1]), sum(times)
        if not self.blocks:
            return best, worst, None
        return best, worst, time_of_blocks(times, self.blocks, self.resident)

    def report(self, measured: dict[str, list[Measured]]) -> list[str]:
        """Terms, totals, conditions, and what they recommend."""
        sync, stream = self.terms()
        host = sum(stream[name] for name in ("LA", "LS", "LB", "LW", "LC", "gap"))
        gpu = sum(stream[name] for name in "ASBWC")
        first = stream["LA"]  # nothing runs meanwhile
        best, worst, likely = self.overlap(stream)
        count = self.count
        total = {
            "synchronous": count * sum(sync.values()),
            "stream": first + count * max(host, gpu),
        }
        kernel = count * best, count * worst
        total["kernel"] = count * likely if likely is not None else None
        lines = [*self.notes, "", "us a step      " + "".join(f"{n:>9}" for n in TERMS)]
        lines.append("synchronous    " + columns(sync))
        lines.append("stream: host   " + columns(stream, "L"))
        lines.append("stream: device " + columns({name: stream[name] for name in "ABCSW"}))
        lines += ["", f"{'version':<13}{'model, us':>24}{'measured':>12}{'error':>8}"]
        for version in VERSIONS:
            value = total[version]
            text = f"{value:.0f}" if value is not None else f"{kernel[0]:.0f} to {kernel[1]:.0f}"
            lines.append(
                f"{version:<13}{text:>24}" + self.compared(version, value, kernel, measured)
            )
        lines += ["", *self.conditions(sync, stream, host, gpu, first, total)]
        return [*lines, "", recommendation(total, kernel)]

    def compared(self, version: str, value: float | None, kernel, measured) -> str:
        """Columns with the measured total, the median of several, and the model's error."""
        runs = measured.get(version)
        if not runs:
            return ""
        for run in runs:
            if run.steps not in (None, self.count):
                raise TraceError(
                    f"{run.path} has {run.steps} steps, the model {self.count}: record the same "
                    "loop"
                )
        true = sorted(run.total for run in runs)[len(runs) // 2]
        if not true > 0:
            raise TraceError(f"{runs[0].path} takes {true:.0f} us: record a longer loop")
        if value is None:
            near = min(max(true, kernel[0]), kernel[1])
            inside = "within" if near == true else f"{(near - true) / true:+.1%}"
            return f"{true:12.0f}{inside:>8}"
        return f"{true:12.0f}{(value - true) / true:+8.1%}"

    def conditions(self, sync, stream, host, gpu, first, total) -> list[str]:
        """C1 to C3, each with its numbers."""
        idle = sum(sync.values()) - sum(stream[name] for name in "ABC")
        messages = stream["S"] + stream["W"]
        share = first / total["stream"]

        def told(holds: bool) -> str:
            return "holds" if holds else "fails"

        return [
            f"C1 {told(host < gpu)}: the host launches a step in {host:.1f} us, the device works "
            f"{gpu:.1f} us",
            f"C2 {told(messages < idle)}: messages of streams take {messages:.1f} us a step, the "
            f"device of the synchronous version is idle for {idle:.1f} us",
            f"C3 {told(share < FEW_STEPS)}: the first launch, which overlaps with nothing, is "
            f"{share:.2%} of {self.count} steps",
        ]


TERMS = ("LA", "LS", "LB", "LW", "LC", "A", "S", "B", "W", "C", "TH", "gap")


def columns(terms: dict[str, float], begin: str = "") -> str:
    """A line of the table of terms."""
    shown = {name: time for name, time in terms.items() if name.startswith(begin) or name == "gap"}
    return "".join(f"{shown[name]:9.1f}" if name in shown else " " * 9 for name in TERMS)


def recommendation(total: dict[str, float | None], kernel: tuple[float, float]) -> str:
    """Which version would pay, and by how much."""
    sync, stream = total["synchronous"], total["stream"]
    one = total["kernel"]
    low, high = (one, one) if one is not None else kernel

    def gain(time: float) -> str:
        return f"{sync - time:.0f} us, {(sync - time) / sync:.1%}"

    if min(stream, low) >= sync:
        return "Keep the synchronous version: neither streams nor a kernel would be faster."
    by_kernel = gain(low) if low == high else f"{gain(high)} to {gain(low)}"
    if stream >= sync:
        return f"A fused kernel would save {by_kernel}; streams would not pay."
    saved = f"Streams would save {gain(stream)} of the synchronous version. "
    if high < 0.98 * stream:
        return saved + f"A fused kernel would save more: {by_kernel}."
    if low < 0.98 * stream:
        return saved + f"A fused kernel would save {by_kernel}, as far as its blocks overlap."
    return saved + "A fused kernel would not save more."
