"""Draws small traces whose answers are known."""

import contextlib
import io
import json
import struct
import sys
import time
import unittest
from pathlib import Path

try:
    import matplotlib  # noqa: F401
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy and Matplotlib: {missing}") from missing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import timeline
import timeline_picture
import timeline_shares
import timeline_trace

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase


def span(name: str, start: float, length: float, rank: int = 0, device: int = 0, **more) -> dict:
    return {
        "ph": "X", "name": name, "cat": "rma", "ts": start, "dur": length,
        "pid": device, "tid": rank, **more,
    }  # fmt: skip


def names(device: int, name: str, ranks) -> list[dict]:
    rows = [{"ph": "M", "name": "process_name", "pid": device, "args": {"name": name}}]
    for rank in ranks:
        named = {"name": f"rank {rank}"}
        rows.append({"ph": "M", "name": "thread_name", "pid": device, "tid": rank, "args": named})
    return rows


def stencil(ranks: int, iterations: int, devices: int = 2) -> list[dict]:
    """Ranks that repeatedly compute 6 us, put 1 us and wait 3 us; then a barrier of 10 us."""
    events = []
    for rank in range(ranks):
        device = rank * devices // ranks
        for n in range(iterations):
            at = 5000.0 + 10 * n
            events.append(span("compute", at, 6, rank, device))
            events.append(span("put_notify", at + 6, 1, rank, device, args={"bytes": 64}))
            events.append(span("wait", at + 7, 3, rank, device))
        events.append(span("barrier", 5000.0 + 10 * iterations, 10, rank, device))
    for device in range(devices):
        events += names(device, f"cpu:{device}", range(ranks))
    events.append({"ph": "i", "name": "start", "ts": 5003, "pid": 0, "tid": 0, "s": "t"})
    return events


