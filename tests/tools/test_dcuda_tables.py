"""Tests apps/dcuda_tables: intervals and fits on known values, the tables, and the front."""

import contextlib
import importlib
import io
import json
import os
import random
import sys
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "apps" / "dcuda_tables"), str(ROOT / "apps" / "common")]
import dcuda_tables
import intervals
import tables

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

SIZES = (4, 4096, 1 << 20)


def timed(bytes_, pairs, seconds):
    return {"bytes": bytes_, "pairs": pairs, "rounds": 9, "seconds": {"median": seconds}}


def one_run(factor=1.0):
    """A start with 2 us + bytes / (10 GB/s), times `factor`."""
    times = [timed(s, pairs, factor * (2e-6 + pairs * s / 1e10)) for pairs in (1, 8) for s in SIZES]
    return {
        "device": "cpu:0 (A)", "notify": timed(0, 1, factor * 3e-6),
        "access": timed(4, 1, factor * 4e-6), "bandwidth": times,
        "host": [timed(0, 1, 5e-6), timed(0, 1, 6e-6)],
    }  # fmt: skip


def facts(starts=6, **jobs):
    jobs = jobs or {"device": [one_run(1 + 0.01 * i) for i in range(starts)]}
    return {"starts": starts, "missing": {}, "jobs": jobs}


class Intervals(unittest.TestCase):
    def test_a_line_is_found_again(self):
        found = intervals.hockney([tables.points(one_run(), True)] * 3)
        self.assertAlmostEqual(found.latency.value, 2e-6)
        for value in (found.bandwidth.value, found.bandwidth.lower, found.bandwidth.upper):
            self.assertAlmostEqual(value / 1e10, 1)

    def test_students_t_is_that_of_the_tables(self):
        for freedom, expected in ((1, 12.706), (5, 2.571), (30, 2.042), (60, 2.000), (120, 1.980)):
            self.assertAlmostEqual(intervals.t95(freedom), expected, places=3)

    def test_intervals_hold_the_truth_as_often_as_they_say(self):
        chance = random.Random(1)
        for function in (intervals.mean, intervals.median):
            held = 0
            for _ in range(2000):
                value = function([chance.gauss(5, 1) for _ in range(8)])
                held += value.lower <= 5 <= value.upper
            self.assertGreater(held, 2000 * 0.935, function)

    def test_starts_that_differ_widen_the_interval_though_each_one_is_smooth(self):
        # Two placements on cores, as they were seen: each start alone fits its line perfectly.
        fit = intervals.hockney([tables.points(one_run(f), True) for f in (1, 1, 1, 9, 9, 9)])
        self.assertLess(fit.latency.lower, 2e-6)
        self.assertGreater(fit.latency.upper, 18e-6)
        median = intervals.median([0.1, 0.1, 0.1, 3.2, 3.2, 3.2])
        self.assertEqual((median.lower, median.upper), (0.1, 3.2))

    def test_too_few_starts_have_no_interval(self):
        self.assertIsNone(intervals.median([1.0] * 5).lower)
        self.assertIsNotNone(intervals.median([1.0] * 6).lower)
        self.assertIsNone(intervals.mean([1.0]).lower)

    def test_time_that_does_not_grow_is_no_bandwidth(self):
        self.assertIsNone(intervals.hockney([[(1, 2.0), (9, 1.0)]] * 2).bandwidth)
        wide = intervals.hockney([[(0, 0.0), (1, 1.0)], [(0, 0.0), (1, 5.0)]]).bandwidth
        self.assertEqual(wide.upper, float("inf"))


class Tables(unittest.TestCase):
    def test_the_theses_figure_stands_beside_ours(self):
        text = tables.text(facts())
        self.assertRegex(text, r"access, same device +2.4 / 2.4 / 6.4 +4.1 \(4 to 4.2\)")
        self.assertRegex(text, r"same device, one +6.9 / - +9.76 \(9.57 to 9.95\)")
        self.assertRegex(text, r"flag in device memory +1.8 +not measured")

    def test_all_ranks_count_the_bytes_of_all_pairs(self):
        self.assertEqual(tables.points(one_run(), False)[-1][0], 8 << 20)

    def test_both_engines_have_rows_and_a_missing_one_has_its_reason(self):
        given = facts(1, ofi=[one_run()]) | {"missing": {"mpi": "there is no mpirun"}}
        text = tables.text(given)
        self.assertRegex(text, r"notify, other node, ofi +3.6 / 5.4 / - +3\n")
        self.assertRegex(text, r"mpi +not measured: there is no mpirun")
        self.assertIn("one start of each job: no intervals", text)

    def test_one_size_is_not_fitted(self):
        run = one_run() | {"bandwidth": [timed(4, 1, 1e-6)]}
        self.assertIn("not fitted: it needs two sizes", tables.text(facts(1, device=[run])))


