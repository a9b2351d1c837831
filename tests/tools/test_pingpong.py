"""Tests apps/pingpong: the front, what its pictures show, and the halo against NumPy."""

import contextlib
import importlib.util
import io
import json
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

try:
    import matplotlib  # noqa: F401
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy and Matplotlib: {missing}") from missing

APP = Path(__file__).resolve().parents[2] / "apps" / "pingpong"
PROGRAM = os.environ.get("MESHPOST_PINGPONG_BINARY")


def load(name):
    """A module of the app, under a name that differs from modules of other apps."""
    spec = importlib.util.spec_from_file_location(f"pingpong_{name}", APP / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one(**more) -> dict:
    times = dict.fromkeys(("seconds", "lower_quartile", "upper_quartile", "cpu_seconds"), 1e-6)
    return {"mode": "host", "buffer": "device", "bytes": 8, "problem": ""} | times | more


class Pictures(unittest.TestCase):
    def test_the_floor_has_the_least_latency_and_the_highest_rate(self):
        rows = [one(bytes=b, seconds=4e-6 + 2 * b / 1e9) for b in (0, 8, 1 << 10, 1 << 20)]
        slower = [one(mode="stream", bytes=b, seconds=9e-6 + 3 * b / 1e9) for b in (8, 1 << 20)]
        wrong = [one(bytes=8, seconds=1e-6, problem="byte 0 is wrong")]
        latency, rate = load("picture").floor_of({"results": slower + rows + wrong}, "device")
        self.assertAlmostEqual(latency, 2e-6)
        self.assertAlmostEqual(rate / 1e9, 1)
        self.assertIsNone(load("picture").floor_of({"results": rows[:1]}, "device"))
        self.assertIsNone(load("picture").floor_of({"results": rows}, "host"))

    def test_a_gain_is_the_share_of_the_hosts_time_that_is_saved(self):
        def step(mode, seconds, cube=8):
            return {"mode": mode, "cube": cube, "steps": 5, "tasks": [1, 1, 1], "seconds": seconds}

        rows = [step("host", 4.0), step("stream", 3.0), step("kernel", 5.0), step("stream", 1.0, 9)]
        found = load("picture").gains({"results": rows})
        self.assertEqual([(r["mode"], r["gain"]) for r in found], [("stream", 25), ("kernel", -25)])
        with self.assertRaisesRegex(ValueError, "host"):
            load("picture").gains({"results": rows[1:]})


class Reference(FolderCase):
    def fields(self) -> dict:
        reference = load("reference")
        before = np.random.default_rng(3).uniform(-1, 1, (4, 2, 6))
        after = reference.step(reference.step(before))
        files = {"before": before, "host": after, "stream": after.copy()}
        files["stream"][3, 1, 5] = np.nextafter(after[3, 1, 5], 2)
        for name, values in files.items():
            values.tofile(self.folder / name)
        paths = {name: str(self.folder / name) for name in files}
        return {"shape": [4, 2, 6], "steps": 2, "before": paths.pop("before"), "after": paths}

    def test_of_a_point_takes_its_six_neighbours_and_zeros_beyond_the_edges(self):
        u = np.zeros((3, 3, 3))
        u[1, 1, 1] = 1
        after = load("reference").step(u)
        self.assertAlmostEqual(after[1, 1, 1], 0.4)
        self.assertAlmostEqual(after[0, 1, 1] + after[1, 2, 1] + after[1, 1, 0], 0.3)
        self.assertAlmostEqual(after.sum(), 1)
        self.assertEqual(np.count_nonzero(after), 7)
        self.assertAlmostEqual(load("reference").step(np.ones((1, 1, 1)))[0, 0, 0], 0.4)

    def test_finds_the_mode_whose_field_differs_in_the_last_bit(self):
        self.assertEqual(load("reference").differing(self.fields()), ["stream"])

    def test_makes_the_front_fail_if_a_field_differs_or_is_damaged(self):
        front, figures = load("pingpong"), self.folder / "figures.json"
        with contextlib.redirect_stdout(io.StringIO()) as heard:
            figures.write_text(json.dumps({"fields": self.fields()}))
            self.assertEqual(front.compare(figures), 1)
            self.assertIn("DIFFERS from stream", heard.getvalue())
            figures.write_text(json.dumps({"results": []}))
            self.assertEqual(front.compare(figures), 0)
            figures.write_text(json.dumps({"fields": self.fields() | {"shape": [9, 9, 9]}}))
            with self.assertRaisesRegex(front.front.Failure, "damaged"):
                front.compare(figures)


@unittest.skipUnless(PROGRAM, "ctest runs these, with the program built")
class Program(FolderCase):
    def draw(self, figure: str, *more: str) -> tuple[int, str, dict]:
        """Runs front and program. Returns the status, the output and the figures."""
        given = ["--figure", figure, "--out", str(self.folder), "--repetitions", "2", *more]
        heard = io.StringIO()
        with (
            mock.patch.dict(os.environ, {"MESHPOST_APP_BINARY": PROGRAM}),
            contextlib.redirect_stdout(heard),
        ):
            status = load("pingpong").main(given)
        kept = json.loads((self.folder / f"figure-{figure}.json").read_text())
        self.assertGreater((self.folder / f"figure-{figure}.png").stat().st_size, 20_000)
        return status, heard.getvalue(), kept

    def test_writes_a_halo_that_is_numpys_to_the_bit(self):
        given = ("--devices", "cpu:4", "--cubes", "6,12", "--steps", "1,3", "--tasks", "2,1,2")
        status, said, kept = self.draw("halo", *given)
        self.assertEqual(status, 0, said)
        self.assertIn("NumPy       equal to the bit", said)
        self.assertEqual(list(kept["fields"]["after"]), ["host", "kernel", "stream"])
        self.assertEqual(kept["fields"]["shape"], [6, 12, 12])
        self.assertEqual(len(kept["results"]), 3 * 2 * 2)

    def test_writes_a_result_for_each_mode_buffer_and_size(self):
        for figure, kernel in (("13", 0), ("18", 5e-6)):
            given = ("--devices", "cpu:2", "--size", "1,64KiB", "--trips", "4")
            status, said, kept = self.draw(figure, *given)
            self.assertEqual(status, 0, said)
            self.assertEqual(kept["kernel_seconds"], kernel)
            found = {(r["mode"], r["buffer"], r["bytes"]) for r in kept["results"]}
            self.assertEqual((len(found), len(kept["jumps"])), (12, 6))
            for row in kept["results"]:
                self.assertEqual(row["problem"], "")
                self.assertGreater(row["least_seconds"], 2 * kernel)


if __name__ == "__main__":
    unittest.main()
