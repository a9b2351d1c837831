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

    def test_bandwidth_draws_how_much_longer_one_variant_takes_than_another(self):
        report = measured()
        for one in report["results"]:
            if one["variant"] == "driver":
                one |= {"seconds": one["seconds"] * 1.5, "rate": one["rate"] / 1.5}
        comparison = {"title": "drivers' time", "of": "driver", "with": "copy"}
        report["results"][0]["problem"] = "it failed"  # of copy
        for size in (8, 1 << 26):
            values = load("bandwidth", "picture").percent_longer(report, comparison, size)
            self.assertEqual(sum(value != value for value in values.flat), size == 8)
            self.assertAlmostEqual(values[1, 2], 50)
        status, said = self.run_front("bandwidth", "--out", str(self.folder), report=report)
        self.assertEqual(status, 0, said)
        without = (self.folder / "bandwidth.png").stat().st_size
        report["comparisons"] = [comparison]
        self.run_front("bandwidth", "--out", str(self.folder), report=report)
        self.assertGreater((self.folder / "bandwidth.png").stat().st_size, without)

    def both_runs(self) -> tuple[dict, dict]:
        """A run in one process, and one in two whose copies take twice as long."""
        one = measured(("pageable:0", "pinned:0", "cpu:0", "cpu:1"), (1 << 26,))
        two = measured(("0/pageable:0", "0/cpu:0", "1/shared:0", "1/cpu:0"), (1 << 26,))
        for report, names in ((one, ("memcpy", "no_peers")), (two, ("put", "put_staged"))):
            renamed = dict(zip(("copy", "driver"), names, strict=True))
            report["variants"] = {renamed[old]: "m" for old in report["variants"]}
            for result in report["results"]:
                result["variant"] = renamed[result["variant"]]
                seconds = 1e-3 if report is one else 2e-3
                result |= {"seconds": seconds, "rate": result["bytes"] / seconds}
        return one, two

    def beside(self, run: dict, other: dict, *given: str) -> tuple[int, str]:
        """Draws the figures of one run with those of another one."""
        files = [self.folder / "a run.json", self.folder / "another.json"]
        for file, report in zip(files, (run, other), strict=True):
            file.write_text(json.dumps(report))
        out = ("--out", str(self.folder / "both"))
        return self.run_front(
            "bandwidth", "--draw", str(files[0]), "--beside", str(files[1]), *out, *given
        )

    def test_bandwidth_draws_one_process_and_several_in_either_order(self):
        one, two = self.both_runs()
        for runs in ((one, two), (two, one)):
            status, said = self.beside(*runs)
            self.assertEqual(status, 0, said)
            for name in ("bandwidth.png", "panels.png", "ratio.png"):
                picture = self.folder / "both" / name
                self.assertIn(str(picture), said)
                self.assertGreater(picture.stat().st_size, 20_000)
                picture.unlink()

    def test_bandwidth_compares_places_of_processes_with_those_of_one(self):
        panels = load("bandwidth", "panels")
        one, two = self.both_runs()
        one["results"] = [
            result | ({"rate": 1e9} if (result["from"], result["to"]) == ("cpu:0", "cpu:1") else {})
            for result in one["results"]
        ]
        values = panels.ratios(one, two, 1 << 26)
        self.assertAlmostEqual(values[0, 2], 0.5)  # 0/pageable:0 to 1/shared:0: ordinary memory
        self.assertAlmostEqual(values[1, 3], (1 << 26) / 2e-3 / 1e9)  # 0/cpu:0 to 1/cpu:0
        self.assertAlmostEqual(values[3, 1], 0.5)
        gpus = ["0/cuda:0", "1/cuda:3", "1/pinned:1"]
        expected = dict(zip(gpus, ("cuda:0", "cuda:3", "pinned:1"), strict=True))
        self.assertEqual(panels.counterparts(gpus), expected)

    def test_bandwidth_draws_the_ratio_of_two_placements(self):
        near, _ = self.both_runs()
        far = json.loads(json.dumps(near))
        near["cpu_nodes"], far["cpu_nodes"] = [0], [1]
        for result in far["results"]:
            result["rate"] /= 4
        panels = load("bandwidth", "panels")
        self.assertEqual({*panels.ratios(near, far, 1 << 26).flat}, {0.25})
        self.assertIn("memcpy, node of each process: 1", panels.in_words(far))
        status, said = self.beside(far, near)
        self.assertEqual(status, 0, said)
        written = {path.name for path in (self.folder / "both").iterdir()}
        self.assertEqual(written, {"bandwidth.png", "ratio.png"})

    def test_bandwidth_names_why_two_runs_do_not_compare(self):
        one, two = self.both_runs()
        other_size = json.loads(json.dumps(two).replace(str(1 << 26), "4096"))
        plain = json.loads(json.dumps(two).replace("_staged", ""))
        strange = json.loads(
            json.dumps(one).replace("pageable:", "pageable:7").replace("cpu", "cuda")
        )
        for run, other, message in (
            (one, other_size, "no size in common, only .67108864. and .4096. bytes"),
            (one, plain, "no variant put_staged or get_staged; it has put"),
            (
                strange,
                two,
                "no pair was .*; measure cpu:0, cpu:1, pageable:0 in the other one",
            ),
            (one, server(), "the figures of another program: they have no results, variants"),
            (server(), one, "the figures of another program: they have no results, variants"),
        ):
            status, said = self.beside(run, other)
            self.assertEqual(status, 1, said)
            self.assertRegex(said, message)

    def test_bandwidth_reads_the_other_run_before_it_measures(self):
        bad = self.folder / "bad.json"
        for text, message in ((None, "can't be read: No such"), ("[]", "no JSON object")):
            if text:
                bad.write_text(text)
            status, said = self.run_front("bandwidth", "--beside", str(bad), report=measured())
            self.assertEqual(status, 2, said)
            self.assertIn(f"{bad} ", said)
            self.assertIn(message, said)
            self.assertFalse(self.said.exists(), "the program ran")
        status, said = self.run_front("bandwidth", "--beside", str(bad), "--no-plot")
        self.assertEqual((status, "leave one out" in said), (2, True))

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
