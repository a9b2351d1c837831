"""Tries the front of apps/diffusion: its reference, its check, its messages and its whole course.

A small script stands in for the C++ program, so nothing needs to be built.
"""

import contextlib
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

try:
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy: {missing}") from missing

APP = Path(__file__).resolve().parents[2] / "apps" / "diffusion"
sys.path.insert(0, str(APP))
import diffusion

# Stands in for the program; the variable FAKE says how it misbehaves.
FAKE = f"""#!{sys.executable}
import json, os, sys, time
sys.path.insert(0, {str(APP)!r})
import numpy as np, diffusion
mode = os.environ.get("FAKE", "")
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for flag in ("--check", "--no-check"):
    if flag in sys.argv:
        where = sys.argv.index(flag)
        rest = sys.argv[1:where] + sys.argv[where + 1:]
        given = dict(zip(rest[::2], rest[1::2]))
if mode == "hang":
    open(os.environ["FAKE_PID"] + ".part", "w").write(str(os.getpid()))
    os.rename(os.environ["FAKE_PID"] + ".part", os.environ["FAKE_PID"])
    time.sleep(60)
if mode in ("1", "2"):
    sys.exit(int(mode))
if mode == "crash":
    os.abort()
u = np.load(given["--input"])
assert u.dtype == np.float64 and u.ndim == 3 and u.flags.c_contiguous
v = u.astype(diffusion.TYPES[given["--precision"]])
for _ in range(int(given["--iterations"])):
    v = diffusion.step(v)
v = v.astype(float)
v = {{"zeros": v * 0, "unchanged": u, "nan": v + np.nan, "shape": v[:, :-1]}}.get(mode, v)
if mode != "silent":
    np.save(given["--output"], v)
ranks = range(int(given.get("--ranks", 4)))
spans = [dict(ph="X", name="compute", ts=9.0 * r, dur=8, pid=0, tid=r) for r in ranks]
json.dump(dict(traceEvents=spans), open(given["--trace"], "w"))
report = dict(devices=[given.get("--devices", "cpu:0")], ranks=len(ranks), bit_identical=True)
json.dump(report, open(given["--json"], "w"))
sys.exit(1 if mode == "differs" else 0)
"""


def slow_step(u: np.ndarray) -> np.ndarray:
    """The formula point by point, for a (rows, columns) field; shares no code with step()."""
    four = u.dtype.type(4)  # NumPy 1 widens a float32 scalar times a plain 4

    def lap(j, i):
        return four * u[j, i] - ((u[j, i - 1] + u[j, i + 1]) + (u[j - 1, i] + u[j + 1, i]))

    def flux(j, i, dj, di):
        value = lap(j + dj, i + di) - lap(j, i)
        return value if value * (u[j + dj, i + di] - u[j, i]) <= 0 else u.dtype.type(0)

    out = u.copy()
    for j, i in itertools.product(range(2, u.shape[0] - 2), range(2, u.shape[1] - 2)):
        east_west = flux(j, i, 0, 1) - flux(j, i - 1, 0, 1)
        north_south = flux(j, i, 1, 0) - flux(j - 1, i, 1, 0)
        out[j, i] = u[j, i] - u.dtype.type(0.025) * (east_west + north_south)
    return out


def steps(u: np.ndarray, n: int, precision: str = "double") -> np.ndarray:
    """n steps from a float64 field, widened to float64 again."""
    u = u.astype(diffusion.TYPES[precision])
    for _ in range(n):
        u = diffusion.step(u)
    return u.astype(np.float64)


def hills(*shape: int, seed: int = 1) -> np.ndarray:
    """A random field of whole metres, with plateaus."""
    return np.random.default_rng(seed).integers(200, 1000, shape).astype(np.float64) // 50 * 50


