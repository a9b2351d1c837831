"""Tests the fronts of apps/topo and apps/bandwidth: options, messages, statuses and pictures."""

import contextlib
import importlib.util
import io
import json
import os
import shlex
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps" / "common"))
import front

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase
from machines import server

APPS = Path(__file__).resolve().parents[2] / "apps"

# Replaces either program: writes the file named by FAKE_JSON to --json, and records its arguments.
FAKE = f"""#!{sys.executable}
import json, os, sys
given = sys.argv[1:]
open(os.environ["FAKE_SAID"], "w").write(json.dumps(given))
if os.environ["FAKE_JSON"]:
    open(given[given.index("--json") + 1], "w").write(open(os.environ["FAKE_JSON"]).read())
sys.exit(int(os.environ["FAKE_STATUS"]))
"""


def load(app: str, name: str):
    """The module `name` of an app: several apps have a picture.py."""
    sys.path.insert(0, str(APPS / app))
    sys.modules.pop("picture", None)
    spec = importlib.util.spec_from_file_location(f"{app}_{name}", APPS / app / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(places=("pageable:0", "pinned:0", "cuda:0"), sizes=(8, 1 << 26)) -> dict:
    results = [
        {"from": a, "to": b, "variant": v, "bytes": size, "seconds": 1e-6 * (i + 1)}
        | {"least_seconds": 1e-6, "rate": size / (1e-6 * (i + 1)), "checked": True, "problem": ""}
        for size in sizes
        for v in ("copy", "driver")
        for a in places
        for i, b in enumerate(places)
    ]
    variants = {"copy": "meshpost::copy", "driver": "CUDA's"}
    return {"places": list(places), "variants": variants, "results": results}


def ping_pong() -> dict:
    times = ("seconds", "lower_quartile", "upper_quartile", "cpu_seconds")
    results = [
        dict.fromkeys(times, 1e-6 * size)
        | {"mode": mode, "buffer": "host", "bytes": size}
        | {"problem": ""}
        for mode in ("host", "stream", "kernel")
        for size in (1, 64)
    ]
    facts = {"figure": "13", "kernel_seconds": 0, "devices": ["cpu:0 (A)", "cpu:1 (A)"]}
    return facts | {"results": results}


GEMM = {"n": 5, "m": 5, "k": 5, "gflops": 1.0, "one_device_seconds": None}
REPORTS = {  # by app: as its program writes them
    "topo": server(gpus=1, nodes=1),
    "bandwidth": measured(),
    "blas_stream": {
        "plain_seconds": [1.0, 2.0], "seconds": [0.5, 0.5], "m": 8, "n": 9, "devices": ["cpu:0"],
    },
    "gemm": {
        "devices": ["cpu:0 (A)"], "grid": [1, 1], "type": "float", "peer": None,
        "results": [GEMM | {"openblas_seconds": 1.0}],
    },
    "pingpong": ping_pong(),
}  # fmt: skip


class Fronts(FolderCase):
    def setUp(self):
        super().setUp()
        self.binary = self.folder / "program"
        self.binary.write_text(FAKE)
        self.binary.chmod(0o755)
        self.said = self.folder / "said.json"
        self.addCleanup(setattr, sys, "path", sys.path[:])

    def run_front(self, app: str, *given: str, report: dict | None = None, status: int = 0, **more):
        """Runs a front on the fake program. Returns its exit status and its output."""
        source = ""
        if report is not None:
            source = str(self.folder / "report.json")
            Path(source).write_text(json.dumps(report))
        variables = {"MESHPOST_APP_BINARY": str(self.binary), "FAKE_JSON": source, **more}
        variables |= {"FAKE_SAID": str(self.said), "FAKE_STATUS": str(status)}
        heard = io.StringIO()
        with (
            mock.patch.dict(os.environ, variables),
            contextlib.redirect_stdout(heard),
            contextlib.redirect_stderr(heard),
        ):
            try:
                found = load(app, app).main(list(given))
            except SystemExit as error:  # argparse's way
                found = error.code
        return found, heard.getvalue()

    def arguments(self) -> list[str]:
        return json.loads(self.said.read_text())

    def test_topo_draws_the_machine_that_the_program_wrote(self):
        kept = self.folder / "machine.json"
        given = ("--out", str(self.folder / "new"), "--json", str(kept), "--devices", "cuda:0,1")
        status, said = self.run_front("topo", *given, "--measure", "again", report=server())
        self.assertEqual(status, 0, said)
        self.assertGreater((self.folder / "new" / "topo.png").stat().st_size, 30_000)
        self.assertEqual(json.loads(kept.read_text()), server())
        expected = ["--devices", "cuda:0,1", "--measure", "again", "--json", str(kept)]
        self.assertEqual(self.arguments(), expected)

    def test_blas_stream_draws_a_sweep_and_asks_for_no_timeline(self):
        kinds = {"asynchronous": [0.5, 0.6], "synchronous": [1.0, 1.1]}
        sweep = [
            {"chunk": chunk} | {kind: {"seconds": s, "idle": s} for kind, s in kinds.items()}
            for chunk in (1, 8, 256)
        ]
        report = {"m": 8, "n": 9, "devices": ["cpu:0"], "sweep": sweep}
        given = ("--out", str(self.folder / "s"), "--sweep", "1,8,256")
        status, said = self.run_front("blas_stream", *given, report=report)
        self.assertEqual(status, 0, said)
        self.assertGreater((self.folder / "s" / "sweep.png").stat().st_size, 30_000)
        self.assertNotIn("--trace", self.arguments())

    def test_topo_draws_machines_of_all_shapes(self):
        unmeasured = server(gpus=2)
        for link in unmeasured["links"]:
            link["rate"] = 0
        lone = server(gpus=0, nodes=1)
        for machine in (unmeasured, lone, server(gpus=1, nodes=1), lone | {"links": []}):
            status, said = self.run_front("topo", "--out", str(self.folder), report=machine)
            self.assertEqual(status, 0, said)
            self.assertTrue((self.folder / "topo.png").exists())

    def test_bandwidth_draws_what_was_measured_even_if_some_failed(self):
        report = measured()
        report["results"][3]["problem"] = "byte 7 is wrong"
        given = ("--out", str(self.folder / "b"), "--places", "pinned:0", "--no-check")
        status, said = self.run_front("bandwidth", *given, report=report, status=1)
        self.assertEqual(status, 1, said)
        self.assertGreater((self.folder / "b" / "bandwidth.png").stat().st_size, 30_000)
        self.assertIn("--no-check", self.arguments())
        self.assertEqual(self.arguments()[:2], ["--places", "pinned:0"])

    def test_bandwidth_leaves_out_of_the_map_what_failed_or_is_not_there(self):
        report = measured()
        report["results"][0]["problem"] = "it failed"
        del report["results"][1]
        values = load("bandwidth", "picture").matrix(report, "copy", 8)
        self.assertEqual(sum(value != value for value in values.flat), 2)
        self.assertAlmostEqual(values[0, 2], 3.0)  # microseconds
        large = load("bandwidth", "picture").matrix(report, "copy", 1 << 26)
        self.assertAlmostEqual(large[1, 0], (1 << 26) / 1e-6 / 1e9)

    def test_bandwidth_forgets_the_figures_of_a_run_before(self):
        self.run_front("bandwidth", "--out", str(self.folder), report=measured())
        status, _ = self.run_front("bandwidth", "--out", str(self.folder), status=1)
        self.assertEqual(status, 1)
        self.assertFalse((self.folder / "bandwidth.json").exists())

    def test_both_start_the_program_by_a_launcher(self):
        # Replaces meshpost-run: records its arguments, then does as told.
        launch = self.folder / "a launcher"
        notes = f"echo given $1 $2 ${{3##*/}} >{self.folder}/launched"
        launch.write_text(f'#!/bin/sh\n{notes}; shift 2; exec "$@"\n')
        launch.chmod(0o755)
        more = {"MESHPOST_APP_LAUNCH": f"{shlex.quote(str(launch))} -n 4 "}
        for app in ("topo", "bandwidth"):
            report = server() if app == "topo" else measured()
            given = ("--out", str(self.folder / f"{app}.out"), "--no-plot")
            status, said = self.run_front(app, *given, report=report, **more)
            self.assertEqual(status, 0, said)
            self.assertEqual((self.folder / "launched").read_text(), "given -n 4 program\n")
            (self.folder / "launched").unlink()

    def test_both_pass_the_programs_status_on(self):
        for app, status, expected in (
            ("topo", 1, 1),
            ("topo", 2, 2),
            ("bandwidth", 2, 2),
            ("bandwidth", 77, 1),
        ):
            found, _ = self.run_front(app, "--out", str(self.folder / "x"), status=status)
            self.assertEqual(found, expected, app)

    def test_both_name_what_is_wrong(self):
        plain = self.folder / "plain"
        plain.write_text("")
        for app in ("topo", "bandwidth"):
            status, said = self.run_front(app, MESHPOST_APP_BINARY=str(plain))
            self.assertEqual(status, 2)
            self.assertIn(f"{plain}, which is no program: build it with ./run app {app}", said)
            inside = str(plain / "deep" / "x.png")
            status, said = self.run_front(app, "--json", inside, report=server())
            self.assertEqual(status, 2)
            self.assertIn("can't be written", said)

    def test_every_front_hands_what_it_does_not_know_to_the_program_once(self):
        given = ("--no-shared-memory", "--progress", "never", "--ranks", "3", "--unknown=x")
        for app, report in REPORTS.items():
            out = self.folder / app
            kept = self.folder / "kept.json"
            common = ("--out", str(out), "--json", str(kept), "--no-plot")
            status, said = self.run_front(app, *common, *given, report=report)
            self.assertEqual(status, 0, said)
            words = self.arguments()
            self.assertEqual(words.count("--json"), 1)
            self.assertEqual(words[-2:], ["--json", str(kept)])
            self.assertEqual([word for word in words if word in given], list(given), app)
            self.assertFalse({"--out", "--no-plot"} & set(words))
            self.assertEqual(list(out.iterdir()), [])

    def test_every_front_says_without_matplotlib_what_would_draw_and_succeeds(self):
        for app, report in REPORTS.items():
            out = self.folder / app
            away = {name: None for name in sys.modules if name.startswith("matplotlib.")}
            with mock.patch.dict(sys.modules, {**away, "matplotlib": None, "numpy": None}):
                status, said = self.run_front(app, "--out", str(out), report=report)
            self.assertEqual(status, 0, said)
            command = said.partition("Then: ")[2].strip()
            self.assertIn("./run setup", said)
            name, *words = shlex.split(command)[2:]
            self.assertEqual(name, app)
            self.said.unlink()
            status, said = self.run_front(app, *words)
            self.assertEqual(status, 0, said)
            self.assertRegex(said, "^picture .*[.]png")
            self.assertFalse(self.said.exists(), "the program ran again")

    def test_a_package_that_is_broken_costs_the_picture_and_a_mistake_is_shown(self):
        figures = self.folder / "figures.json"
        figures.write_text("{}")
        for error in (ImportError("no C extension"), ImportError("no numpy.x", name="numpy.x")):
            app = front.App("topo", "", "", draw=mock.Mock(side_effect=error))
            with contextlib.redirect_stderr(io.StringIO()) as heard:
                front.draw(app, figures, self.folder)
            self.assertIn(f"no picture: {error}", heard.getvalue())
        app = front.App("topo", "", "", draw=mock.Mock(side_effect=ImportError("no", name="else")))
        with self.assertRaises(ImportError):
            front.draw(app, figures, self.folder)

    def test_a_front_that_only_draws_takes_nothing_for_the_program(self):
        status, said = self.run_front("topo", "--draw", "x.json", "--devices", "cpu:1")
        self.assertEqual(status, 2)
        self.assertIn("--devices", said)

    def test_help_names_the_common_options(self):
        for app in REPORTS:
            status, said = self.run_front(app, "--help", report=None)
            for option in ("--out FOLDER", "--json FILE", "--no-plot", "--draw FILE"):
                self.assertIn(option, said)
            self.assertEqual((status, self.arguments()), (0, ["--help"]))

    def test_the_newest_program_built_is_found(self):
        with mock.patch.dict(os.environ, clear=True):
            with self.assertRaisesRegex(front.Misuse, "no program build/.*./run app topo"):
                front.find_binary("topo", self.folder)
            for age, preset in enumerate(("cuda", "cpu")):
                path = self.folder / "build" / preset / "apps" / "topo" / "topo"
                path.parent.mkdir(parents=True)
                path.write_text("")
                os.utime(path, (1000 - age, 1000 - age))
            self.assertIn("cuda", str(front.find_binary("topo", self.folder)))


if __name__ == "__main__":
    unittest.main()
