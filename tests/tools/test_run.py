"""Tests the output of ./run, in a checkout that has only the needed files."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import CheckoutCase

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("app", "build", "check", "demo", "format", "help", "install", "setup", "test")
CMAKE = """#!/bin/sh
echo "-- cmake $1"
echo "cmake warns" >&2
"""
LOG = """\
 1/2 Test #58: nvrtc ............................   Passed   18.70 sec
 2/2 Test #59: jobs .............................***Failed   18.70 sec
Note: filter
[ RUN      ] Job.passes
noise
[       OK ] Job.passes (3 ms)
[ RUN      ] Job.needs_a_gpu
needs a GPU
[  SKIPPED ] Job.needs_a_gpu (0 ms)
[ RUN      ] Job.fails
the reason
[  FAILED  ] Job.fails (3 ms)
[ RUN      ] Job.hangs
its last words
      Start 60: other
"""
WHY = """\
 2/2 Test #59: jobs .............................***Failed   18.70 sec
Note: filter
[ RUN      ] Job.fails
the reason
[  FAILED  ] Job.fails (3 ms)
[ RUN      ] Job.hangs
its last words
"""


class WhyAStageFailed(unittest.TestCase):
    def why(self, log: str) -> str:
        command = ["awk", "-f", str(ROOT / "tools" / "why_failed.awk")]
        return subprocess.run(command, input=log, capture_output=True, text=True, check=True).stdout

    def test_has_the_tests_within_that_did_not_pass(self):
        self.assertEqual(self.why(LOG), WHY)

    def test_is_the_end_of_the_log_if_no_test_failed(self):
        log = "".join(f"line {i}\n" for i in range(50))
        self.assertEqual(self.why(log), "".join(f"line {i}\n" for i in range(10, 50)))

    def test_has_at_most_200_lines(self):
        failed = "1/9 Test #1: long ...***Failed  0.1 sec\n" + "its output\n" * 80
        self.assertEqual(len(self.why(failed * 9).splitlines()), 200)


class Run(CheckoutCase):
    def setUp(self):
        super().setUp()
        for tool in (ROOT / "tools").glob("*.py"):
            shutil.copy(tool, self.checkout / "tools")

    def make_program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_it(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", str(self.checkout / "run"), *arguments],
            env=os.environ
            | {"MESHPOST_OFFLINE": "1", "MESHPOST_BUILD": "1", "MESHPOST_PRESET": "cpu"}
            | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def files(self) -> set[Path]:
        return {path for path in self.checkout.rglob("*") if "__pycache__" not in path.parts}

    def test_help_of_a_command_is_its_usage_and_nothing_is_done(self):
        before = self.files()
        for command in COMMANDS:
            for option in ("--help", "-h"):
                with self.subTest(f"{command} {option}"):
                    ended = self.run_it(command, option)
                    self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                    self.assertRegex(ended.stdout, rf"^usage:\n(  \./run {command}( .*)?\n)+$")
        for command in ("bench", "compare"):
            with self.subTest(command):
                ended = self.run_it(command, "--help")
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertTrue(ended.stdout.startswith(f"usage: ./run {command} [-h]"))
        self.assertEqual(self.files(), before)

    def test_a_command_that_is_none_has_no_help(self):
        ended = self.run_it("bogus", "--help")
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertIn("unknown command 'bogus'", ended.stderr)

    def test_standard_output_of_an_app_is_the_apps(self):
        for name in ("packages", "requirements"):
            (self.checkout / "tools" / f"{name}.txt").write_text("")
        (self.checkout / ".venv" / "bin").mkdir(parents=True)
        (self.checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
        (self.checkout / ".venv" / "requirements.txt").write_text("")
        (self.checkout / "apps" / "shout").mkdir(parents=True)
        self.make_program(self.folder / "bin" / "cmake", CMAKE)
        shout = self.checkout / "build/cpu/apps/shout/shout"
        self.make_program(shout, '#!/bin/sh\necho "says $*"\n')
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        ended = self.run_it("app", "shout", "--help", "me", PATH=path)
        self.assertEqual((ended.returncode, ended.stdout), (0, "says --help me\n"))
        self.assertIn("-- cmake --preset\n", ended.stderr)
        self.assertIn("-- cmake --build\n", ended.stderr)


if __name__ == "__main__":
    unittest.main()
