"""The time model on loops whose times are known, and on timelines that can't be used."""

import contextlib
import io
import json
import random
import re
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import time_model

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase


@dataclass
class Loop:
    """A loop with known times, in us: tasks and messages of a device, and the host's own."""

    a: float = 100
    send: float = 10
    b: float = 150
    wait: float = 5
    c: float = 50
    launch: float = 4  # of each call that queues something
    overhead: float = 8  # of the host's return from a wait
    steps: int = 60
    devices: int = 2
    noise: float = 0.0  # of each time, relative


class Recorder:
    """Plays a version of a loop, and keeps its events."""

    def __init__(self, loop: Loop, seed: int = 1) -> None:
        self.loop, self.events, self.random = loop, [], random.Random(seed)
        self.now = 20.0  # of the host
        self.free = [0.0] * loop.devices  # when each stream has done its work
        self.sent = [0.0] * loop.devices  # when the message to this device has come
        self.call("World::window", "other", 15)
        self.begin = self.now

    def noisy(self, time: float) -> float:
        return time * (1 + self.random.uniform(-self.loop.noise, self.loop.noise))

    def slice(self, row: tuple[int, int], name: str, kind: str, start: float, stop: float, **more):
        self.events.append(
            {"ph": "X", "name": name, "cat": kind, "ts": start, "dur": stop - start,
             "pid": row[0], "tid": row[1], "args": more}
        )  # fmt: skip

    def call(self, name: str, kind: str, length: float, **more) -> None:
        start, self.now = self.now, self.now + self.noisy(length)
        self.slice((0, 0), name, kind, start, self.now, **more)

    def on_stream(self, d: int, name: str, kind: str, length: float, not_before: float = 0) -> None:
        start = max(self.free[d], self.now)
        stop = max(start, not_before) + self.noisy(length)
        self.slice((d + 1, d), name, kind, start, stop)
        self.free[d] = stop

    def launch(self, name: str, length: float) -> None:
        for d in range(self.loop.devices):
            self.call("StreamEndpoint::task", "launch", self.loop.launch, of=name)
            self.on_stream(d, name, "task", length)

    def synchronize(self) -> None:
        for done in self.free:
            wait = max(done - self.now, 0) + self.loop.overhead
            self.call("StreamEndpoint::synchronize", "sync", wait)

    def queue(self, name: str) -> None:
        for d in range(self.loop.devices):
            self.call(f"StreamEndpoint::{name}" if name == "put" else name, "queue",
                      self.loop.launch)  # fmt: skip
            if name == "wait":
                self.on_stream(d, name, "wait", self.loop.wait, self.sent[d])
            else:
                self.on_stream(d, name, "send", self.loop.send)
                self.sent[(d + 1) % self.loop.devices] = self.free[d]

    def trace(self) -> dict:
        total = max(self.now, *self.free) - self.begin
        names = [
            {"ph": "M", "name": "thread_name", "pid": d + 1, "tid": d,
             "args": {"name": f"stream {d}"}} for d in range(self.loop.devices)
        ]  # fmt: skip
        more = {"host": 1, "lost_events": 0}
        return {"traceEvents": names + self.events, "otherData": more, "known": total}


def synchronous(loop: Loop) -> dict:
    """The host waits, sends for all devices, and waits for messages."""
    play = Recorder(loop)
    for _ in range(loop.steps):
        play.launch("A", loop.a)
        play.synchronize()
        for _ in range(loop.devices):
            play.call("Window::write", "write", loop.send)
        play.launch("B", loop.b)
        play.synchronize()
        play.call("Window::wait", "read", loop.wait)
        play.launch("C", loop.c)
        play.synchronize()
    return play.trace()


def by_streams(loop: Loop) -> dict:
    """The host queues all, and waits at the end."""
    play = Recorder(loop)
    for _ in range(loop.steps):
        play.launch("A", loop.a)
        play.queue("put_notify")
        play.launch("B", loop.b)
        play.queue("wait")
        play.launch("C", loop.c)
    play.synchronize()
    return play.trace()


