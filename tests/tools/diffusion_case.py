"""Code that tests of apps/diffusion share: fields, a fake program, runs of the front."""

import contextlib
import io
import os
import sys
from pathlib import Path
from unittest import mock

import numpy as np

APP = Path(__file__).resolve().parents[2] / "apps" / "diffusion"
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(APP))
import diffusion
import reference
from folder_case import FolderCase

# Replaces the program; the variable FAKE says how it misbehaves.
FAKE = f"""#!{sys.executable}
import json, os, sys, time
sys.path.insert(0, {str(APP)!r})
import numpy as np, reference
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
if mode == "plain":
    json.dump(dict(input=given["--input"]), open(given["--json"], "w"))
    sys.exit(0)
if mode in ("1", "2"):
    sys.exit(int(mode))
if mode == "crash":
    os.abort()
u = np.load(given["--input"])
assert u.dtype == np.float64 and u.ndim == 3 and u.flags.c_contiguous
v = u.astype(reference.TYPES[given["--precision"]])
for _ in range(int(given["--iterations"])):
    v = reference.step(v)
v = v.astype(float)
v = {{"zeros": v * 0, "unchanged": u, "nan": v + np.nan, "shape": v[:, :-1]}}.get(mode, v)
if mode != "silent":
    np.save(given["--output"], v)
ranks = range(int(given.get("--ranks", 4)))
spans = [dict(ph="X", name="compute", ts=9.0 * r, dur=8, pid=0, tid=r) for r in ranks]
processes = 12 if mode == "processes" else 1
for p in range(processes):
    name = given["--trace"].replace(".json", f"-{{p}}.json" if processes > 1 else ".json")
    json.dump(dict(traceEvents=spans), open(name, "w"))
report = dict(devices=[given.get("--devices", "cpu:0")], ranks=len(ranks), bit_identical=True)
report |= dict(processes=processes, device_count=processes)
json.dump(report, open(given["--json"], "w"))
sys.exit(1 if mode == "differs" else 0)
"""


def steps(u: np.ndarray, n: int, precision: str = "double") -> np.ndarray:
    """n steps from a float64 field, widened to float64 again."""
    u = u.astype(reference.TYPES[precision])
    for _ in range(n):
        u = reference.step(u)
    return u.astype(np.float64)


def hills(*shape: int, seed: int = 1) -> np.ndarray:
    """A random field of whole metres, with plateaus."""
    return np.random.default_rng(seed).integers(200, 1000, shape).astype(np.float64) // 50 * 50


class Front(FolderCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, sys, "path", sys.path[:])
        sys.path.insert(0, str(APP))  # other apps have a picture.py too
        sys.modules.pop("picture", None)
        self.binary = self.folder / "diffusion"
        self.binary.write_text(FAKE)
        self.binary.chmod(0o755)
        self.input = self.folder / "hills.npy"
        np.save(self.input, hills(24, 30))
        self.out = self.folder / "out"
        fakes = mock.patch.dict(os.environ, MESHPOST_APP_BINARY=str(self.binary), FAKE="")
        fakes.start()
        self.addCleanup(fakes.stop)

    def run_front(self, *arguments: str, mode: str = "", source: Path | None = None):
        """Runs the front. Returns its exit status and all its output."""
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
