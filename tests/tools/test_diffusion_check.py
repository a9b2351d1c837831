"""Gives the check of apps/diffusion right results and subtly wrong ones."""

import itertools
import sys
import unittest
from pathlib import Path

try:
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy: {missing}") from missing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps" / "diffusion"))
import check
import reference
from diffusion_case import hills, steps


class Check(unittest.TestCase):
    def check(self, after: np.ndarray, n: int = 20, precision: str = "double", before=None):
        before = hills(2, 20, 24) if before is None else before
        return check.check_result(before, after, n, precision)

    def assert_fails(self, after: np.ndarray, *expected: str, **how):
        check = self.check(after, **how)
        self.assertIs(check.passed, False, check)
        for text in expected:
            self.assertIn(text, check.reason)

    def setUp(self):
        self.before = hills(2, 20, 24)
        self.good = steps(self.before, 20)

    def test_passes_the_same_bits(self):
        for precision in reference.TYPES:
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
        for precision, n in itertools.product(reference.TYPES, (19, 21)):
            self.assert_fails(steps(self.before, n, precision), "largest", precision=precision)

    def test_rejects_a_changed_border(self):
        self.good[0, 1, 5] += 1e-9
        self.assert_fails(self.good, "outer 2 cells")

    def test_rejects_a_double_result_where_float_was_asked(self):
        self.assert_fails(self.good, "no float32", precision="float")

    def test_the_smallest_error_above_the_limit_fails_and_names_the_place(self):
        for precision, kind in reference.TYPES.items():
            good = steps(self.before, 20, precision)
            after = good.copy()
            at = (1, 9, 13)
            largest, change = np.abs(good).max(), np.abs(good - self.before).max()
            limit = check.allowed_error(largest, change, 20, precision)
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


if __name__ == "__main__":
    unittest.main()
