"""Tests the front that the case studies share, with apps/stencil: checks, figures, misuse."""

import contextlib
import io
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

APPS = Path(__file__).resolve().parents[2] / "apps"
BINARY = os.environ.get("MESHPOST_STENCIL_BINARY")
sys.path.insert(0, str(APPS / "common"))
import study

SMALL = (
    "--rows",
    "9",
    "--columns",
    "13",
    "--levels",
    "3",
    "--iterations",
    "5",
    "--repetitions",
    "2",
)


class Devices(unittest.TestCase):
    def test_missing_gpus_are_made_up_by_parts(self):
        self.assertEqual(study.devices_of(4, 0), "cpu:4")
        self.assertEqual(study.devices_of(2, 2), "cuda:0,1")
        self.assertEqual(study.devices_of(4, 2), "cuda:0,1*2")
        self.assertEqual(study.devices_of(9, 4), "cuda:0,1,2*3")
        self.assertEqual(study.devices_of(1, 8), "cuda:0")


class Fronts(FolderCase):
    def run_front(self, *arguments: str) -> subprocess.CompletedProcess:
        """Runs the front of apps/stencil, as ./run app does."""
        if not BINARY:
            self.skipTest("the program is not named")
        return subprocess.run(
            [sys.executable, "-B", str(APPS / "stencil" / "stencil.py"), *arguments],
            env=os.environ | {"MESHPOST_APP_BINARY": BINARY},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_a_run_is_compared_with_numpy(self):
        for precision in ("float", "double"):
            ran = self.run_front("--devices", "cpu:2", "--precision", precision, *SMALL)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("results     equal to the bit", ran.stdout)
            self.assertIn("reference   NumPy's, equal to the bit", ran.stdout)
        again = self.run_front("--draw", "out/stencil/result.json")
        self.assertEqual(again.returncode, 2)
        self.assertIn("there is no picture of a single run of stencil", again.stderr)

    def test_a_wrong_result_fails(self):
        try:
            import numpy as np
        except ImportError as missing:
            self.skipTest(str(missing))
        sys.path.insert(0, str(APPS / "stencil"))
        sys.modules.pop("reference", None)
        import reference

        initial = np.random.default_rng(1).random((8, 2, 9)).astype(np.float32)
        right = reference.step(initial)
        np.save(self.folder / "a.npy", initial)
        np.save(self.folder / "right.npy", right)
        self.assertEqual(
            reference.differing(self.folder / "a.npy", self.folder / "right.npy", 1), 0
        )
        right[4, 1, 4] = np.nextafter(right[4, 1, 4], np.float32(9))
        right[7, 0, 0] = np.nan
        np.save(self.folder / "wrong.npy", right)
        self.assertEqual(
            reference.differing(self.folder / "a.npy", self.folder / "wrong.npy", 1), 2
        )
        self.assertGreater(
            reference.differing(self.folder / "a.npy", self.folder / "right.npy", 2), 0
        )

    def test_a_figure_has_a_run_for_each_number_of_devices(self):
        ran = self.run_front("--figure", "--series", "cpu:1 cpu:1*3", "--no-plot", *SMALL)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("on GPUs: 1.2 times", ran.stdout)
        figures = json.loads((self.folder / "out/stencil/figure.json").read_text())
        self.assertEqual([run["device_count"] for run in figures["runs"]], [1, 3])
        again = self.run_front("--draw", "out/stencil/figure.json")
        self.assertEqual(again.returncode, 0, again.stderr)
        for run in figures["runs"]:
            self.assertEqual(len(run["kernel"]["samples"]), 2)
            self.assertEqual(len(run["communication"]["samples"]), 2)
            self.assertTrue(run["identical"])

    def test_a_refused_argument_leaves_the_earlier_figure_and_a_failure_does_not(self):
        folder = self.folder / "out/stencil"
        self.assertEqual(self.run_front("--figure", "--series", "cpu:1", *SMALL).returncode, 0)
        earlier = {file.name: file.read_bytes() for file in folder.iterdir()}
        self.assertIn("figure.json", earlier)
        for more in ((), ("--rows", "0")):
            ran = self.run_front("--figure", "--series", "cpu:1 bus:7", *SMALL, *more)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("failed: see its message above", ran.stderr)
            self.assertEqual({file.name: file.read_bytes() for file in folder.iterdir()}, earlier)
        ran = self.run_front("--figure", "--series", "cpu:1", *SMALL, "--output", "/proc/x.npy")
        self.assertEqual(ran.returncode, 1)
        self.assertEqual(list(folder.iterdir()), [])

    def test_more_ranks_than_cores_are_one_figure(self):
        ran = self.run_front("--oversubscribe", "--series", "cpu:2", "--no-plot", *SMALL)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        figures = json.loads((self.folder / "out/stencil/oversubscribe.json").read_text())
        ranks = [run["ranks_per_device"] for run in figures["runs"]]
        self.assertEqual(ranks, [ranks[0], 2 * ranks[0], 4 * ranks[0]])

    def test_arguments_that_do_not_go_together_are_refused(self):
        for arguments, message in (
            (("--series", "cpu:1"), "--series needs --figure or --oversubscribe"),
            (("--figure", "--oversubscribe"), "two figures; ask for one"),
        ):
            ran = self.run_front(*arguments)
            self.assertEqual(ran.returncode, 2)
            self.assertIn(message, ran.stderr)


class SeedFigures(FolderCase):
    def test_the_table_has_a_row_for_each_run(self):
        sys.path.insert(0, str(APPS / "seed_figures"))
        import seed_figures

        times = {"median": 2e-3}
        run = {
            "devices": ["cpu:0 (x)"],
            "device_count": 1,
            "against": "copies",
            "kernel": {"median": 1e-3},
            "two_model": times,
            "communication": times,
        }
        rows = seed_figures.lines_of({"study": "stencil", "claim": "faster", "runs": [run, run]})
        self.assertEqual(
            rows[0], "| stencil | faster | 1 cpu | copies | 2 ms | 2 ms | 1 ms | 2.00 |"
        )
        self.assertTrue(rows[1].startswith("|  |  | 1 cpu |"))

    def test_it_ends_with_the_first_study_that_fails(self):
        sys.path.insert(0, str(APPS / "seed_figures"))
        import seed_figures

        with (
            mock.patch.object(seed_figures.study, "measure", return_value=2) as measured,
            mock.patch.dict(os.environ, {"MESHPOST_APP_BINARY": "/none"}),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            self.assertEqual(seed_figures.run(["--no-plot", "--out", str(self.folder)]), 2)
            self.assertNotIn("MESHPOST_APP_BINARY", os.environ)
        self.assertEqual(measured.call_count, 1)


if __name__ == "__main__":
    unittest.main()
