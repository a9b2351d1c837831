"""Compares the NumPy step of apps/diffusion with the formula and its symmetries."""

import itertools
import sys
import unittest
from pathlib import Path

try:
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy: {missing}") from missing

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps" / "diffusion"))
import reference
from diffusion_case import hills


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


class Step(unittest.TestCase):
    def test_equals_the_formula_point_by_point_in_every_bit(self):
        for seed, kind in itertools.product(range(6), (np.float32, np.float64)):
            random = np.random.default_rng(seed)
            u = random.normal(size=random.integers(5, 12, 2)).astype(kind)
            if seed % 2:
                u = np.round(u)  # equal neighbours: the limiter's product is exactly 0
            np.testing.assert_array_equal(reference.step(u), slow_step(u))
            self.assertEqual(reference.step(u).dtype, kind)

    def test_levels_do_not_mix(self):
        u = hills(3, 9, 8)
        for level in range(3):
            np.testing.assert_array_equal(reference.step(u)[level], reference.step(u[level]))

    def test_the_limiter_stops_some_fluxes_and_leaves_others(self):
        u = hills(20, 20)
        free = -0.025 * self.biharmonic(u)[2:-2, 2:-2]
        moved = (reference.step(u) - u)[2:-2, 2:-2]
        self.assertTrue((moved != 0).any())
        self.assertFalse(np.allclose(abs(moved), abs(free)))

    @staticmethod
    def biharmonic(u: np.ndarray) -> np.ndarray:
        """The operator of a step without the limiter, up to its sign."""

        def lap(f):
            around = [np.roll(f, shift, axis) for shift in (1, -1) for axis in (0, 1)]
            return sum(around) - 4 * f

        return lap(lap(u))

    def test_a_constant_field_stays_in_every_bit(self):
        for kind in (np.float32, np.float64):
            u = np.full((9, 11), 0.1, kind)
            np.testing.assert_array_equal(reference.step(u), u)

    def test_conserves_the_sum_away_from_the_border(self):
        u = np.zeros((40, 40))
        u[15:25, 15:25] = hills(10, 10)
        after = u
        for _ in range(4):
            after = reference.step(after)
        self.assertGreater(np.abs(after - u).max(), 1)
        self.assertAlmostEqual(after.sum(), u.sum(), delta=1e-9)

    def test_keeps_the_outer_two_cells(self):
        u = hills(9, 12)
        changed = reference.step(u) != u
        self.assertFalse(np.delete(np.delete(changed, range(2, 7), 0), range(2, 10), 1).any())
        self.assertFalse(changed[[0, 1, -2, -1]].any() or changed[:, [0, 1, -2, -1]].any())

    def test_knows_no_direction(self):
        u = hills(13, 17)
        after = reference.step(u)
        np.testing.assert_array_equal(reference.step(u.T), after.T)
        np.testing.assert_array_equal(reference.step(u[::-1]), after[::-1])
        np.testing.assert_array_equal(reference.step(u[:, ::-1]), after[:, ::-1])


if __name__ == "__main__":
    unittest.main()
