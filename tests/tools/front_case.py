"""Code that tests of applications' fronts share."""

import contextlib
import io
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from folder_case import FolderCase


class FrontCase(FolderCase):
    def outcome(self, program: str, run: Callable[[], int]) -> tuple[int, str]:
        """The exit status of a front with this program, and what both printed."""
        printed = io.StringIO()
        with (
            mock.patch.dict(os.environ, MESHPOST_APP_BINARY=program),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            status = run()
        return status, printed.getvalue()


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class DocumentedCase(FolderCase):
    """Tests that the table of options in a README has those of --help, and no others."""

    def assert_table_is_complete(self, front: Path, program: str) -> None:
        said = subprocess.run(
            [sys.executable, str(front), "--help"],
            env=os.environ | {"MESHPOST_APP_BINARY": program},
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        lines = (front.parent / "README.md").read_text().splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("| option |"))
        rows = itertools.takewhile(lambda line: line.startswith("|"), lines[first:])
        documented = {word for row in rows for word in OPTION.findall(row.split(" | ")[0])}
        self.assertEqual(documented, set(OPTION.findall(said)))


def started_by(process: int) -> list[int]:
    """The processes that this one has started and that have not been waited for."""
    return [
        int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()
    ]


def end(process: int) -> None:
    """Ends a process that a failing test has left."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


class SignalCase(FolderCase):
    """Tests what becomes of the program if a signal ends its front."""

    def start(self, front: Path, program: str, *arguments: str) -> tuple[subprocess.Popen, int]:
        """Starts a front with a program that runs long. Returns it and the program's number."""
        process = subprocess.Popen(
            [sys.executable, str(front), "--out", str(self.folder), "--no-plot", *arguments],
            env=os.environ | {"MESHPOST_APP_BINARY": program},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell's background job, as these tests may be, passes on SIGINT as ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 30
        while not (children := started_by(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.005)
        self.assertEqual(len(children), 1)
        self.addCleanup(end, children[0])
        return process, children[0]

    def assert_signals_end_both(self, front: Path, program: str, *arguments: str) -> None:
        """Fails if the program is there after a signal to the front alone, or after two."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process, child = self.start(front, program, *arguments)
            process.send_signal(number)
            process.send_signal(number)  # as `timeout` does: to the process, then to its group
            _, said = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 128 + number, said)
            self.assertIn(f"(process {child}) after", said)
            self.assertNotIn("Traceback", said)
            with self.assertRaises(ProcessLookupError):
                os.kill(child, 0)
