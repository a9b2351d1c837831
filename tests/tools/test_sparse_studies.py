"""Tests apps/spmv and apps/power_iteration: what their checks accept, and their results."""

import contextlib
import importlib.util
import io
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
    import scipy.io
    import scipy.sparse
except ImportError as missing:
    raise unittest.SkipTest(f"needs SciPy and Matplotlib: {missing}") from missing

APPS = Path(__file__).resolve().parents[2] / "apps"
BINARIES = {
    "spmv": os.environ.get("MESHPOST_SPMV_BINARY"),
    "power_iteration": os.environ.get("MESHPOST_POWER_ITERATION_BINARY"),
}
sys.path.insert(0, str(APPS / "common"))


def load(app: str, name: str):
    """A module of an app, under a name that differs from modules of other apps."""
    spec = importlib.util.spec_from_file_location(f"{app}_{name}", APPS / app / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class References(unittest.TestCase):
    def test_a_product_may_be_wrong_by_rounding_only(self):
        matrix = scipy.sparse.csr_array(np.array([[1.0, 0, 3], [0, 0, 0], [1, 1, 1]]))
        b = np.array([0.1, 0.2, 0.3])
        error = load("spmv", "reference").largest_error
        self.assertEqual(error(matrix, b, matrix @ b), 0)
        self.assertLess(error(matrix, b, (matrix @ b) * (1 + 2e-16)), 1)
        self.assertGreater(error(matrix, b, (matrix @ b) * (1 + 1e-14)), 1)
        self.assertEqual(error(matrix, b, matrix @ b + [0, 1e-300, 0]), np.inf)  # an empty row
        self.assertEqual(error(matrix, b, np.array([1, np.nan, 1])), np.inf)
        self.assertEqual(error(matrix, b, np.zeros(2)), np.inf)

    def test_the_eigenvalue_by_lapack_and_arpack_is_that_of_the_iteration(self):
        reference = load("power_iteration", "reference")
        rng = np.random.default_rng(7)
        for size in (40, reference.SMALL + 1):
            dense = rng.random((size, size)) * (rng.random((size, size)) < 0.2)
            matrix = scipy.sparse.csr_array(dense)
            _, lengths = reference.iterate(matrix, rng.random(size), 60)
            self.assertTrue(reference.has_converged(lengths))
            self.assertAlmostEqual(lengths[-1] / reference.dominant(matrix), 1, places=10)
        self.assertFalse(reference.has_converged(lengths[:5]))
        self.assertFalse(reference.has_converged(np.linspace(1, 2, 30)))

    def test_the_picture_shows_the_difference_from_the_last_length(self):
        self.assertEqual(load("power_iteration", "picture").changes([4, 1, 2]), [1, 0.5, 0])


class Fronts(FolderCase):
    def run_front(self, app: str, *arguments: str) -> tuple[int, str]:
        """Runs a front in this process, as one would from a shell."""
        if not BINARIES[app]:
            self.skipTest("the program is not named")
        command = [app, *arguments, "--repetitions", "1", "--out", str(self.folder)]
        # Modules that both apps have must not be those of the other one.
        for name in ("reference", "picture"):
            sys.modules.pop(name, None)
        out = io.StringIO()
        with (
            mock.patch.object(sys, "argv", command),
            mock.patch.object(sys, "path", [str(APPS / app), *sys.path]),
            mock.patch.dict(os.environ, {"MESHPOST_APP_BINARY": BINARIES[app]}),
            contextlib.redirect_stdout(out),
        ):
            front = load(app, app)
            status = front.study.main(front.STUDY)
        return status, out.getvalue()

    def write_matrix(self, name: str, matrix) -> str:
        file = self.folder / name
        scipy.io.mmwrite(file, scipy.sparse.coo_array(matrix))
        return str(file)

    def test_random_matrices_and_files_give_scipys_results(self):
        status, text = self.run_front("spmv", "--size", "90", "--density", "0.1", "--products", "4")
        self.assertEqual(status, 0)
        self.assertIn("reference   SciPy's; the largest error", text)
        status, text = self.run_front(
            "power_iteration", "--size", "90", "--density", "0.2", "--devices", "cpu:1*9"
        )
        self.assertEqual(status, 0)
        self.assertIn("the eigenvalue but for", text)
        self.assertTrue((self.folder / "convergence.png").exists())
        rng = np.random.default_rng(3)
        half = np.tril(rng.random((37, 37)) * (rng.random((37, 37)) < 0.3))
        half[11] = half[:, 11] = 0
        file = self.write_matrix("symmetric.mtx", half + half.T)
        self.assertIn("symmetric", Path(file).read_text().splitlines()[0])
        for app in BINARIES:
            status, text = self.run_front(app, "--matrix", file, "--no-plot")
            self.assertEqual(status, 0)
            self.assertIn("reference   SciPy's", text)

    def test_a_wrong_result_fails(self):
        def read(file, *, allow_pickle, real=np.load):
            return real(file, allow_pickle=allow_pickle) + 1e-6

        file = self.write_matrix("ones.mtx", np.eye(30) + 1)
        for app in BINARIES:
            with mock.patch.object(np, "load", read):
                status, text = self.run_front(app, "--matrix", file, "--no-plot")
            self.assertEqual(status, 1)
            self.assertIn("reference   DIFFERS", text)


if __name__ == "__main__":
    unittest.main()
