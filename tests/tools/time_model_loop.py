"""A loop with known times, and the timelines that it would leave: for tests of the time model."""

import dataclasses
import heapq
import random


@dataclasses.dataclass(frozen=True)
class Loop:
    """Times of a step in us. The host sends and waits in the synchronous version."""

    a: float = 100.0
    s: float = 6.0  # of a stream
    b: float = 150.0
    w: float = 4.0  # of a stream
    c: float = 50.0
    host_s: float = 20.0
    host_w: float = 12.0
    launch: float = 5.0  # LA, LB, LC
    queue: float = 3.0  # LS, LW
    th: float = 15.0  # from a task's end until the host goes on
    steps: int = 50
    noise: float = 0.0  # standard deviation, as a share of each time
    seed: int = 1

    def synchronous(self) -> float:
        messages = self.host_s + self.host_w
        return self.steps * (self.a + self.b + self.c + 3 * (self.launch + self.th) + messages)

    def stream(self) -> float:
        """Operations of a stream begin when they are queued and the one before has ended."""
        host = device = 0.0
        for _ in range(self.steps):
            for call, time in self.queued():
                host += call
                device = max(device, host) + time
        return device

    def queued(self):
        return (
            (self.launch, self.a), (self.queue, self.s), (self.launch, self.b),
            (self.queue, self.w), (self.launch, self.c),
        )  # fmt: skip

    def kernel(self, blocks: tuple[int, int, int], resident: int) -> float:
        """Blocks run on `resident` places, A before B before C. C begins when A has sent."""
        times = self.a + self.s, self.b, self.w + self.c
        each = [time / -(-some // resident) for time, some in zip(times, blocks, strict=True)]
        free, sent = [0.0] * resident, 0.0
        for task in range(3):
            for _ in range(blocks[task]):
                begin = max(heapq.heappop(free), sent if task == 2 else 0.0)
                heapq.heappush(free, begin + each[task])
                if task == 0:
                    sent = max(sent, begin + each[0])
        return self.steps * max(free)


class Writer:
    """Events of a timeline."""

    def __init__(self, loop: Loop):
        self.random = random.Random(loop.seed)
        self.noise = loop.noise
        self.host = 1000.0
        self.device = 0.0
        self.events = [
            {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "host"}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 0, "args": {"name": "stream 0"}},
        ]

    def real(self, time: float) -> float:
        return time * max(0.1, self.random.gauss(1.0, self.noise))

    def add(self, pid: int, name: str, category: str, start: float, length: float, of: str = ""):
        event = {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": 0}
        event |= {"ts": start, "dur": length} | ({"args": {"of": of}} if of else {})
        self.events.append(event)

    def call(self, name: str, category: str, time: float, of: str = "") -> None:
        time = self.real(time)
        self.add(0, name, category, self.host, time, of)
        self.host += time

    def runs(self, name: str, category: str, time: float) -> None:
        """On the device, behind what was queued before."""
        start, time = max(self.host, self.device), self.real(time)
        self.add(1, name, category, start, time)
        self.device = start + time

    def launch(self, name: str, loop: Loop, time: float) -> None:
        self.call("task", "launch", loop.launch, name)
        self.runs(name, "task", time)

    def synchronize(self, loop: Loop) -> None:
        self.call("synchronize", "sync", 0.0)
        stop = max(self.host, self.device) + self.real(loop.th)
        self.events[-1]["dur"] = stop - self.host
        self.host = stop

    def content(self) -> dict:
        return {"traceEvents": self.events, "otherData": {"host": 1, "lost_events": 0}}


NAMES = ("A", "B", "C")


def by_host(loop: Loop, names=NAMES) -> dict:
    """The timeline of the synchronous version."""
    to = Writer(loop)
    to.call("window", "other", 24)
    for _ in range(loop.steps):
        to.launch(names[0], loop, loop.a)
        to.synchronize(loop)
        to.call("write", "write", 0.7 * loop.host_s)
        to.call("notify", "notify", 0.3 * loop.host_s)
        to.launch(names[1], loop, loop.b)
        to.synchronize(loop)
        to.call("Window::wait", "read", loop.host_w)
        to.launch(names[2], loop, loop.c)
        to.synchronize(loop)
    return to.content()


def by_streams(loop: Loop, names=NAMES) -> dict:
    """The timeline of the stream version. Names may have the number of the step: "A {}"."""
    to = Writer(loop)
    to.call("window", "other", 24)
    for step in range(loop.steps):
        to.launch(names[0].format(step), loop, loop.a)
        to.call("put_notify", "queue", loop.queue)
        to.runs("put_notify", "send", loop.s)
        to.launch(names[1].format(step), loop, loop.b)
        to.call("wait", "queue", loop.queue)
        to.runs("wait", "wait", loop.w)
        to.launch(names[2].format(step), loop, loop.c)
    to.synchronize(loop)
    return to.content()


def by_kernel(length: float) -> dict:
    """The timeline of one run."""
    return {
        "traceEvents": [
            {"ph": "X", "name": "launch", "cat": "launch", "pid": 0, "tid": 0, "ts": 0, "dur": 9},
            {"ph": "X", "name": "all", "cat": "run", "pid": 1, "tid": 0, "ts": 5, "dur": length},
        ],
        "otherData": {"host": 1, "lost_events": 0},
    }
