"""Plain versions of the case studies: their results are those of the applications, to the bit."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from compare_studies import Missing, Study, row_of

BINARY = os.environ.get("MESHPOST_PLAIN_BINARY")
ON = os.environ.get("MESHPOST_PLAIN_ON", "cpu")


@unittest.skipUnless(BINARY, "needs MESHPOST_PLAIN_BINARY")
class Plain(unittest.TestCase):
    def row(self, name: str, option: str, steps: int, *arguments: str, **more) -> dict:
        study = Study(name, option, {ON: steps}, arguments, **more)
        return row_of(study, Path(BINARY).parents[2], ON, 2, 60)

    def test_results_are_equal_to_the_bit(self):
        field = ("--input", "random:2x7x9:1")
        fours = ("--input", "random:2x9x12:1")
        cases = (
            self.row("stencil", "--iterations", 7, "--rows", "13", "--columns", "17"),
            self.row("stencil", "--iterations", 4, "--rows", "3", "--columns", "20"),
            self.row("diffusion", "--iterations", 7, *field, once=True),
            self.row("diffusion", "--iterations", 8, *fours, once=True),
            self.row("particles", "--steps", 13, "--particles", "900", "--length", "30"),
            self.row("spmv", "--products", 4, "--size", "61", "--density", "0.1"),
            self.row("power_iteration", "--iterations", 7, "--size", "61", "--density", "0.1"),
        )
        for row in cases:
            self.assertTrue(row["identical"], row)
            self.assertEqual(row["plain"]["repetitions"], 2)

    def test_a_program_that_refuses_its_arguments_is_named_with_its_reason(self):
        with self.assertRaisesRegex(Missing, "meshpost: .*--rows"):
            self.row("stencil", "--iterations", 3, "--rows", "0")

    def refused(self, *arguments: str) -> str:
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_wrong_arguments_are_refused(self):
        self.assertIn("--input random:1x2x2:1: 2 rows", self.refused(
            "diffusion", "--input", "random:1x2x2:1"))  # fmt: skip
        self.assertIn("points; choose fewer than 2^31", self.refused(
            "stencil", "--rows", "1000000", "--levels", "10000"))  # fmt: skip
        self.assertIn("--on: gpu not in", self.refused("spmv", "--on", "gpu"))
        self.assertIn("--steps: Value 0 not in range", self.refused("particles", "--steps", "0"))
        self.assertIn("subcommand is required", self.refused())


if __name__ == "__main__":
    unittest.main()
