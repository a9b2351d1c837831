"""Tests the front of apps/diffusion: complete runs, its options and its messages."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

try:
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy: {missing}") from missing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps" / "diffusion"))
import diffusion
import front
import program
from diffusion_case import APP, FAKE, Front, hills, steps


class Course(Front):
    def test_computes_checks_and_reports(self):
        status, said = self.run_front("--no-plot", "--iterations", "7", "--ranks", "3")
        self.assertEqual(status, 0, said)
        self.assertIn("NumPy check passed: the same bits", said)
        report = json.loads((self.out / "result.json").read_text())
        self.assertEqual(report["ranks"], 3)
        self.assertIs(report["numpy_check"]["passed"], True)
        self.assertEqual(set(report["files"]), {"result.npy", "timeline.json"})
        expected = steps(hills(1, 24, 30), 7, "float")
        np.testing.assert_array_equal(np.load(self.out / "result.npy"), expected)
        last = said.strip().splitlines()[-1]
        self.assertTrue(last.startswith("wrote") and "result.json" in last, said)

    def test_draws_pictures_of_the_sample_that_comes_with_matplotlib(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("needs Matplotlib")
        os.environ["FAKE"] = ""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = diffusion.main(["--out", str(self.out), "--iterations", "2"])
        self.assertEqual(status, 0, said.getvalue())
        self.assertIn("1 x 344 x 403", said.getvalue())
        for name in ("diffusion.png", "timeline.png"):
            picture = (self.out / name).read_bytes()
            self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
            self.assertIn(name, said.getvalue())
        self.assertGreater((self.out / "diffusion.png").stat().st_size, 100_000)

    def test_draws_flat_and_three_dimensional_fields(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("needs Matplotlib")
        for field in (np.full((6, 40), 3), hills(4, 30, 12)):
            status, said = self.run_front("--iterations", "3", source=self.save("f.npy", field))
            self.assertEqual(status, 0, said)
            self.assertIn("diffusion.png", said)

    def test_keeps_the_timelines_of_all_processes_and_draws_the_first(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("needs Matplotlib")
        status, said = self.run_front("--iterations", "3", mode="processes")
        self.assertEqual(status, 0, said)
        files = list(json.loads((self.out / "result.json").read_text())["files"])
        self.assertIn("timeline.png", files)
        self.assertEqual(files[3:], [f"timeline-{p}.json" for p in range(12)])
        status, said = self.run_front("--iterations", "3")
        self.assertEqual(status, 0, said)
        left = {file.name for file in self.out.glob("timeline*.json")}
        self.assertEqual(left, {"timeline.json"}, "of one process; those of twelve are gone")

    def test_passes_its_options_on(self):
        status, said = self.run_front(
            "--no-plot", "--no-check", "--precision", "double", "--devices", "cpu:5", "--json",
            str(self.folder / "deep" / "report.json"),
        )  # fmt: skip
        self.assertEqual(status, 0, said)
        self.assertIn("NumPy check skipped: --no-check", said)
        report = json.loads((self.folder / "deep" / "report.json").read_text())
        self.assertEqual(report["devices"], ["cpu:5"])
        self.assertIsNone(report["numpy_check"]["passed"])

    def test_without_numpy_runs_the_program_and_says_what_would_draw(self):
        for input_given, source in ((True, str(self.input)), (False, "random:1x344x403:1")):
            given = ["--out", str(self.out), "--scheme", "cosmo"]
            given += ["--input", source] if input_given else []
            said = io.StringIO()
            with (
                mock.patch.dict(os.environ, FAKE="plain"),
                mock.patch.dict(sys.modules, numpy=None, matplotlib=None),
                contextlib.redirect_stdout(said),
                contextlib.redirect_stderr(said),
            ):
                status = diffusion.main(given)
            self.assertEqual(status, 0, said.getvalue())
            self.assertIn("./run setup", said.getvalue())
            self.assertIn(f"Then: ./run app diffusion --out {self.out}", said.getvalue())
            report = json.loads((self.out / "result.json").read_text())
            self.assertEqual(report["input"], source)

    def test_without_numpy_an_archive_is_refused(self):
        archive = self.save("a.npz", field=hills(8, 8))
        with mock.patch.dict(sys.modules, numpy=None):
            self.assert_refused("a.npz", "./run setup", source=archive)

    def test_fails_where_the_result_is_wrong(self):
        for mode in ("zeros", "unchanged", "nan", "shape", "differs"):
            with self.subTest(mode):
                status, said = self.run_front("--no-plot", mode=mode)
                self.assertEqual(status, 1, said)
                report = json.loads((self.out / "result.json").read_text())
                self.assertIs(report["numpy_check"]["passed"], mode == "differs")

    def test_fails_where_the_program_fails_and_leaves_no_old_result(self):
        for mode, status, text in (
            ("1", 1, "status 1"),
            ("2", 2, "refused its arguments"),
            ("crash", 1, "SIGABRT"),
            ("silent", 1, "result.npy"),
        ):
            with self.subTest(mode):
                self.assertEqual(self.run_front("--no-plot")[0], 0)
                found, said = self.run_front("--no-plot", mode=mode)
                self.assertEqual(found, status, said)
                self.assertIn(text, said)
                refused = status == 2  # then the old ones stay
                self.assertEqual((self.out / "result.npy").exists(), refused)
                self.assertEqual((self.out / "result.json").exists(), refused)
                self.assertEqual(list(self.out.glob("*.earlier")), [])

    def test_names_what_is_wrong_with_an_argument(self):
        self.assert_refused("'-1'", "iterations >= 0", arguments=("--iterations", "-1"))
        self.assert_refused("'2.5'", arguments=("--iterations", "2.5"))
        self.assert_refused("ranks >= 1", arguments=("--ranks", "0"))
        self.assert_refused("'half'", arguments=("--precision", "half"))
        self.assert_refused("can't write to", arguments=("--out", str(self.input / "below")))
        os.environ["MESHPOST_APP_BINARY"] = str(self.folder / "missing")
        self.assert_refused("missing", "./run app diffusion")
        del os.environ["MESHPOST_APP_BINARY"]
        with mock.patch.object(front, "ROOT", self.folder):
            self.assert_refused("build/*/apps/diffusion/diffusion", "./run app diffusion")
        self.assertFalse(self.out.exists(), "a refused call leaves nothing behind")

    def test_finds_the_newest_build(self):
        del os.environ["MESHPOST_APP_BINARY"]
        for age, preset in ((100, "old"), (0, "new"), (50, "older")):
            path = self.folder / "build" / preset / "apps" / "diffusion" / "diffusion"
            path.parent.mkdir(parents=True)
            path.write_text(FAKE)
            path.chmod(0o755)
            os.utime(path, (time.time() - age,) * 2)
        with mock.patch.object(front, "ROOT", self.folder):
            self.assertIn("/new/", str(program.find_binary()))

    def test_help_names_every_option_and_default(self):
        status, said = self.run_front("--help")
        self.assertEqual(status, 0)
        for text in ("--input", "--array", "--devices", "--no-check", "default: 200", "example"):
            self.assertIn(text, said)

    def test_an_interrupt_stops_the_program_and_says_so(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with self.subTest(number.name):
                pid_file = self.folder / f"pid{status}"
                environment = os.environ | {"FAKE": "hang", "FAKE_PID": str(pid_file)}
                command = [sys.executable, str(APP / "diffusion.py"), "--no-plot"]
                command += ["--input", str(self.input), "--out", str(self.out)]
                front = subprocess.Popen(
                    command,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # A shell's background job, as these tests may be, passes on SIGINT as ignored.
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                )
                deadline = time.monotonic() + 30
                while not pid_file.exists() and time.monotonic() < deadline:
                    time.sleep(0.02)
                front.send_signal(number)
                _, said = front.communicate(timeout=30)
                self.assertEqual(front.returncode, status, said)
                self.assertIn(b"stopped diffusion (process", said)
                self.assertNotIn(b"Traceback", said)
                with self.assertRaises(ProcessLookupError):
                    os.kill(int(pid_file.read_text()), 0)


class Documents(unittest.TestCase):
    def test_the_readme_names_only_options_there_are(self):
        words = (APP / "README.md").read_text().split()
        options = {word.strip("`.,)(") for word in words if word.startswith("`--")}
        self.assertIn("--no-check", options)
        with contextlib.redirect_stdout(io.StringIO()) as said, self.assertRaises(SystemExit):
            diffusion.main(["--help"])
        for option in options:
            self.assertIn(option, said.getvalue())


if __name__ == "__main__":
    unittest.main()
