"""Applies the time model to loops whose times are known."""

import contextlib
import io
import json
import re
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import time_model

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase
from time_model_loop import NAMES, Loop, by_host, by_kernel, by_streams

SHAPES = {
    "device bound": Loop(),
    "with noise": Loop(noise=0.1, steps=100),
    "more noise": Loop(noise=0.2, steps=200, seed=2),
    "host bound": Loop(a=4, b=3, c=2, s=1, w=1, launch=6, queue=5),
    "long messages": Loop(s=80, w=60, host_s=120, host_w=90, noise=0.05, seed=3),
    "slow host": Loop(th=200, launch=20, noise=0.05, seed=4),
    "long B": Loop(a=10, b=900, c=10, noise=0.05, seed=5),
    "few steps": Loop(steps=5),
    "long step": Loop(a=1e5, b=1.5e5, c=5e4, s=800, w=50, noise=0.02, seed=6),
}
BLOCKS = (40, 160, 40)
RESIDENT = 64


class Case(FolderCase):
    def write(self, name: str, content) -> Path:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def run_tool(self, *arguments) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = time_model.main([str(argument) for argument in arguments])
            except SystemExit as end:
                status = end.code
        return status, out.getvalue(), err.getvalue()

    def model(self, *arguments) -> str:
        status, out, err = self.run_tool(*arguments)
        self.assertEqual((status, err), (0, ""))
        return out

    def totals(self, said: str) -> dict[str, float]:
        """The model's time of each version; the kernel's has two without blocks."""
        found = {}
        for version in ("synchronous", "stream", "kernel"):
            match = re.search(rf"^{version} +(\d+)(?: to (\d+))?(?: |$)", said, re.MULTILINE)
            found[version] = float(match[1])
            if match[2]:
                found["kernel at worst"] = float(match[2])
        return found

    def assert_near(self, value: float, known: float, what: str):
        self.assertLess(abs(value - known), 0.05 * known, f"{what}: {value}, known: {known}")


class Totals(Case):
    def test_of_both_timelines(self):
        for shape, loop in SHAPES.items():
            with self.subTest(shape):
                sync, stream = self.write("a", by_host(loop)), self.write("b", by_streams(loop))
                more = "--blocks", ",".join(map(str, BLOCKS)), "--resident", RESIDENT
                found = self.totals(self.model(sync, stream, *more))
                self.assert_near(found["synchronous"], loop.synchronous(), "synchronous")
                self.assert_near(found["stream"], loop.stream(), "stream")
                self.assert_near(found["kernel"], loop.kernel(BLOCKS, RESIDENT), "kernel")

    def test_of_the_synchronous_timeline_alone(self):
        for shape, loop in SHAPES.items():
            # The launches of messages are taken to be as long as those of tasks.
            loop = replace(loop, queue=loop.launch)
            with self.subTest(shape):
                sync = self.write("a", by_host(loop))
                found = self.totals(self.model(sync, "--put", loop.s, "--wait", loop.w))
                self.assert_near(found["synchronous"], loop.synchronous(), "synchronous")
                self.assert_near(found["stream"], loop.stream(), "stream")

    def test_of_the_stream_timeline_alone(self):
        for shape, loop in SHAPES.items():
            # Messages of the host are taken to be those of a stream and a wait of the host.
            loop = replace(loop, host_s=loop.s + loop.th, host_w=loop.w + loop.th)
            with self.subTest(shape):
                stream = self.write("b", by_streams(loop))
                found = self.totals(self.model(stream, "--sync", loop.th))
                self.assert_near(found["synchronous"], loop.synchronous(), "synchronous")
                self.assert_near(found["stream"], loop.stream(), "stream")
                if loop.noise == 0:  # the delay of one wait is seen, with its noise
                    seen = self.totals(self.model(stream))
                    self.assert_near(seen["synchronous"], loop.synchronous(), "delay as seen")

    def test_of_a_kernel_lie_between_full_overlap_and_none(self):
        loop = SHAPES["device bound"]
        found = self.totals(self.model(self.write("a", by_host(loop)), self.streams(loop)))
        self.assert_near(found["kernel"], loop.kernel((1, 1, 1), 3), "each has a place")
        self.assert_near(found["kernel at worst"], loop.kernel((1, 1, 1), 1), "one place")

    def streams(self, loop: Loop) -> Path:
        return self.write("b", by_streams(loop))

    def test_follow_the_blocks_of_a_kernel(self):
        loop = SHAPES["device bound"]
        sync, stream = self.write("a", by_host(loop)), self.streams(loop)
        a, b, c = 106, 150, 54  # with messages
        for blocks, resident, step in (
            ((1, 1, 1), 3, a + c),
            ((1, 1, 1), 1, a + b + c),
            ((64, 64, 64), 64, a + b + c),
            ((8, 8, 8), 24, a + c),
            ((1, 2, 1), 2, a + b),  # A and then a block of B; the other one and then C
            ((2, 2, 2), 3, a + b),  # C in the place of the first block of B
            ((4, 8, 4), 4, a + b + c),  # two rounds of B share its time
        ):
            with self.subTest(blocks=blocks, resident=resident):
                self.assertAlmostEqual(loop.kernel(blocks, resident), loop.steps * step)
                more = "--blocks", ",".join(map(str, blocks)), "--resident", resident
                found = self.totals(self.model(sync, stream, *more))
                self.assert_near(found["kernel"], loop.kernel(blocks, resident), "kernel")

    def test_are_compared_with_measured_runs(self):
        loop = SHAPES["with noise"]
        files = [self.write("a", by_host(loop)), self.streams(loop), "--check"]
        for seed in (7, 8, 9):
            other = replace(loop, seed=seed)
            files.append(self.write(f"sync-{seed}", by_host(other)))
            files.append(self.write(f"kernel-{seed}", by_kernel(1.3 * loop.kernel((1, 1, 1), 2))))
        said = self.model(*files)
        for version in ("synchronous", "stream"):
            error = re.search(rf"^{version} .* ([+-]\d+\.\d)%$", said, re.MULTILINE)
            self.assertLess(abs(float(error[1])), 5, said)
        self.assertRegex(said, r"(?m)^kernel +\d+ to \d+ +\d+ +within$")


