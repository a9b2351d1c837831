"""Gives apps/diffusion inputs of all kinds, most of them unusable."""

import unittest

try:
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy: {missing}") from missing

from diffusion_case import Front, hills


class Inputs(Front):
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


if __name__ == "__main__":
    unittest.main()