class Case(FolderCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.png"

    def write(self, events, **more) -> Path:
        path = self.folder / "trace.json"
        path.write_text(json.dumps({"traceEvents": events, "otherData": {}} | more))
        return path

    def read(self, events) -> timeline_trace.Trace:
        return timeline_trace.read_trace(self.write(events))

    def run_tool(self, *arguments) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = timeline.main([str(argument) for argument in arguments])
            except SystemExit as error:
                status = error.code
        return status, said.getvalue()

    def assert_refused(self, *expected: str, arguments):
        status, said = self.run_tool(*arguments)
        self.assertEqual(status, 2, said)
        for text in expected:
            self.assertIn(text, said)
        self.assertFalse(self.out.exists())

    def size(self) -> tuple[int, int]:
        head = self.out.read_bytes()[:24]
        self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
        return struct.unpack(">II", head[16:24])


class Reading(Case):
    def test_time_counts_from_the_first_event_and_ranks_are_sorted_by_device(self):
        trace = self.read(stencil(4, 3))
        self.assertEqual(trace.length, 40)
        self.assertEqual(trace.start.min(), 0)
        self.assertEqual([rank[0] for rank in trace.ranks], ["cpu:0", "cpu:0", "cpu:1", "cpu:1"])
        self.assertEqual([rank[1] for rank in trace.ranks], [f"rank {r}" for r in range(4)])
        self.assertEqual(trace.marks.tolist(), [[0, 3]])

    def test_shares_are_of_all_ranks_whole_time(self):
        found = timeline_shares.shares(self.read(stencil(4, 9)))
        expected = {"compute": 0.54, "put": 0.09, "wait": 0.27, "barrier": 0.1}
        self.assertEqual(found.keys(), expected.keys())
        for kind, share in expected.items():
            self.assertAlmostEqual(found[kind], share)
        found = timeline_shares.shares(self.read([span("wait", 0, 4), span("get", 0, 10, rank=1)]))
        self.assertAlmostEqual(found["untraced"], 0.3)

    def test_a_pipelines_stages_have_kinds_of_their_own(self):
        trace = self.read([span("LOAD", 0, 1), span("COMP", 1, 2), span("SAVE", 3, 1)])
        kinds = [timeline_trace.NAMES[kind] for kind in trace.kind]
        self.assertEqual(kinds, ["load", "compute", "save"])

    def test_time_inside_a_nested_event_counts_once_for_the_inner_one(self):
        # A barrier made of a put and two waits, with a wait in the second wait.
        nested = [
            span("barrier", 0, 10), span("put", 1, 2), span("wait", 3, 5), span("get", 4, 1),
            span("compute", 12, 8), span("compute", 0, 20, rank=1),
        ]  # fmt: skip
        trace = self.read(nested)
        spent = {name: 0.0 for name in timeline_trace.NAMES}
        for kind, start, stop in zip(trace.kind, trace.start, trace.stop, strict=True):
            spent[timeline_trace.NAMES[kind]] += stop - start
        expected = dict.fromkeys(spent, 0.0)
        expected |= {"barrier": 3, "put": 3, "wait": 4, "compute": 28}
        self.assertEqual(spent, expected)
        here = trace.row == 0
        self.assertTrue((trace.start[here][1:] >= trace.stop[here][:-1]).all())

    def test_overlapping_events_never_count_twice(self):
        random = np.random.default_rng(3)
        starts, lengths = random.integers(0, 90, 200), random.integers(0, 10, 200)
        events = [span("put", float(s), float(d)) for s, d in zip(starts, lengths, strict=True)]
        trace = self.read(events)
        covered = np.zeros(100, bool)
        for start, length in zip(starts - starts.min(), lengths, strict=True):
            covered[start : start + length] = True
        self.assertAlmostEqual((trace.stop - trace.start).sum(), covered.sum())

    def test_names_and_categories_decide_the_kind(self):
        for name, kind in {
            "compute": "compute", "put": "put", "put_notify": "put", "notify": "put", "get": "put",
            "wait": "wait", "wait_until": "wait", "barrier": "barrier", "all_reduce": "barrier",
            "target": "other", "": "other",
        }.items():  # fmt: skip
            self.assertEqual(timeline_trace.NAMES[timeline_trace.kind_of(name, "rma")], kind)
        self.assertEqual(timeline_trace.NAMES[timeline_trace.kind_of("halo rows", "wait")], "wait")

    def test_coverage_equals_a_count_by_hand(self):
        trace = self.read([span("put", 0, 2.5), span("put", 6, 4), span("wait", 2.5, 1)])
        found = timeline_shares.coverage(trace, timeline_trace.NAMES.index("put"), 1, 9, 4)
        np.testing.assert_allclose(found, [[0.75, 0, 0.5, 1]])


class Window(Case):
    def test_a_short_run_is_shown_whole_and_a_long_one_in_its_middle(self):
        trace = self.read(stencil(2, 5))
        self.assertEqual(timeline_shares.choose_window(trace, None, None), (0, trace.length))
        trace = self.read(stencil(2, 1000))
        begin, end = timeline_shares.choose_window(trace, None, None)
        self.assertLess(abs((begin + end) / 2 - 5000), 100)
        seen = ((trace.stop > begin) & (trace.start < end) & (trace.row == 0)).sum()
        self.assertTrue(20 <= seen <= 60, seen)

    def test_a_run_that_is_idle_in_the_middle_shows_events_all_the_same(self):
        late = [span("put", 1e6 + n, 1) for n in range(150)]
        trace = self.read([span("put", n, 1) for n in range(100)] + late)
        begin, end = timeline_shares.choose_window(trace, None, None)
        self.assertTrue(((trace.start >= begin) & (trace.stop <= end)).any())


class Picture(Case):
    def test_a_trace_becomes_a_picture_of_sane_size(self):
        status, said = self.run_tool(self.write(stencil(6, 40)), self.out, "--title", "Six ranks")
        self.assertEqual(status, 0, said)
        self.assertIn("6 ranks on 2 devices, 410 us: running 59%", said)
        width, height = self.size()
        self.assertTrue(1200 < width < 2400 and 500 < height < 1200, (width, height))
        self.assertTrue(10_000 < self.out.stat().st_size < 1_000_000)

    def test_says_what_ranks_did_and_how_busy_the_cores_were(self):
        # Of 10 us a rank runs 2, sends 1, waits 3 and is ready for 4, within its wait.
        events = [
            span("compute", 0, 2), span("put", 2, 1), span("wait", 3, 7),
            span("ready", 6, 4, cat="ready"),
        ]  # fmt: skip
        more = {"otherData": {"cores": 2, "cores_in_use": 0.86}}
        status, said = self.run_tool(self.write(events, **more), self.out)
        self.assertEqual(status, 0, said)
        expected = "running 20%, sending 10%, ready 40%, waiting 30%; 86% of 2 cores in use"
        self.assertIn(expected, said)

    def test_a_pipelines_stages_are_not_called_ranks_that_run(self):
        named = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "COMP 0"}}
        status, said = self.run_tool(self.write([named, span("COMP", 0, 10)]), self.out)
        self.assertEqual(status, 0, said)
        self.assertIn("1 stage on 1 device, 10 us: compute 100%", said)

    def test_hundreds_of_ranks_and_many_events_stay_small_and_quick(self):
        trace = self.write(stencil(264, 100))
        began = time.perf_counter()
        for window in ([], ["--from", 0, "--to", 1010]):  # rectangles, then an image
            status, said = self.run_tool(trace, self.out, *window)
            self.assertEqual(status, 0, said)
            width, height = self.size()
            self.assertTrue(width < 2400 and height < 2400, (width, height))
        self.assertLess(time.perf_counter() - began, 60)  # about 3 on a quiet machine

    def test_colours_are_where_the_events_are(self):
        from matplotlib.image import imread

        events = [span("compute", 0, 50), span("wait", 50, 50)]
        timeline_picture.draw(self.write(events), self.out)
        picture = imread(self.out)[..., :3]
        for kind, left in (("compute", True), ("wait", False)):
            colour = timeline_picture.COLOURS[timeline_trace.NAMES.index(kind)]
            here = (np.abs(picture - colour) < 0.01).all(axis=2)
            # The first 85% of the height: the legend shows every colour once more.
            columns = np.flatnonzero(here[: int(0.85 * len(here))].any(axis=0))
            middle = picture.shape[1] / 2
            self.assertGreater(len(columns), 0.4 * picture.shape[1])
            self.assertEqual(columns.mean() < middle, left)

    def test_ranks_and_window_can_be_chosen(self):
        trace = self.write(stencil(8, 50))
        chosen = ("--ranks", "0-1,6", "--from", 100, "--to", 200)
        status, said = self.run_tool(trace, self.out, *chosen)
        self.assertEqual(status, 0, said)
        self.assertIn("3 ranks on 2 devices", said)

    def test_a_bare_list_of_events_and_events_of_no_length_are_drawn(self):
        path = self.folder / "list.json"
        path.write_text(json.dumps([span("notify", 5, 0)]))
        self.assertEqual(self.run_tool(path, self.out)[0], 0)


