"""Tests apps/cg: what its check accepts, its results over devices, and its pictures."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase
from front_case import DocumentedCase, SignalCase

try:
    import matplotlib  # noqa: F401
    import numpy as np
    import scipy.io
    import scipy.sparse
except ImportError as missing:
    raise unittest.SkipTest(f"needs SciPy and Matplotlib: {missing}") from missing

APPS = Path(__file__).resolve().parents[2] / "apps"
sys.path[:0] = [str(APPS / "cg"), str(APPS / "common")]
import cg
import picture
import reference

BINARY = os.environ.get("MESHPOST_CG_BINARY")
QUICK = ("--repetitions", "1")


class References(unittest.TestCase):
    def test_laplacians_have_the_rows_of_their_stencils(self):
        for points, extent in ((5, [4, 3, 1]), (7, [4, 3, 5]), (27, [4, 3, 5])):
            matrix = reference.laplacian(points, extent).toarray()
            self.assertTrue((matrix == matrix.T).all())
            self.assertTrue((np.diag(matrix) == points - 1).all())
            self.assertEqual(set(matrix[~np.eye(len(matrix), dtype=bool)]), {0, -1})
        inner = reference.laplacian(27, [3, 3, 3]).toarray()[13]
        self.assertEqual((inner.sum(), (inner != 0).sum()), (0, 27))

    def test_its_iterations_solve_the_system(self):
        matrix = reference.laplacian(7, [5, 4, 3])
        b = reference.right_side(60, 1)
        x, iterations = reference.solve(matrix, b, 1e-12, 100)
        self.assertLess(np.linalg.norm(matrix @ x - b), 1e-11 * np.linalg.norm(b))
        self.assertLess(iterations, 60)
        self.assertEqual(reference.solve(matrix, b, 1e-12, 3)[1], 3)

    def test_the_least_eigenvalue_is_that_of_a_dense_solver(self):
        for extent in ([5, 4, 3], [3, 3, 1], [1, 1, 1]):
            matrix = reference.laplacian(7, extent)
            least = np.linalg.eigvalsh(matrix.toarray())[0]
            self.assertAlmostEqual(reference.least_eigenvalue(matrix), least, places=9)

    def test_a_bar_has_the_phases_of_a_mode_in_milliseconds(self):
        run = {"runs": [{"mode": "kernel", "spent": {"product": 2e-3, "sums": 1e-3}}]}
        self.assertEqual(
            picture.bars([run], ["2 cpu"]), [("2 cpu\nkernel", {"product": 2.0, "sums": 1.0})]
        )

    def test_the_picture_names_the_runs_that_it_shows(self):
        def mode(name: str, overlaps: bool) -> dict:
            return {"mode": name, "spent_overlaps": overlaps, "iteration": {"median": 2e-3}}

        run = {"runs": [mode("kernel", True), mode("host", False), mode("stream", False)]}
        bars, modes, marks = picture.titles([run])
        self.assertIn("the run that measures phases", bars)
        self.assertEqual(modes, "(modes host and stream: without overlap)")
        self.assertIn("timed runs, with overlap", marks)
        self.assertEqual(picture.timed([run]), [2.0] * 3)
        run["runs"] = run["runs"][:1]
        self.assertEqual(picture.titles([run]), [bars, marks])


@unittest.skipUnless(BINARY, "the program is not named")
class Program(FolderCase):
    def run_front(self, *arguments: str) -> tuple[int, str]:
        """Runs the front in this process, as one would from a shell."""
        out = io.StringIO()
        with (
            mock.patch.dict(os.environ, {"MESHPOST_APP_BINARY": BINARY}),
            contextlib.redirect_stdout(out),
        ):
            status = cg.run([*arguments, *QUICK, "--out", str(self.folder)])
        return status, out.getvalue()

    def test_laplacians_and_files_give_scipys_solution(self):
        rng = np.random.default_rng(3)
        half = np.tril(rng.random((97, 97)) * (rng.random((97, 97)) < 0.1))
        file = self.folder / "symmetric.mtx"
        scipy.io.mmwrite(file, scipy.sparse.coo_array(half + half.T))
        for arguments in (
            ("--laplacian", "5", "--grid", "11x9", "--no-plot"),
            ("--laplacian", "27", "--grid", "9x5x7", "--devices", "cpu:3"),
            ("--matrix", str(file), "--shift", "20", "--no-plot"),
            ("--grid", "7x6x5", "--tolerance", "0", "--no-plot"),
        ):
            status, text = self.run_front(*arguments)
            self.assertEqual(status, 0)
            self.assertIn("reference   compares with NumPy and SciPy ...\nreference   |b - A", text)
            self.assertRegex(text, r"from NumPy's, of \d+ iterations, by .*a direct solver's by")
            self.assertEqual((self.folder / "cg.png").exists(), "--no-plot" not in arguments)

    def test_a_wrong_solution_or_count_of_iterations_fails(self):
        with mock.patch.object(np, "load", lambda *_, **__: np.zeros(60)):
            status, text = self.run_front("--grid", "5x4x3", "--no-plot")
        self.assertEqual(status, 1)
        self.assertIn("reference   DIFFERS: |b - A x| is 1 |b|", text)
        with mock.patch.object(reference, "solve", lambda *_: (None, 3)):
            status, text = self.run_front("--grid", "5x4x3", "--no-plot")
        self.assertEqual(status, 1)
        self.assertIn("NumPy: 3", text)

    def test_the_phases_printed_add_up_to_the_run_that_they_name(self):
        where = [BINARY, "--grid", "13x11x7", "--devices", "cpu:2", *QUICK]
        text = subprocess.run(
            where, check=True, stdout=subprocess.PIPE, text=True, timeout=60
        ).stdout
        for mode in re.split(r"\n(?=host |stream )", text):
            whole = float(re.search(r"([\d.e-]+) ms in another run, for phases", mode)[1])
            parts = re.findall(r"^    \w+ +([\d.e-]+) ms$", mode, re.MULTILINE)
            self.assertEqual(len(parts), 5)
            self.assertAlmostEqual(sum(map(float, parts)) / whole, 1, places=2)
            self.assertEqual("nothing overlaps" in mode, "kernel  " not in mode)

    def test_the_check_is_bounded_and_says_so(self):
        with mock.patch.object(reference, "WORK", 100):
            status, text = self.run_front("--grid", "5x4x3", "--no-plot")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"reference   .*iterations not repeated: with \d+ of them")
        with mock.patch.object(reference, "ENTRIES", 100):
            status, text = self.run_front("--grid", "5x4x3", "--no-plot")
        self.assertEqual(status, 0)
        self.assertIn("reference   skipped: 326 entries, and SciPy compares up to 100", text)

    def test_x_is_equal_to_the_bit_on_any_devices(self):
        results = set()
        for devices, ranks in (("cpu:1", 1), ("cpu:2", 3), ("cpu:3", 2)):
            file = self.folder / "x.npy"
            where = ["--devices", devices, "--ranks", str(ranks), "--output", str(file)]
            subprocess.run(
                [BINARY, "--grid", "13x11x7", "--mode", "kernel", *QUICK, *where],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=60,
            )
            results.add(file.read_bytes())
        self.assertEqual(len(results), 1)

    def test_a_figure_has_all_devices_and_modes(self):
        status, text = self.run_front("--figure", "--series", "cpu:1 cpu:2", "--grid", "9x9")
        self.assertEqual(status, 0)
        self.assertIn("2 cpu              stream", text)
        facts = json.loads((self.folder / "figure.json").read_text())
        self.assertEqual([run["device_count"] for run in facts["runs_by_devices"]], [1, 2])
        self.assertTrue((self.folder / "figure.png").exists())


@unittest.skipUnless(BINARY, "the program is not named")
class Signals(SignalCase):
    def test_a_signal_ends_the_front_and_the_program(self):
        long = ("--devices", "cpu:2", "--grid", "40x40x40", "--tolerance", "1e-90")
        self.assert_signals_end_both(APPS / "cg/cg.py", BINARY, *long, "--repetitions", "100000")


@unittest.skipUnless(BINARY, "the program is not named")
class Document(DocumentedCase):
    def test_the_readme_has_all_options(self):
        self.assert_table_is_complete(APPS / "cg/cg.py", BINARY)


if __name__ == "__main__":
    unittest.main()