class Front(FolderCase):
    def run_front(self, *given, **variables):
        heard = io.StringIO()
        with (
            mock.patch.dict(os.environ, variables),
            contextlib.redirect_stdout(heard),
            contextlib.redirect_stderr(heard),
        ):
            return dcuda_tables.main(["--out", str(self.folder), *given]), heard.getvalue()

    def program(self, body):
        """A program of one engine whose jobs do `body`."""
        path = self.folder / "program"
        path.write_text(
            f"#!{sys.executable}\nimport json, sys\n"
            f"if sys.argv[1:] == ['--engines']: print('ofi'); sys.exit()\n{body}\n"
        )
        path.chmod(0o755)
        return {"MESHPOST_APP_BINARY": str(path)}

    def test_each_job_is_started_so_often_and_the_engine_that_is_not_there_is_named(self):
        source = self.folder / "source.json"
        source.write_text(json.dumps(one_run()))
        body = f"open(sys.argv[sys.argv.index('--json') + 1], 'w').write(open('{source}').read())"
        given = ("--jobs", "device,mpi", "--starts", "2", "--no-plot")
        status, said = self.run_front(*given, **self.program(body))
        self.assertEqual(status, 0, said)
        written = json.loads((self.folder / "result.json").read_text())
        self.assertEqual(len(written["jobs"]["device"]), 2)
        self.assertEqual(written["missing"], {"mpi": "the program was built without this engine"})

    def test_a_job_that_fails_ends_it_and_leaves_no_figures_but_a_refusal_the_earlier_ones(self):
        for body, expected in (("sys.exit(1)", 1), ("sys.exit(2)", 2), ("", 1)):
            (self.folder / "result.json").write_text("{}")  # of an earlier run
            status, said = self.run_front("--jobs", "device", **self.program(body))
            self.assertEqual(status, expected)
            self.assertIn("job device failed", said)
            self.assertEqual((self.folder / "result.json").exists(), status == 2)

    def test_wrong_arguments_are_named(self):
        for given, message in (
            (("--jobs", "device,moon"), "there is no job 'moon'; name device, node, ofi, mpi"),
            (("--starts", "0"), "--starts 0: it is a number from 1 to 1000"),
            (("--draw", "x.json", "--ranks", "2"), "--ranks has no effect"),
        ):
            status, said = self.run_front(*given)
            self.assertEqual(status, 2, said)
            self.assertIn(message, said)
        status, said = self.run_front(MESHPOST_APP_LAUNCH="launch -n 2")
        self.assertEqual(status, 2)
        self.assertIn("it starts its jobs itself", said)

    def test_the_picture_is_drawn(self):
        try:
            importlib.import_module("matplotlib")
        except ImportError:
            self.skipTest("there is no Matplotlib")
        path = self.folder / "figures.json"
        path.write_text(json.dumps(facts(6, device=[one_run()] * 6, mpi=[one_run(2)] * 6)))
        status, said = self.run_front("--draw", str(path))
        self.assertEqual(status, 0, said)
        self.assertGreater((self.folder / "dcuda_tables.png").stat().st_size, 30_000)

    def test_the_program_itself_in_two_jobs(self):
        binary = os.environ.get("MESHPOST_DCUDA_TABLES_BINARY")
        if not binary:
            self.skipTest("MESHPOST_DCUDA_TABLES_BINARY names no program")
        given = [
            "--jobs",
            "device,node",
            "--starts",
            "2",
            "--repetitions",
            "1",
            "--rounds",
            "20",
            "--ranks",
            "2",
        ]
        given += ["--devices", "cpu:1", "--sizes", "4,64KiB", "--no-plot"]
        status, said = self.run_front(*given, MESHPOST_APP_BINARY=binary)
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"notify, same node +3.4 / 5 / - +\d")
        written = json.loads((self.folder / "result.json").read_text())["jobs"]
        self.assertEqual([run["processes"] for run in written["node"]], [2, 2])
        self.assertTrue(all(run["right"] for run in written["device"]))


if __name__ == "__main__":
    unittest.main()