class Refusals(Case):
    def test_a_file_that_is_no_trace_is_named(self):
        path = self.folder / "missing.json"
        self.assert_refused("can't read", "missing.json", arguments=(path, self.out))
        path.write_text('{"traceEvents": [')
        self.assert_refused("no JSON", "stopped half way", arguments=(path, self.out))
        path.write_bytes(b"\xff\xfe\x00")
        self.assert_refused("no JSON", arguments=(path, self.out))
        for text in ("{}", "3", '{"traceEvents": [3]}'):
            path.write_text(text)
            self.assert_refused("no list 'traceEvents'", arguments=(path, self.out))

    def test_a_trace_without_events_is_named(self):
        only_names = self.write(names(0, "cpu:0", [0]))
        self.assert_refused("no complete events", arguments=(only_names, self.out))

    def test_an_event_without_numbers_is_shown(self):
        for broken in ({"ts": None}, {"ts": "soon"}, {"dur": float("nan")}, {"tid": []}):
            path = self.write([span("put", 0, 1), span("wait", 1, 1) | broken])
            key = next(iter(broken))
            self.assert_refused('"wait"', f"{key!r}", arguments=(path, self.out))
        path = self.write([span("put", 0, -1)])
        self.assert_refused("negative", arguments=(path, self.out))

    def test_an_empty_selection_says_what_there_is(self):
        path = self.write(stencil(4, 10))
        self.assert_refused("0 to 3", arguments=(path, self.out, "--ranks", "7-9"))
        self.assert_refused("'3-1'", arguments=(path, self.out, "--ranks", "3-1"))
        after = ("--from", 900, "--to", 950)
        self.assert_refused("end at 110 us", arguments=(path, self.out, *after))
        backwards = ("--from", 20, "--to", 10)
        self.assert_refused("before --to", arguments=(path, self.out, *backwards))
        gap = self.write([span("put", 0, 1), span("put", 99, 1)])
        between = ("--from", 10, "--to", 20)
        self.assert_refused("nothing happened", arguments=(gap, self.out, *between))

    def test_a_picture_that_cannot_be_written_is_named(self):
        path = self.write(stencil(2, 2))
        nowhere = self.folder / "nowhere" / "out.png"
        status, said = self.run_tool(path, nowhere)
        self.assertEqual(status, 2)
        self.assertIn("can't write", said)


if __name__ == "__main__":
    unittest.main()