class Step(unittest.TestCase):
    def test_equals_the_formula_point_by_point_in_every_bit(self):
        for seed, kind in itertools.product(range(6), (np.float32, np.float64)):
            random = np.random.default_rng(seed)
            u = random.normal(size=random.integers(5, 12, 2)).astype(kind)
            if seed % 2:
                u = np.round(u)  # equal neighbours: the limiter's product is exactly 0
            np.testing.assert_array_equal(diffusion.step(u), slow_step(u))
            self.assertEqual(diffusion.step(u).dtype, kind)

    def test_levels_do_not_mix(self):
        u = hills(3, 9, 8)
        for level in range(3):
            np.testing.assert_array_equal(diffusion.step(u)[level], diffusion.step(u[level]))

    def test_the_limiter_stops_some_fluxes_and_leaves_others(self):
        u = hills(20, 20)
        free = -0.025 * self.biharmonic(u)[2:-2, 2:-2]
        moved = (diffusion.step(u) - u)[2:-2, 2:-2]
        self.assertTrue((moved != 0).any())
        self.assertFalse(np.allclose(abs(moved), abs(free)))

    @staticmethod
    def biharmonic(u: np.ndarray) -> np.ndarray:
        """What a step would apply without the limiter, up to its sign."""

        def lap(f):
            around = [np.roll(f, shift, axis) for shift in (1, -1) for axis in (0, 1)]
            return sum(around) - 4 * f

        return lap(lap(u))

    def test_a_constant_field_stays_in_every_bit(self):
        for kind in (np.float32, np.float64):
            u = np.full((9, 11), 0.1, kind)
            np.testing.assert_array_equal(diffusion.step(u), u)

    def test_conserves_the_sum_away_from_the_border(self):
        u = np.zeros((40, 40))
        u[15:25, 15:25] = hills(10, 10)
        after = u
        for _ in range(4):
            after = diffusion.step(after)
        self.assertGreater(np.abs(after - u).max(), 1)
        self.assertAlmostEqual(after.sum(), u.sum(), delta=1e-9)

    def test_keeps_the_outer_two_cells(self):
        u = hills(9, 12)
        changed = diffusion.step(u) != u
        self.assertFalse(np.delete(np.delete(changed, range(2, 7), 0), range(2, 10), 1).any())
        self.assertFalse(changed[[0, 1, -2, -1]].any() or changed[:, [0, 1, -2, -1]].any())

    def test_knows_no_direction(self):
        u = hills(13, 17)
        after = diffusion.step(u)
        np.testing.assert_array_equal(diffusion.step(u.T), after.T)
        np.testing.assert_array_equal(diffusion.step(u[::-1]), after[::-1])
        np.testing.assert_array_equal(diffusion.step(u[:, ::-1]), after[:, ::-1])


