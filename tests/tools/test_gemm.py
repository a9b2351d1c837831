"""Tests the front of apps/gemm: arguments that it passes on, files that it writes, its end."""

import contextlib
import importlib.util
import io
import json
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

try:
    import matplotlib  # noqa: F401
except ImportError as missing:
    raise unittest.SkipTest(f"needs Matplotlib: {missing}") from missing

APP = Path(__file__).resolve().parents[2] / "apps" / "gemm"

RESULT = {
    "m": 10,
    "n": 20,
    "k": 30,
    "seconds": 1e-6,
    "gflops": 12.0,
    "one_device_seconds": 2e-6,
    "one_device_gflops": 6.0,
    "speedup": 2.0,
    "openblas_seconds": None,
}
REPORT = {
    "devices": ["cpu:0 (A model)", "cpu:1 (A model)"],
    "grid": [2, 1],
    "type": "float",
    "peer": None,
    "results": [RESULT, {**RESULT, "n": 5, "one_device_seconds": None, "openblas_seconds": 1e-6}],
}

# Replaces the C++ program: notes its arguments, writes the report, ends as told.
FAKE = f"""#!{sys.executable}
import json, os, sys
print(" ".join(sys.argv[1:]), file=open(sys.argv[0] + ".said", "a"))
status = int(os.environ["FAKE_STATUS"])
if status != 2:
    open(sys.argv[-1], "w").write({json.dumps(REPORT)!r})
sys.exit(status)
"""


def load(name):
    """A module of the app, under a name that differs from modules of other apps."""
    spec = importlib.util.spec_from_file_location(f"gemm_{name}", APP / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


front = load("gemm")
picture = load("picture")


class Front(FolderCase):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "deep" / "out"
        binary = self.folder / "gemm"
        binary.write_text(FAKE)
        binary.chmod(0o755)
        self.environment = {"MESHPOST_APP_BINARY": str(binary)}

    def run_front(self, *arguments, status=0):
        environment = self.environment | {"FAKE_STATUS": str(status)}
        said = io.StringIO()
        with (
            mock.patch.dict(os.environ, environment),
            mock.patch.dict(sys.modules, {"picture": picture}),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            return front.main(["--out", str(self.out), *arguments]), said.getvalue()

    def test_writes_figures_and_a_picture(self):
        status, said = self.run_front("--devices", "cpu:2", "--size", "12")
        self.assertEqual(status, 0, said)
        self.assertEqual(json.loads((self.out / "result.json").read_text()), REPORT)
        self.assertEqual((self.out / "gemm.png").read_bytes()[:4], b"\x89PNG")

    def test_draws_nothing_if_told_so(self):
        status, said = self.run_front("--no-plot", "--json", str(self.folder / "figures.json"))
        self.assertEqual(status, 0, said)
        self.assertTrue((self.folder / "figures.json").exists())
        self.assertFalse((self.out / "gemm.png").exists())

    def test_a_failed_check_is_a_failure_that_can_be_looked_at(self):
        status, said = self.run_front(status=1)
        self.assertEqual(status, 1, said)
        self.assertTrue((self.out / "gemm.png").exists())

    def test_a_wrong_argument_leaves_an_earlier_result(self):
        self.run_front()
        earlier = {file: file.read_bytes() for file in self.out.iterdir()}
        self.assertIn(self.out / "gemm.png", earlier)
        status, _ = self.run_front("--type", "half", status=2)
        self.assertEqual(status, 2)
        self.assertEqual({file: file.read_bytes() for file in self.out.iterdir()}, earlier)

    def launcher(self):
        """Replaces meshpost-run: notes that it was called."""
        launch = self.folder / "launch"
        launch.write_text('#!/bin/sh\nprintf "launched " >>"$1.said"\nexec "$@"\n')
        launch.chmod(0o755)
        self.environment |= {"MESHPOST_APP_LAUNCH": str(launch)}

    def test_draws_all_variants_in_one_picture(self):
        self.launcher()
        status, said = self.run_front("--variants", "--devices", "cpu:1", "--size", "12")
        self.assertEqual(status, 0, said)
        said = (self.folder / "gemm.said").read_text()
        self.assertEqual(
            [line.partition(" --json")[0] for line in said.splitlines()],
            [
                "launched --devices cpu:1 --size 12 --ipc off",
                "launched --devices cpu:1 --size 12 --ipc on",
                "--size 12 --devices cpu:2 --peer on",
            ],
        )
        figures = self.out / "result.json"
        names = [variant["name"] for variant in json.loads(figures.read_text())["variants"]]
        self.assertEqual(names, ["processes without IPC", "processes with IPC", "one process"])
        self.assertEqual(sorted(p.name for p in self.out.iterdir()), ["gemm.png", "result.json"])
        (self.out / "gemm.png").unlink()
        status, said = self.run_front("--draw", str(figures))
        self.assertEqual(status, 0, said)
        self.assertEqual((self.out / "gemm.png").read_bytes()[:4], b"\x89PNG")

    def test_variants_that_can_not_be_compared_are_refused(self):
        status, said = self.run_front("--variants")
        self.assertEqual(status, 2)
        self.assertIn("--processes 2 --variants", said)
        self.launcher()
        for given in (["--peer", "off"], ["--ipc=on"], ["--draw", "x"]):
            status, said = self.run_front("--variants", *given)
            self.assertEqual(status, 2, said)
        status, said = self.run_front("--variants", status=2)
        self.assertEqual(status, 2)
        self.assertIn("'processes without IPC' failed", said)
        self.assertEqual(list(self.out.iterdir()), [])
        status, said = self.run_front("--variants", status=1)
        self.assertEqual(status, 1, said)

    def test_one_process_gets_the_devices_of_all(self):
        names = [f"process {i}'s cuda:{i % 2} (NVIDIA's (best) H)" for i in range(4)]
        self.assertEqual(front.in_one_process(names), "cuda:0,1*2")
        self.assertEqual(front.in_one_process(names[:2]), "cuda:0,1")
        with self.assertRaises(front.front.Misuse):
            front.in_one_process(names[:3])
        self.assertEqual(
            front.without_devices(["a", "--devices", "x", "--devices=y", "b"]), ["a", "b"]
        )

    def test_says_how_to_get_a_program_that_is_missing(self):
        self.environment = {"MESHPOST_APP_BINARY": str(self.folder / "nothing")}
        status, said = self.run_front()
        self.assertEqual(status, 2)
        self.assertIn("./run app gemm", said)

    def test_lines_are_ordered_by_size_and_leave_out_what_was_not_measured(self):
        found = picture.lines(REPORT)
        self.assertEqual(found["all"], [(5, 12.0), (20, 12.0)])
        self.assertEqual(found["speedup"], [(20, 2.0)])
        self.assertEqual(found["one"], [(20, 6.0)])
        self.assertAlmostEqual(found["openblas"][0][1], 2e-9 * 10 * 5 * 30 / 1e-6)


if __name__ == "__main__":
    unittest.main()