class Conditions(Case):
    """C1 to C3, on both sides of their thresholds."""

    def holds(self, which: str, loop: Loop, *more) -> bool:
        said = self.model(self.write("a", by_host(loop)), self.write("b", by_streams(loop)), *more)
        return re.search(rf"^{which} (holds|fails):", said, re.MULTILINE)[1] == "holds"

    def test_c1_launches_are_shorter_than_the_devices_work(self):
        loop = Loop(a=40, b=40, c=40, s=5, w=5)  # 130 us on the device
        for launches, holds in ((126, True), (134, False)):
            self.assertEqual(self.holds("C1", replace(loop, launch=(launches - 6) / 3)), holds)

    def test_c2_messages_of_streams_are_shorter_than_the_idle_time(self):
        loop = Loop()  # idle for 3 (5 + 15) + 20 + 12 us
        idle = 3 * (loop.launch + loop.th) + loop.host_s + loop.host_w
        for share, holds in ((0.97, True), (1.03, False)):
            messages = "--put", 0.6 * share * idle, "--wait", 0.4 * share * idle
            self.assertEqual(self.holds("C2", loop, *messages), holds)
            recorded = replace(loop, s=0.6 * share * idle, w=0.4 * share * idle)
            self.assertEqual(self.holds("C2", recorded), holds)

    def test_c3_many_steps(self):
        loop = Loop(a=100, b=100, c=100, s=5, w=5, launch=80)  # 310 us a step
        # 80 / (80 + steps 310) is 0.05 at 4.9 steps
        for steps, holds in ((4, False), (5, True), (50, True)):
            self.assertEqual(self.holds("C3", replace(loop, steps=steps)), holds)


class Advice(Case):
    def last_line(self, loop: Loop, *more) -> str:
        said = self.model(self.write("a", by_host(loop)), self.write("b", by_streams(loop)), *more)
        return said.strip().split("\n")[-1]

    def test_tells_what_streams_and_a_kernel_save(self):
        loop = Loop()
        line = self.last_line(loop, "--blocks", "1,1,1", "--resident", "3")
        saved = re.findall(r"(-?\d+) us, (-?\d+\.\d)%", line)
        for (time, share), of in zip(
            saved, (loop.stream(), loop.kernel((1, 1, 1), 3)), strict=True
        ):
            known = loop.synchronous() - of
            self.assert_near(float(time), known, line)
            self.assert_near(float(share), 100 * known / loop.synchronous(), line)
        self.assertIn("kernel would save more", line)

    def test_keeps_the_synchronous_version_if_nothing_pays(self):
        loop = Loop(s=200, w=200, b=1)
        line = self.last_line(loop, "--blocks", "1,1,1", "--resident", "1")
        self.assertIn("Keep the synchronous version", line)

    def test_prefers_streams_if_blocks_do_not_overlap(self):
        line = self.last_line(Loop(), "--blocks", "1,1,1", "--resident", "1")
        self.assertIn("A fused kernel would not save more", line)


class Names(Case):
    def test_of_tasks_are_classed_by_their_place(self):
        loop = Loop()
        files = self.write("a", by_host(loop, ("pack", "inner", "unpack")))
        self.assertIn("pack is A, inner is B, unpack is C", self.model(files))

    def test_of_tasks_are_classed_as_given(self):
        files = self.write("a", by_host(Loop(), ("pack", "inner", "unpack")))
        self.assertIn("inner is C", self.model(files, "--map", "inner=C"))

    def test_may_have_the_number_of_the_step(self):
        loop = Loop()
        named = by_streams(loop, tuple(name + " of step {}" for name in NAMES))
        found = self.totals(self.model(self.write("b", named)))
        self.assert_near(found["stream"], loop.stream(), "stream")


