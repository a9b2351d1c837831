"""Files of an earlier run, and how the fronts of all apps replace them."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps" / "common"))
import front

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

APP = front.App("topo", "", "", "machine.json", pictures=("topo.png",))


class EarlierRun(FolderCase):
    def setUp(self):
        super().setUp()
        for name in ("machine.json", "topo.png", "notes.txt"):
            (self.folder / name).write_text(f"earlier {name}")
        self.program = self.folder / "bin" / "program"
        self.program.parent.mkdir()

    def run_front(self, body: str, *given: str) -> int:
        self.program.write_text(f"#!/bin/sh\n{body}\n")
        self.program.chmod(0o755)
        variables = {"MESHPOST_APP_BINARY": str(self.program), "FOLDER": str(self.folder)}
        with mock.patch.dict(os.environ, variables):
            return front.main(APP, ["--out", str(self.folder), "--no-plot", *given])

    def files(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in self.folder.iterdir() if file.is_file()}

    def test_a_refused_argument_leaves_it(self):
        earlier = self.files()
        self.assertEqual(self.run_front("exit 2", "--measure", "maybe"), 2)
        self.assertEqual(self.files(), earlier)
        with mock.patch.dict(os.environ, {"MESHPOST_APP_LAUNCH": "/no/launcher"}):
            self.assertEqual(self.run_front("exit 0"), 2)
        self.assertEqual(self.files(), earlier)

    def test_it_can_not_be_taken_for_the_result_of_a_run_that_works(self):
        there = 'ls "$FOLDER" > "$FOLDER/bin/there"'
        self.assertEqual(self.run_front(f'{there}; echo "{{}}" > "$FOLDER/machine.json"'), 0)
        there = (self.folder / "bin/there").read_text().split()
        self.assertFalse({"machine.json", "topo.png"} & set(there), there)
        self.assertEqual(self.files(), {"machine.json": "{}\n", "notes.txt": "earlier notes.txt"})

    def test_a_run_that_fails_or_is_stopped_removes_it(self):
        for body, outcome in (("exit 1", 1), ("kill -9 $$", 1)):
            (self.folder / "topo.png").write_text("earlier")
            self.assertEqual(self.run_front(body), outcome)
            self.assertEqual(self.files(), {"notes.txt": "earlier notes.txt"})
        (self.folder / "topo.png").write_text("earlier")

        def stopped() -> int:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            front.replacing([self.folder / "topo.png"], stopped)
        self.assertEqual(self.files(), {"notes.txt": "earlier notes.txt"})


class Signals(FolderCase):
    def test_one_that_arrives_while_the_program_starts_ends_it(self):
        started = []
        real = subprocess.Popen

        def start(command: list[str]) -> subprocess.Popen:
            started.append(real(command))
            signal.raise_signal(signal.SIGTERM)
            return started[0]

        before = [signal.getsignal(number) for number in front.child.ENDINGS]
        with mock.patch.object(subprocess, "Popen", start), self.assertRaises(SystemExit) as ended:
            front.guarded("topo", lambda: front.run_binary(["sleep", "60"]))
        self.addCleanup(started[0].kill)
        self.assertEqual(ended.exception.code, 128 + signal.SIGTERM)
        self.assertEqual(started[0].poll(), -signal.SIGTERM)
        self.assertEqual([signal.getsignal(number) for number in front.child.ENDINGS], before)


if __name__ == "__main__":
    unittest.main()
