"""Compares with fake programs: nvcc, nvidia-smi and the benchmark."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import compare
import compare_meshpost
import compare_peers
import compare_studies
import compare_table

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase


def printed(system="NCCL", measure="put_notify", size=8, blocks=0, **more) -> str:
    row = {"system": system, "measure": measure, "timed": "both", "gpus": 2, "blocks": blocks}
    return json.dumps(row | {"bytes": size} | (more or {"us": [3.0, 1.0, 2.0]}))


CG = '{"runs": [{"iteration": {"samples": [0.001, 0.003]}, "residuals": [1, 0.003]}]}'
PETSC = r"{\"version\": \"3.18.5\", \"iterations\": 50, \"residual\": 0.003, \"seconds\": $seconds}"


class Read(unittest.TestCase):
    def test_a_row_has_the_median_and_the_spread_of_its_times(self):
        rows, _, _ = compare_peers.read(printed(size=4000, blocks=10))
        self.assertEqual([rows[0][k] for k in ("median_us", "min_us", "max_us")], [2, 1, 3])
        self.assertEqual(rows[0]["repetitions"], 3)
        self.assertAlmostEqual(rows[0]["gb_per_s"], 20)  # 10 blocks of 4000 B in 2 us

    def test_bytes_of_an_all_reduce_count_once_however_many_blocks_work(self):
        rows, _, _ = compare_peers.read(printed(measure="all_reduce", size=4000, blocks=10))
        self.assertAlmostEqual(rows[0]["gb_per_s"], 2)

    def test_what_libraries_print_is_passed_over_and_broken_rows_are_counted(self):
        lines = [
            "NCCL version 2.28.9+cuda13.0",
            printed(),
            '{"version_of": "NCCL", "version": "2.28.9"}',
            printed()[:40],
            printed(us=[]),
            printed(us=["fast"]),
            printed(us=[float("nan")]),
            printed(size=-8),
            "",
        ]
        rows, versions, unreadable = compare_peers.read("\n".join(lines))
        self.assertEqual((len(rows), versions, unreadable), (1, {"NCCL": "2.28.9"}, 5))

    def test_a_skipped_row_keeps_its_reason(self):
        rows, _, _ = compare_peers.read(printed(skipped="needs more memory"))
        self.assertEqual(rows[0]["skipped"], "needs more memory")
        self.assertNotIn("median_us", rows[0])


class Meshpost(unittest.TestCase):
    def one(self, name: str, time_ns: float, **more) -> dict:
        run = {"run_name": name, "run_type": "iteration", "real_time": time_ns, "time_unit": "ns"}
        return run | more

    def test_its_benchmarks_become_rows_like_the_others(self):
        put = "put_notify_one_way/between:1/all:1/bytes:64/iterations:1/manual_time"
        barrier = "barrier/devices:4/ranks:0/iterations:1/manual_time"
        runs = [self.one(put, ns, pairs=132.0) for ns in (2000, 1000, 3000)]
        runs.append(self.one(barrier, 2500, ranks=528.0))
        rows = compare_meshpost.rows_of({"benchmarks": runs}, "meshpost", 4)
        self.assertEqual([row["measure"] for row in rows], ["put_notify", "barrier"])
        self.assertEqual([row["blocks"] for row in rows], [132, 132])
        self.assertEqual([row["median_us"] for row in rows], [2.0, 2.5])
        self.assertEqual(rows[0]["bytes"], 64)

    def test_launches_are_rows_of_all_the_blocks_and_no_bytes(self):
        run = self.one("run_nothing/devices:2/iterations:500/real_time", 16000, ranks=264.0)
        (row,) = compare_meshpost.rows_of({"benchmarks": [run]}, "meshpost", 2)
        self.assertEqual((row["measure"], row["blocks"], row["bytes"]), ("launch", 132, 0))
        self.assertEqual(row["median_us"], 16.0)

    def test_a_file_that_breaks_off_gives_the_runs_it_has(self):
        text = json.dumps({"context": {"meshpost": "0.1.0"}, "benchmarks": [self.one("a/b:1", 1)]})
        broken = text[:-2] + ', {"run_name": "c'
        self.assertEqual(len(compare_meshpost.whole(broken)["benchmarks"]), 1)
        self.assertEqual(compare_meshpost.whole(""), {})


class Table(unittest.TestCase):
    def test_systems_stand_side_by_side_at_each_size(self):
        text = "\n".join(
            printed(system, size=size) for system in ("NVSHMEM", "NCCL") for size in (64 << 10, 8)
        )
        rows, _, _ = compare_peers.read(text)
        lines = compare_table.table(rows, []).splitlines()
        order = [(line.split()[0], line.split()[3]) for line in lines[2:6]]
        self.assertEqual(
            order, [("8", "NCCL"), ("8", "NVSHMEM"), ("64", "NCCL"), ("64", "NVSHMEM")]
        )
        self.assertIn("[1] NCCL and NVSHMEM: both", lines)

    def test_what_is_missing_is_named_with_reason_and_remedy(self):
        missing = [{"what": "nccl", "reason": "no nccl.h", "remedy": "install it"}]
        self.assertIn("nccl: no nccl.h; install it", compare_table.table([], missing))


class Sizes(unittest.TestCase):
    def test_sizes_have_units_and_are_multiples_of_8(self):
        self.assertEqual(compare.bytes_of("64K"), 65536)
        self.assertEqual(compare.bytes_of("256MiB"), 256 << 20)
        for wrong in ("", "0", "12", "-8", "8X"):
            with self.assertRaises(compare.argparse.ArgumentTypeError):
                compare.bytes_of(wrong)


class Limits(unittest.TestCase):
    def test_what_hangs_is_ended_and_what_it_printed_is_kept(self):
        begin = time.monotonic()
        hang = ["sh", "-c", "echo first; sleep 60 & wait"]
        ended = compare_peers.run_limited([hang], 3)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(ended.text.strip(), "first")
        self.assertIn("not done after 3 s", ended.problem)

    def test_a_process_that_fails_ends_the_others_and_says_why(self):
        fails = ["sh", "-c", "echo no such GPU >&2; exit 3"]
        begin = time.monotonic()
        ended = compare_peers.run_limited([["sleep", "60"], fails], 60)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(ended.problem, "ended with status 3: no such GPU")


class Whole(FolderCase):
    """The tool itself, on a simulated machine."""

    def setUp(self):
        super().setUp()
        self.output = self.folder / "result.json"
        bins = self.folder / "bin"
        bins.mkdir()
        (bins / "python3").symlink_to(sys.executable)
        self.path = f"{bins}:/usr/bin:/bin"
        self.script("bin/nvidia-smi", 'case $1 in -L) echo "GPU 0: A"; echo "GPU 1: B" ;; esac')
        # Its output is the script beside it that has the source's name.
        self.script(
            "bin/nvcc",
            'for one; do case $one in *.cu) from=$(basename "$one" .cu) ;; esac; done\n'
            'while [ "$1" != -o ]; do shift; done\n'
            f'[ -e "{self.folder}/$from" ] || {{ echo "no $from" >&2; exit 1; }}\n'
            f'cp "{self.folder}/$from" "$2"',
        )
        self.program = self.folder / "build/bench/meshpost_bench"
        self.script(
            "build/bench/meshpost_bench",
            "for one; do case $one in --benchmark_out=*) file=${one#*=} ;; esac; done\n"
            'echo \'{"context": {"meshpost": "0.1.0"}, "benchmarks": [{"run_type": "iteration", '
            '"run_name": "notify_one_way/between:1/all:0", "real_time": 900, "time_unit": "ns"}]}\''
            ' > "$file"',
        )
        self.study("bench/plain/plain", '{"plain": {"samples": [2, 1]}}', "bits")
        for study in compare_studies.STUDIES:
            figures = '{"seconds": 2, "kernel": {"samples": [2, 4]}}'
            self.study(f"apps/{study.name}/{study.name}", figures, "bits")
        for name, library in (("nccl", "libnccl.so.2"), ("nvshmem", "libnvshmem_host.so.3")):
            for file in (f"include/{name}.h", f"lib/{library}", "lib/libnvshmem_device.a"):
                path = self.folder / "site/nvidia" / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()

        self.study("apps/cg/cg", CG, "")
        self.script("bin/pkg-config", "echo -lpetsc")
        self.script("bin/mpirun", 'shift; shift; exec "$@"')
        self.petsc(PETSC)

    def petsc(self, printed: str, seconds: str = "[0.2, 0.1]") -> None:
        """A compiler that makes a program which prints this."""
        self.script(
            "bin/mpicxx",
            "while [ $# -gt 0 ]; do case $1 in -o) out=$2 ;; esac; shift; done\n"
            f"cat > \"$out\" <<'END'\n#!/bin/sh\nseconds='{seconds}'\n"
            '[ "$OMPI_MCA_mpi_yield_when_idle" = 1 ] || seconds="[9]"\n'
            f'echo "{printed}"\nEND\nchmod +x "$out"',
        )

    def study(self, program: str, figures: str, result: str) -> None:
        """A program of a case study that writes these."""
        self.script(
            f"build/{program}",
            f"while [ $# -gt 0 ]; do case $1 in --json) echo '{figures}' > \"$2\" ;;\n"
            f"--output) echo '{result}' > \"$2\" ;; esac; shift; done",
        )

    def script(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, ROOT / "tools/compare.py", "--program", self.program]
        command += ["--output", self.output, "--plot", self.folder / "result.svg", *arguments]
        environment = {**os.environ, "PATH": self.path, "PYTHONPATH": str(self.folder / "site")}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)

    def compare(self, *arguments: str) -> tuple[str, dict]:
        with self.start(*arguments) as process:
            text, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, said)
        return text, json.loads(self.output.read_text())

    def test_peers_that_hang_print_garbage_or_do_not_compile_stop_no_other(self):
        good = printed("NVSHMEM", "notify", 0, 1)
        self.script("nccl", f"echo '{printed()}'; sleep 60")
        self.script(
            "nvshmem", f"[ $COMPARE_PROCESS = 1 ] || echo '{good}'; [ -n $COMPARE_MEETING ]"
        )
        text, result = self.compare("--gpus", "2,4", "--limit", "4", "--sizes", "8")
        systems = {row["system"] for row in result["rows"]}
        self.assertEqual(systems, {"meshpost", "meshpost, direct", "NCCL", "NVSHMEM"})
        missing = {one["what"]: one["reason"] for one in result["missing"]}
        self.assertEqual(missing["raw"], "raw.cu does not compile: ended with status 1: no raw")
        self.assertIn("not done after 4 s", missing["nccl, pairs of 2"])
        self.assertIn("are kept", missing["nccl, pairs of 2"])
        self.assertEqual(missing["all systems, 4 GPUs"], "this machine has 2 GPUs")
        self.assertNotIn("nvshmem, pairs of 2", missing)
        for what in missing:
            self.assertIn(what, text)
        self.assertEqual(result["environment"]["NCCL_NVLS_ENABLE"], "0")

    def test_who_ends_it_keeps_what_was_measured_and_leaves_no_program_behind(self):
        number = self.folder / "number"
        self.script("nccl", f"echo $$ > {number}.new; mv {number}.new {number}; exec sleep 60")
        with self.start("--gpus", "2", "--peers", "meshpost,nccl") as process:
            deadline = time.monotonic() + 60
            while not number.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.terminate()
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, 143)
        rows = json.loads(self.output.read_text())["rows"]
        self.assertEqual({row["system"] for row in rows}, {"meshpost", "meshpost, direct"})
        with self.assertRaises(ProcessLookupError):
            os.kill(int(number.read_text()), 0)

    def test_garbage_is_said_to_be_garbage(self):
        self.script("raw", "echo what is this")
        _, result = self.compare("--gpus", "2", "--peers", "meshpost,raw")
        missing = {one["what"]: one["reason"] for one in result["missing"]}
        self.assertIn("it began: what is this", missing["raw, pairs of 2"])

    def test_without_wheels_the_remedy_names_them(self):
        shutil.rmtree(self.folder / "site/nvidia/nccl")
        _, result = self.compare("--gpus", "2", "--peers", "meshpost,nccl")
        (one,) = [one for one in result["missing"] if one["what"] == "nccl"]
        self.assertIn("nvidia-nccl-cu13", one["remedy"])

    def test_without_a_gpu_meshpost_is_alone_and_the_peers_are_named(self):
        (self.folder / "bin/nvidia-smi").unlink()
        text, result = self.compare("--repetitions", "2")
        self.assertEqual(result["devices"], "CPU devices")
        missing = {one["what"]: one["reason"] for one in result["missing"]}
        self.assertEqual(missing.pop("MSCCL++"), "has no program in bench/compare yet")
        peers = ("launches", "raw", "nccl", "nvshmem")
        self.assertEqual(missing, dict.fromkeys(peers, "no GPU"))
        self.assertIn("notification alone, one way, 2 CPU devices", text)
        self.assertIn(
            "case studies on cpu:1, a step: one kernel of meshpost beside plain OpenMP", text
        )
        self.assertEqual([row["study"] for row in result["studies"]],
                         [study.name for study in compare_studies.STUDIES])  # fmt: skip
        stencil = result["studies"][0]
        self.assertEqual(stencil["meshpost"]["median_us"], 3e6 / stencil["steps"])
        self.assertAlmostEqual(stencil["ratio"], 0.5)
        self.assertEqual(result["studies"][1]["meshpost"]["repetitions"], 2)  # started twice

    def test_cg_is_beside_the_faster_way_of_petsc(self):
        text, result = self.compare("--peers", "petsc")
        row = result["cg"]
        self.assertEqual(row["meshpost"]["median_us"], 2000)
        self.assertAlmostEqual(row["petsc"]["median_us"], 0.15 / 50 * 1e6)
        self.assertEqual(row["petsc"]["environment"], {"OMPI_MCA_mpi_yield_when_idle": "1"})
        self.assertAlmostEqual(row["ratio"], 1.5)
        self.assertIn("meshpost is 1.50 times as fast; equal residuals", text)

    def test_another_residual_than_petscs_fails(self):
        self.petsc(PETSC.replace("0.003", "0.004"))
        with self.start("--peers", "petsc") as process:
            text, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertIn("RESIDUALS DIFFER", text)
        self.assertIn("compare: results differ: cg", said)

    def test_without_petsc_or_its_figures_the_reason_is_given(self):
        def reason() -> tuple[str, str]:
            _, result = self.compare("--peers", "petsc,plain", "--repetitions", "1")
            (one,) = [one for one in result["missing"] if one["what"].startswith("petsc")]
            return one["reason"], one["remedy"]

        self.petsc("nothing")
        self.assertIn("petsc printed no figures", reason()[0])
        self.script("bin/mpicxx", "echo no petscksp.h >&2; exit 1")
        self.assertIn("petsc.cpp does not compile: ended with status 1: no petscksp.h", reason()[0])
        self.script("bin/pkg-config", "exit 1")
        self.assertEqual(reason()[0], "found no PETSc")
        self.assertIn("install libpetsc-real-dev", reason()[1])
        (self.folder / "build/apps/cg/cg").unlink()
        self.assertIn("there is no", reason()[0])

    def test_with_a_gpu_studies_are_beside_plain_cuda(self):
        _, result = self.compare("--peers", "plain", "--repetitions", "1")
        self.assertEqual({row["against"] for row in result["studies"]}, {"CUDA"})
        self.assertEqual({row["device"] for row in result["studies"]}, {"cuda:0"})

    def test_a_study_with_another_result_fails_and_is_named(self):
        self.study("apps/spmv/spmv", '{"kernel": {"samples": [1]}}', "other bits")
        with self.start("--peers", "plain") as process:
            text, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertIn("compare: results differ: spmv", said)
        self.assertRegex(text, "spmv .*DIFFERENT")

    def test_the_faster_of_openmps_ways_to_wait_counts(self):
        (self.folder / "bin/nvidia-smi").unlink()
        self.script(
            "build/bench/plain/plain",
            's=2; [ "$OMP_WAIT_POLICY" = passive ] && s=1\n'
            "while [ $# -gt 0 ]; do case $1 in\n"
            '--json) echo "{\\"plain\\": {\\"samples\\": [$s]}}" > "$2" ;;\n'
            '--output) echo bits > "$2" ;; esac; shift; done',
        )
        _, result = self.compare("--peers", "plain", "--repetitions", "1")
        for row in result["studies"]:
            self.assertAlmostEqual(row["plain"]["median_us"], 1e6 / row["steps"])
            self.assertEqual(row["plain"]["environment"], {"OMP_WAIT_POLICY": "passive"})

    def test_a_study_that_has_no_figures_stops_no_other(self):
        self.script("build/apps/spmv/spmv", "echo no memory >&2; exit 1")
        self.study("apps/particles/particles", "{}", "bits")
        self.study("apps/stencil/stencil", "none", "bits")
        (self.folder / "build/apps/diffusion/diffusion").unlink()
        _, result = self.compare("--peers", "plain")
        self.assertEqual([row["study"] for row in result["studies"]], ["power_iteration"])
        missing = {one["what"]: one["reason"] for one in result["missing"]}
        self.assertIn("no memory", missing["plain, spmv on cuda:0"])
        self.assertIn("no kernel.samples", missing["plain, particles on cuda:0"])
        self.assertIn("no figures", missing["plain, stencil on cuda:0"])
        self.assertIn("there is no", missing["plain, diffusion on cuda:0"])


class Sources(unittest.TestCase):
    @unittest.skipUnless(shutil.which("nvcc"), "needs nvcc")
    def test_the_programs_of_plain_cuda_compile(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("launches", "raw"):
                source = ROOT / f"bench/compare/{name}.cu"
                command = ["nvcc", "-std=c++20", "-c", str(source), "-o", f"{folder}/{name}.o"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)


class Plot(unittest.TestCase):
    def test_names_beside_lines_are_moved_apart_and_keep_their_order(self):
        try:
            import compare_plot
        except ImportError as missing:
            self.skipTest(f"needs Matplotlib: {missing}")
        moved = compare_plot.apart([0.9, 0.5, 0.51, 0.99, 1.0], 0.05, 0.0, 1.0)
        ordered = sorted(moved)
        self.assertEqual([moved[i] for i in (1, 2, 0, 3, 4)], ordered)
        self.assertTrue(all(b - a > 0.0499 for a, b in itertools.pairwise(ordered)))
        self.assertLessEqual(ordered[-1], 1.0)


if __name__ == "__main__":
    unittest.main()