class Check(unittest.TestCase):
    def check(self, after: np.ndarray, n: int = 20, precision: str = "double", before=None):
        before = hills(2, 20, 24) if before is None else before
        return diffusion.check_result(before, after, n, precision)

    def assert_fails(self, after: np.ndarray, *expected: str, **how):
        check = self.check(after, **how)
        self.assertIs(check.passed, False, check)
        for text in expected:
            self.assertIn(text, check.reason)

    def setUp(self):
        self.before = hills(2, 20, 24)
        self.good = steps(self.before, 20)

    def test_passes_the_same_bits(self):
        for precision in diffusion.TYPES:
            check = self.check(steps(self.before, 20, precision), precision=precision)
            self.assertIs(check.passed, True, check)
            self.assertTrue(check.identical)

    def test_rejects_nan_zero_unchanged_and_misshapen_results(self):
        one = self.good.copy()
        one[1, 7, 7] = np.nan
        self.assert_fails(one, "1 values that are NaN")
        self.assert_fails(self.good * np.inf, "NaN or infinite")
        self.assert_fails(self.before, "unchanged input")
        zero = self.before.copy()
        zero[:, 2:-2, 2:-2] = 0
        self.assert_fails(zero, "the result is zero")
        self.assert_fails(zero * 0, "outer 2 cells")
        self.assert_fails(self.good[:1], "shape")
        self.assert_fails(self.good.astype(np.float32), "float32, not float64")

    def test_rejects_one_iteration_too_few_or_too_many(self):
        for precision, n in itertools.product(diffusion.TYPES, (19, 21)):
            self.assert_fails(steps(self.before, n, precision), "largest", precision=precision)

    def test_rejects_a_changed_border(self):
        self.good[0, 1, 5] += 1e-9
        self.assert_fails(self.good, "outer 2 cells")

    def test_rejects_a_double_result_where_float_was_asked(self):
        self.assert_fails(self.good, "no float32", precision="float")

    def test_the_smallest_error_above_the_limit_fails_and_names_the_place(self):
        for precision, kind in diffusion.TYPES.items():
            good = steps(self.before, 20, precision)
            after = good.copy()
            at = (1, 9, 13)
            largest, change = np.abs(good).max(), np.abs(good - self.before).max()
            limit = diffusion.allowed_error(largest, change, 20, precision)
            value = kind(good[at] + 0.9 * limit)
            while abs(float(value) - good[at]) <= limit:
                last, value = value, np.nextafter(value, kind(np.inf))
            after[at] = last
            self.assertIs(self.check(after, precision=precision).passed, True)
            after[at] = value
            self.assert_fails(after, "level 1, row 9, column 13", precision=precision)

    def test_a_field_that_hardly_moves_may_not_stand_still(self):
        before = 1e6 + hills(1, 12, 12) * 1e-11  # one step moves it by less than rounding allows
        good = steps(before, 1)
        self.assertTrue((good != before).any())
        self.assertIs(self.check(good, 1, before=before).passed, True)
        self.assert_fails(before, "unchanged", n=1, before=before)

    def test_a_fixed_point_and_no_iterations_must_change_nothing(self):
        flat = np.full((1, 8, 8), 0.1)
        for before, n in ((flat, 50), (flat * 0, 50), (self.before, 0)):
            self.assertIs(self.check(before, n, before=before).passed, True)
            other = before.copy()
            other[0, 4, 4] = np.nextafter(other[0, 4, 4], 1e9)
            self.assert_fails(other, "largest error", n=n, before=before)

    def test_says_when_there_is_too_much_for_numpy(self):
        check = self.check(self.good, n=10**7)
        self.assertIsNone(check.passed)
        self.assertIn("exceed", check.reason)
        self.assert_fails(self.good * np.nan, "NaN", n=10**7)

    def test_two_hundred_steps_of_a_field_like_the_sample_take_seconds_at_most(self):
        before = hills(1, 344, 403)
        check = self.check(steps(before, 200, "float"), 200, "float", before)
        self.assertIs(check.passed, True)
        self.assertLess(check.seconds, 10)  # about 0.2 on a quiet machine


