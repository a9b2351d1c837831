"""Tests apps/euler: its front, the comparison with NumPy, restarts, growth and the figure."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from front_case import DocumentedCase, FrontCase, SignalCase

try:
    import matplotlib  # noqa: F401
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy and Matplotlib: {missing}") from missing

PROGRAM = os.environ.get("MESHPOST_EULER_BINARY")
APP = Path(__file__).resolve().parents[2] / "apps" / "euler"

sys.path.insert(0, str(APP))
import euler
import saved


@unittest.skipUnless(PROGRAM, "MESHPOST_EULER_BINARY names no program")
class Front(FrontCase):
    def start(self, *arguments: str) -> tuple[int, str]:
        words = [*arguments, "--out", str(self.folder), "--progress", "never"]
        return self.outcome(PROGRAM, lambda: euler.front.guarded("euler", lambda: euler.run(words)))

    def facts(self) -> dict:
        return json.loads((self.folder / "result.json").read_text())

    def test_a_run_equals_numpy_and_a_changed_result_does_not(self):
        small = ("--devices=cpu:2", "--ranks=2", "--grid", "7x8x11", "--steps", "20")
        status, printed = self.start(*small, "--film", "--frames", "3")
        self.assertEqual(status, 0, printed)
        self.assertIn("reference   equal to the bit (NumPy)", printed)
        for name in ("euler.png", "film.gif"):
            self.assertGreater((self.folder / name).stat().st_size, 5_000, name)
        facts = self.facts()
        slices = np.load(facts["slices"])
        result = np.load(facts["output"])
        self.assertEqual(slices.shape, (len(facts["frames"]), 11, 7))
        np.testing.assert_array_equal(slices[-1], result[0, :, 4, :])

        import picture

        with mock.patch.object(picture.Figure, "savefig", autospec=True) as saved_as:
            picture.draw(facts, self.folder / "euler.png")
        *slices, growth = (axes for axes in saved_as.call_args[0][0].axes if axes.get_xlabel())
        self.assertEqual({axes.get_xlabel() for axes in slices}, {"x (length)"})
        self.assertIn("speed of sound", growth.get_xlabel())
        self.assertIn("1: sound", growth.get_ylabel())
        self.assertIn("periods along (x, y)", growth.get_legend().get_title().get_text())

        result[3, 9, 2, 1] = np.nextafter(result[3, 9, 2, 1], 1)
        np.save(facts["output"], result)
        passed, found = euler.reference(facts)
        self.assertFalse(passed)
        self.assertIn("DIFFERS in 1 cells, (1, 2, 9) first", found)
        self.assertIn("skipped", euler.reference(facts | {"steps": 1_000_000})[1])

    def test_a_restart_continues_to_the_bit(self):
        grid = ("--devices=cpu:1", "--ranks=2", "--grid", "6x6x8", "--no-plot")
        saved = str(self.folder / "saved")
        self.assertEqual(self.start(*grid, "--steps=30", "--no-check")[0], 0)
        whole = np.load(self.folder / "result.npy")
        self.assertEqual(self.start(*grid, "--steps=18", "--no-check", "--save", saved)[0], 0)
        status, printed = self.start(*grid, "--steps=12", "--restart", saved, "--devices=cpu:3")
        self.assertEqual(status, 0, printed)
        self.assertEqual(self.facts()["first_step"], 18)
        np.testing.assert_array_equal(np.load(self.folder / "result.npy"), whole)
        self.assertEqual(self.start("--grid", "6x6x9", "--restart", saved)[0], 2)

    def test_waves_grow_nearly_as_linear_theory_says(self):
        status, printed = self.start(
            "--growth", "--grid", "12x12x24", "--devices=cpu:1", "--ranks=1"
        )
        self.assertEqual(status, 0, printed)
        import growth

        for name, (measured, theory) in growth.rates(self.facts()).items():
            # 12 cells damp much; README.md has finer grids.
            self.assertTrue(0.5 < measured / theory < 1, f"{name}: {measured} {theory}")
        self.assertIn("growth      (1, 1)", printed)
        facts = self.facts()
        facts["frames"] = facts["frames"][:6]
        with self.assertRaisesRegex(ValueError, "a fit needs 5"):
            growth.rates(facts)

    def test_the_figure_has_both_ways_and_weak_scaling(self):
        status, printed = self.start(
            *("--figure", "--sizes", "6", "--series", "cpu:1 cpu:2", "--steps", "2"),
            *("--repetitions", "1", "--ranks", "2"),
        )
        self.assertEqual(status, 0, printed)
        runs = json.loads((self.folder / "figure.json").read_text())["runs"]
        kinds = [(run["count"], run["exchange"], run["kind"]) for run in runs]
        self.assertEqual(
            kinds,
            [
                (1, "direct", "same grid"),
                (2, "direct", "same grid"),
                (2, "through-host", "same grid"),
                (2, "direct", "same part"),
            ],
        )
        self.assertEqual(runs[3]["cells"], [6, 6, 12])
        self.assertTrue(all(len(run["seconds"]) == 1 and run["step"] > 0 for run in runs))
        self.assertTrue(all(run["waiting"] > 0 for run in runs))
        self.assertGreater((self.folder / "figure.png").stat().st_size, 10_000)

    def test_waves_that_do_not_grow_have_no_rate(self):
        status, printed = self.start(
            "--growth", "--amplitude=0", "--grid", "4x4x4", "--devices=cpu:1", "--ranks=1"
        )
        self.assertEqual(status, 1)
        self.assertIn("no growth rates: wave (1, 0) has 0 frames", printed)

    def test_misuse(self):
        for words, message in (
            (("--film", "--figure"), "ask for one"),
            (("--figure", "--sizes", "1 x"), "no list of sizes"),
        ):
            status, printed = self.start(*words)
            self.assertEqual(status, 2)
            self.assertIn(message, printed)


@unittest.skipUnless(PROGRAM, "MESHPOST_EULER_BINARY names no program")
class Signals(SignalCase):
    def test_a_signal_ends_the_front_and_the_program(self):
        long = ("--devices=cpu:2", "--steps=100000000", "--no-check")
        self.assert_signals_end_both(APP / "euler.py", PROGRAM, *long)

    def test_a_run_that_is_stopped_says_how_to_go_on(self):
        file = self.folder / "a saved state"
        save = ("--devices=cpu:1", "--save", str(file), "--no-check")
        for every, said in (("2000000", f"this run has not written {file} yet"), ("20", "Go on")):
            words = ("--grid", "6x6x8", "--every", every, *save, "--steps", "2000000")
            process, _ = self.start(APP / "euler.py", PROGRAM, *words)
            deadline = time.monotonic() + 30
            while every == "20" and not file.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, printed = process.communicate(timeout=30)
            self.assertIn(said, printed)
        step = int(re.search(r"has step (\d+), time", printed)[1])
        self.assertEqual((step > 0, step % 20), (True, 0))
        command = shlex.split(printed.partition("./run app euler ")[2])
        self.assertEqual(command[-1], str(2000000 - step))
        # It runs as it was printed, but for its steps.
        front = [sys.executable, str(APP / "euler.py"), "--out", str(self.folder)]
        with mock.patch.dict(os.environ, MESHPOST_APP_BINARY=PROGRAM):
            subprocess.run(
                [*front, "--no-plot", *command[command.index("--devices=cpu:1") : -1], "5"],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=30,
            )
        self.assertEqual(json.loads((self.folder / "result.json").read_text())["first_step"], step)

    def test_the_rest_of_a_run_counts_from_its_own_restart(self):
        def state(step: int, seconds: float) -> None:
            file.write_bytes(saved.HEADER.pack(saved.MAGIC, 4, 4, 4, step, seconds))

        file = self.folder / "saved"
        given = ["--restart", str(file), "--save", str(file)]
        for words, rest in (
            (["--steps", "50"], "--steps 43"),
            ([], "--steps 93"),
            (["--time=2"], "--time 1.5"),
        ):
            state(10, 1.0)
            run = saved.Saved([*given, *words])
            state(17, 1.5)
            self.assertTrue(run.advice().endswith(f"--restart {file} {rest}"), run.advice())
        file.write_text("no state")
        self.assertIn("has not written", saved.Saved(given).advice())
        self.assertEqual(saved.Saved([]).advice(), "")


@unittest.skipUnless(PROGRAM, "MESHPOST_EULER_BINARY names no program")
class Document(DocumentedCase):
    def test_the_readme_has_all_options(self):
        self.assert_table_is_complete(APP / "euler.py", PROGRAM)


class Fit(unittest.TestCase):
    def test_finds_the_rate_of_a_wave_that_begins_with_a_speed(self):
        import growth

        time = np.linspace(0.5, 2.5, 30)
        found = growth.fit(time, 3e-4 * np.cosh(1.3 * time), 1.4472)
        self.assertAlmostEqual(found, 1.3, places=2)


if __name__ == "__main__":
    unittest.main()