class Refuses(Case):
    """Wrong input gives a message with the operation, the value and the remedy, and status 2."""

    def setUp(self):
        super().setUp()
        self.good = self.write("good.json", by_host(Loop()))

    def refused(self, *arguments) -> str:
        status, out, err = self.run_tool(*arguments)
        self.assertEqual((status, out), (2, ""), err)
        self.assertNotIn("Traceback", err)
        return err

    def changed(self, **more) -> Path:
        return self.write("changed.json", by_host(Loop()) | more)

    def test_a_missing_file(self):
        for arguments in ([self.folder / "none.json"], [self.good, "--check", "none.json"]):
            err = self.refused(*arguments)
            self.assertRegex(err, "can't read .*none.json: No such file.*MESHPOST_TRACE_HOST")

    def test_a_file_that_is_no_json(self):
        for text in ("", "{", "[" * 100000, "events"):
            self.assertRegex(self.refused(self.write("x.json", text)), "x.json is no JSON.*record")
        binary = self.folder / "x.json"
        binary.write_bytes(b"\xff\xfe\x80")
        self.assertRegex(self.refused(binary), "x.json is no JSON.*record")

    def test_json_that_is_no_timeline(self):
        for content in (1, [], {}, {"traceEvents": 3}, {"traceEvents": [3]}):
            err = self.refused(self.write("x.json", content))
            self.assertRegex(err, "x.json has no list 'traceEvents'.*MESHPOST_TRACE_HOST")

    def test_a_timeline_without_a_row_of_the_host(self):
        for content in ({}, {"host": 0}, [], None):
            err = self.refused(self.changed(otherData=content))
            self.assertRegex(err, "changed.json has no row for the host.*MESHPOST_TRACE_HOST")

    def test_a_timeline_that_has_lost_events(self):
        err = self.refused(self.changed(otherData={"host": 1, "lost_events": 7}))
        self.assertRegex(err, "has lost 7 events: raise MESHPOST_TRACE_EVENTS")

    def test_events_that_are_not_whole(self):
        good = {"ph": "X", "name": "task", "cat": "launch", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
        for key, value in (("ts", None), ("dur", "x"), ("pid", [1]), ("tid", {}), ("ts", True)):
            err = self.refused(self.changed(traceEvents=[good | {key: value}]))
            self.assertRegex(err, "changed.json: event .* has no numbers.*record")
        err = self.refused(self.changed(traceEvents=[good | {"ts": float("nan")}]))
        self.assertRegex(err, "has no numbers")
        odd = [good | {"args": [1]}, {"ph": "M", "name": "thread_name", "pid": [], "args": None}]
        self.assertIn("no repetition", self.refused(self.changed(traceEvents=odd)))

    def test_a_timeline_without_calls(self):
        err = self.refused(self.changed(traceEvents=[]))
        self.assertRegex(err, "has no calls of the host: record a program that")

    def test_a_timeline_without_steps(self):
        for steps in (1, 2):
            err = self.refused(self.write("x.json", by_host(Loop(steps=steps))))
            self.assertRegex(err, r"x.json: no repetition found in \d+ calls.*at least 3 steps")

    def test_steps_without_tasks_messages_or_times(self):
        events = by_host(Loop())["traceEvents"]
        for keep, message in (
            (
                lambda one: one.get("cat") not in ("launch", "task"),
                "no tasks.*StreamEndpoint::task",
            ),
            (lambda one: one.get("cat") not in ("write", "notify", "read"), "send nothing"),
            (lambda one: one.get("pid") == 0, "no times of tasks.*StreamEndpoint::task"),
        ):
            kept = [one for one in events if keep(one)]
            self.assertRegex(self.refused(self.changed(traceEvents=kept)), message)
        short = self.write("short.json", by_kernel(0))
        err = self.refused(self.good, "--check", short)
        self.assertIn("short.json takes 0 us: record a longer loop", err)

    def test_an_unknown_task(self):
        err = self.refused(self.good, "--map", "pack=A")
        self.assertRegex(err, "--map names pack, which is no task of a step; give one of A, B, C")

    def test_options_that_do_not_fit(self):
        for more, message in (
            (["--map", "A=D"], "'A=D' is not like pack=A; tasks are A, B or C"),
            (["--put", "-1"], "'-1' is no time in us"),
            (["--wait", "nan"], "'nan' is no time in us"),
            (["--blocks", "1,2", "--resident", "3"], "'1,2' is not like 8,32,8"),
            (["--blocks", "1,2,3"], "--blocks and --resident belong together"),
            (["--blocks", "1,2,3", "--resident", "0"], "--resident is 0; at least one"),
        ):
            self.assertIn(message, self.refused(self.good, *more))

    def test_timelines_that_do_not_belong_together(self):
        other = self.write("other.json", by_streams(Loop(steps=20)))
        self.assertRegex(self.refused(self.good, other), "20 steps.*has 50: record the same loop")
        self.assertRegex(self.refused(self.good, "--check", other), "record the same loop")
        again = self.write("again.json", by_host(Loop(seed=2)))
        self.assertRegex(self.refused(self.good, again), "second timeline of the synchronous")
        kernel = self.write("kernel.json", by_kernel(100))
        self.assertRegex(self.refused(kernel), "kernel.json has one run.*--check")


if __name__ == "__main__":
    unittest.main()
