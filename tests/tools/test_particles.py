"""Tests apps/particles: its front, the comparison with NumPy, pictures and the film."""

import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from front_case import FrontCase

try:
    import matplotlib  # noqa: F401
    import numpy as np
    import scipy  # noqa: F401
except ImportError as missing:
    raise unittest.SkipTest(f"needs NumPy, SciPy and Matplotlib: {missing}") from missing

PROGRAM = os.environ.get("MESHPOST_PARTICLES_BINARY")
APP = Path(__file__).resolve().parents[2] / "apps" / "particles"
SMALL = ["--width=30", "--length=20", "--particles=300", "--steps=50", "--repetitions=1"]

sys.path.insert(0, str(APP))
import particles


@unittest.skipUnless(PROGRAM, "MESHPOST_PARTICLES_BINARY names no program")
class Front(FrontCase):
    def start(self, *arguments: str) -> tuple[int, str]:
        words = [*SMALL, "--out", str(self.folder), *arguments]
        return self.outcome(
            PROGRAM, lambda: particles.front.guarded("particles", lambda: particles.run(words))
        )

    def test_a_run_equals_numpy_and_a_changed_result_does_not(self):
        status, printed = self.start("--devices", "cpu:2", "--film", "--every", "25")
        self.assertEqual(status, 0, printed)
        self.assertIn("reference   equal to the bit (NumPy)", printed)
        for name in ("particles.png", "film.gif"):
            self.assertGreater((self.folder / name).stat().st_size, 10_000, name)

        facts = json.loads((self.folder / "result.json").read_text())
        result = np.load(facts["output"])
        result[17, 1] = np.nextafter(result[17, 1], 1)
        np.save(facts["output"], result)
        with self.assertRaisesRegex(particles.study.Wrong, "1 of 600 .* particle 17 first"):
            particles.check(facts, self.folder)
        np.save(facts["output"], np.load(facts["initial"]))
        with self.assertRaisesRegex(particles.study.Wrong, "600 of 600"):
            particles.check(facts, self.folder)
        self.assertIn("skipped", particles.check(facts | {"steps": 1_000_000}, self.folder))

    def test_double_precision_and_segments_higher_than_the_cutoff(self):
        status, printed = self.start(
            "--devices", "cpu:3", "--precision", "double", "--cutoff", "0.9", "--no-plot"
        )
        self.assertEqual(status, 0, printed)
        self.assertIn("reference   equal to the bit (NumPy)", printed)

    def test_a_film_needs_a_run(self):
        for option in ("--figure", "--draw=result.json"):
            status, printed = self.start("--film", option)
            self.assertEqual(status, 2)
            self.assertIn("--film needs a run of its own", printed)


if __name__ == "__main__":
    unittest.main()