def by_kernel(loop: Loop, blocks: tuple[int, int, int], resident: int) -> float:
    """Time of a kernel of one step after the other: as many blocks at once as fit, C after A.

    A part alone takes its time, in several waves if it has more blocks than fit.
    """
    free = [0.0] * resident

    def run(count: int, time: float, not_before: float) -> float:
        last = 0.0
        for _ in range(count):
            free.sort()
            waves = -(-count // resident)
            free[0] = last = max(free[0], not_before) + time / waves
        return last

    for _ in range(loop.steps):
        begin = max(free)
        free[:] = [begin] * resident
        sent = run(blocks[0], loop.a + loop.send, begin)
        run(blocks[1], loop.b, begin)
        run(blocks[2], loop.wait + loop.c, sent)
    return max(free)


LOOPS = {
    "tasks are long": Loop(),
    "one device": Loop(devices=1, a=80, b=300, c=20),
    "launches are long": Loop(a=6, send=2, b=8, wait=1, c=6, launch=12),
    "messages are long": Loop(a=40, send=120, b=60, wait=30, c=40),
    "no work to hide messages": Loop(a=60, b=1, c=60, send=25, wait=20),
    "noise": Loop(noise=0.15, steps=200),
}


class TimeModel(FolderCase):
    def write(self, name: str, trace: object) -> str:
        path = self.folder / name
        path.write_text(json.dumps(trace))
        return str(path)

    def told(self, *arguments: str, status: int = 0) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.assertEqual(time_model.main([*arguments]), status, err.getvalue())
        return out.getvalue() + err.getvalue()

    def totals(self, text: str) -> dict[str, float]:
        """The model's totals; of a kernel the two ends, `best` and `worst`."""
        found = dict(re.findall(r"^(synchronous|stream|kernel) +(\d+)\b(?! to)", text, re.M))
        if ends := re.search(r"^kernel +(\d+) to (\d+)", text, re.M):
            found |= {"best": ends[1], "worst": ends[2]}
        return {name: float(value) for name, value in found.items()}

    def assert_near(self, value: float, known: float, what: str) -> None:
        self.assertLess(abs(value - known), 0.05 * known, f"{what}: {value} for {known}")

    def test_all_totals_of_both_timelines(self) -> None:
        for name, loop in LOOPS.items():
            with self.subTest(name):
                one, two = synchronous(loop), by_streams(loop)
                found = self.totals(self.told(self.write("a", one), self.write("b", two)))
                self.assert_near(found["synchronous"], one["known"], "synchronous")
                self.assert_near(found["stream"], two["known"], "stream")

    def test_the_stream_version_from_the_synchronous_one(self) -> None:
        for name, loop in LOOPS.items():
            with self.subTest(name):
                path, two = self.write("a", synchronous(loop)), by_streams(loop)
                found = self.totals(
                    self.told(path, "--put", str(loop.send), "--wait", str(loop.wait))
                )
                self.assert_near(found["stream"], two["known"], "stream")

    def test_the_synchronous_version_from_the_stream_one(self) -> None:
        for name in ("tasks are long", "one device", "messages are long"):
            with self.subTest(name):
                loop = LOOPS[name]
                one, path = synchronous(loop), self.write("b", by_streams(loop))
                found = self.totals(self.told(path, "--sync", str(loop.overhead)))
                self.assert_near(found["synchronous"], one["known"], "synchronous")

    def test_the_kernel_version_by_its_blocks(self) -> None:
        loop = Loop(launch=1)
        path = self.write("b", by_streams(loop))
        for blocks, resident in (
            ((1, 1, 1), 3),
            ((1, 1, 1), 1),
            ((24, 320, 24), 32),
            ((8, 8, 8), 99),
        ):
            with self.subTest(f"{blocks} {resident}"):
                text = self.told(
                    path, "--blocks", ",".join(map(str, blocks)), "--resident", str(resident)
                )
                known = by_kernel(loop, blocks, resident)
                self.assert_near(self.totals(text)["kernel"], known, "kernel")

    def test_measured_runs_are_compared(self) -> None:
        loop = LOOPS["tasks are long"]
        paths = self.write("a", synchronous(loop)), self.write("b", by_streams(loop))
        text = self.told(paths[0], "--put", "10", "--wait", "5", "--check", paths[1])
        self.assertRegex(text, r"stream +\d+ +\d+ +[+-][0-4]\.\d%")
        self.assertIn("Streams would save", text)

    def conditions(self, loop: Loop, version=by_streams) -> list[str]:
        text = self.told(self.write("c", version(loop)), "--sync", str(loop.overhead))
        return re.findall(r"^C[123] (holds|fails)", text, re.M)

    def test_c1_compares_launches_with_the_device(self) -> None:
        # Five launches a step for 100 us of work.
        for launch, answer in ((19, "holds"), (21, "fails")):
            loop = Loop(a=30, send=10, b=40, wait=5, c=15, launch=launch, devices=1)
            self.assertEqual(self.conditions(loop)[0], answer, launch)

    def test_c2_compares_messages_with_idle_time(self) -> None:
        # The host's waits and launches leave the device idle; its messages do too.
        path = self.write("a", synchronous(Loop(devices=1)))
        idle = float(re.search(r"is idle for ([\d.]+) us", self.told(path))[1])
        for messages, answer in ((0.95 * idle, "C2 holds"), (1.05 * idle, "C2 fails")):
            text = self.told(path, "--put", str(messages / 2), "--wait", str(messages / 2))
            self.assertIn(answer, text)

    def test_c3_compares_the_first_launch_with_all_steps(self) -> None:
        # The first launch is 40 us, a step 200 us.
        for steps, answer in ((3, "fails"), (5, "holds")):
            loop = Loop(a=80, send=10, b=80, wait=10, c=20, launch=39, devices=1, steps=steps)
            self.assertEqual(self.conditions(loop)[2], answer, steps)

    def test_streams_that_would_not_pay(self) -> None:
        text = self.told(self.write("a", synchronous(Loop())), "--put", "900", "--wait", "900")
        self.assertIn("Keep the synchronous version", text)

    def test_timelines_that_cannot_be_used(self) -> None:
        good = by_streams(Loop())
        without = {**good, "otherData": {}}
        lost = {**good, "otherData": {"host": 1, "lost_events": 7}}
        calls = [event for event in good["traceEvents"] if event.get("pid") == 0]
        irregular = {**good, "traceEvents": [{**event, "name": chr(65 + i)} for i, event in
                                             enumerate(calls[:40])]}  # fmt: skip
        self.write("good", good)
        (self.folder / "text").write_text("{")
        for name, content, message in (
            ("none", None, "can't read"),
            ("text", None, "is no JSON"),
            ("list", [1], "has no list 'traceEvents'"),
            ("ranks", without, "has no row for the host: record it with MESHPOST_TRACE_HOST"),
            ("lost", lost, "has lost 7 events: raise MESHPOST_TRACE_EVENTS"),
            ("irregular", irregular, "no repetition found in 39 calls"),
        ):
            with self.subTest(name):
                path = self.write(name, content) if content else str(self.folder / name)
                self.assertIn(message, self.told(path, status=2))
        path = str(self.folder / "good")
        for arguments, message in (
            (("--map", "pack=A"), "--map names pack; the tasks are A, B, C"),
            ((path,), "is a second timeline of the stream version"),
            (("--blocks", "1,2,3"), "--blocks and --resident belong together"),
            (("--blocks", "1,2,3", "--resident", "0"), "at least one block is resident"),
            (("--check", self.write("short", by_streams(Loop(steps=30)))), "has 30 steps"),
        ):
            with self.subTest(message):
                self.assertIn(message, self.told(path, *arguments, status=2))

    def test_arguments_that_are_none(self) -> None:
        for arguments in (("--put", "fast"), ("--map", "pack=D"), ("--blocks", "1,2"), ()):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
                time_model.main([*arguments, "x"] if arguments else [])
            self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