class Front(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.binary = self.folder / "diffusion"
        self.binary.write_text(FAKE)
        self.binary.chmod(0o755)
        self.input = self.folder / "hills.npy"
        np.save(self.input, hills(24, 30))
        self.out = self.folder / "out"
        fakes = mock.patch.dict(os.environ, MESHPOST_APP_BINARY=str(self.binary), FAKE="")
        fakes.start()
        self.addCleanup(fakes.stop)
        # main() sets it for a process of its own.
        self.addCleanup(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))

    def run_front(self, *arguments: str, mode: str = "", source: Path | None = None):
        """Runs the front. Returns its exit status and all that it said."""
        given = ["--out", str(self.out), "--input", str(source or self.input), *arguments]
        said = io.StringIO()
        os.environ["FAKE"] = mode
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = diffusion.main(given)
            except SystemExit as error:  # argparse's way
                status = error.code
        return status, said.getvalue()

    def assert_refused(self, *expected: str, arguments=(), source=None, status: int = 2):
        found, said = self.run_front(*arguments, source=source)
        self.assertEqual(found, status, said)
        for text in expected:
            self.assertIn(text, said)
        self.assertNotIn("Traceback", said)

    def save(self, name: str, *arrays, **named) -> Path:
        path = self.folder / name
        np.savez(path, **named) if named else np.save(path, *arrays)
        return path

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
                self.assertFalse((self.out / "result.npy").exists())
                self.assertFalse((self.out / "result.json").exists())

    def test_chooses_the_largest_fitting_array_of_an_archive(self):
        arrays = {"line": np.zeros(9000), "words": np.array([["a"] * 9] * 9), "z": hills(6, 7)}
        path = self.save("many.npz", **arrays, w=hills(2, 5, 6))
        self.assertIn("2 x 5 x 6", self.run_front("--no-plot", source=path)[1])
        said = self.run_front("--no-plot", "--array", "z", source=path)[1]
        self.assertIn("1 x 6 x 7", said)
        self.assert_refused("no array 'q'", "line", arguments=("--array", "q"), source=path)
        line = self.save("line.npz", line=np.zeros(9))
        self.assert_refused("no numeric array of 2 or 3", source=line)
        self.assert_refused("without a name", arguments=("--array", "q"))

    def test_takes_any_layout_and_number_type(self):
        for field in (np.asfortranarray(hills(9, 8)), hills(9, 8).astype(">i2"), hills(9, 8) > 500):
            source = self.save("any.npy", field)
            self.assertEqual(self.run_front("--no-plot", source=source)[0], 0)

    def test_names_what_is_wrong_with_an_input(self):
        self.assert_refused("no file", "nowhere.npy", source=self.folder / "nowhere.npy")
        text = self.folder / "text.npy"
        text.write_text("hello")
        self.assert_refused("no .npy or .npz", source=text)
        text.write_text("")
        self.assert_refused("no .npy or .npz", source=text)
        self.assert_refused("no .npy or .npz", source=self.folder)
        self.assert_refused("complex128", source=self.save("c.npy", hills(9, 9) + 0j))
        self.assert_refused("not numbers", source=self.save("s.npy", np.array([["a"]])))
        self.assert_refused("1 dimensions", "slice", source=self.save("l.npy", np.zeros(9)))
        self.assert_refused("4 dimensions", source=self.save("4.npy", np.zeros((2, 2, 9, 9))))
        self.assert_refused("(4, 9)", "5 rows", source=self.save("r.npy", hills(4, 9)))
        self.assert_refused("(9, 4)", "5 columns", source=self.save("k.npy", hills(9, 4)))
        self.assert_refused("at least 1 level", source=self.save("0.npy", np.zeros((0, 9, 9))))
        for bad in (np.nan, np.inf):
            field = hills(9, 9)
            field[3, 4] = bad
            self.assert_refused("1 of 81", "nan_to_num", source=self.save("n.npy", field))
        large = self.save("large.npy", np.full((9, 9), 1e38))
        self.assert_refused("1e+38", "--precision double", source=large)
        objects = self.folder / "objects.npy"
        np.save(objects, np.array([[{}]]), allow_pickle=True)
        self.assert_refused("no .npy or .npz", source=objects)

    def test_names_what_is_wrong_with_an_argument(self):
        self.assert_refused("'-1'", "iterations >= 0", arguments=("--iterations", "-1"))
        self.assert_refused("'2.5'", arguments=("--iterations", "2.5"))
        self.assert_refused("ranks >= 1", arguments=("--ranks", "0"))
        self.assert_refused("'half'", arguments=("--precision", "half"))
        self.assert_refused("can't write to", arguments=("--out", str(self.input / "below")))
        os.environ["MESHPOST_APP_BINARY"] = str(self.folder / "missing")
        self.assert_refused("missing", "./run app diffusion")
        del os.environ["MESHPOST_APP_BINARY"]
        with mock.patch.object(diffusion, "ROOT", self.folder):
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
        with mock.patch.object(diffusion, "ROOT", self.folder):
            self.assertIn("/new/", str(diffusion.find_binary()))

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
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
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
