"""Code that tests of apps/launch share: jobs, and the proof that nothing of them remains."""

import dataclasses
import fcntl
import os
import select
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

BINARY = os.environ.get("MESHPOST_LAUNCH_BINARY")
SANITIZERS = os.environ.get("MESHPOST_LAUNCH_SANITIZERS", "")  # that it was built with
TIMEOUT = 60  # seconds for a step that takes almost none, on a busy machine


def is_being_removed(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return True
    return False


@dataclasses.dataclass
class Ended:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class JobCase(FolderCase):
    launcher: tuple[str, ...]  # the command that starts jobs
    lingering = 0  # seconds for which processes may still exist when it has ended

    def start(self, *arguments: str, **more) -> subprocess.Popen:
        """Starts a job. Each of its processes inherits a pipe, as proof of its life."""
        self.alive, inherited = os.pipe()
        self.addCleanup(os.close, self.alive)
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            job = subprocess.Popen(
                [*self.launcher, *arguments], pass_fds=[inherited], **pipes | more
            )
        finally:
            os.close(inherited)
        for pipe in (job.stdin, job.stdout, job.stderr):
            if pipe:
                self.addCleanup(pipe.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def finish(self, job: subprocess.Popen, given: bytes | None = None) -> Ended:
        """Waits for the end of the job: it must leave no process behind, for any status."""
        out, err = job.communicate(given, timeout=TIMEOUT)
        ended = Ended(job.returncode, (out or b"").decode(), (err or b"").decode())
        self.assert_nothing_remains(self.lingering)
        return ended

    def assert_nothing_remains(self, seconds: float = TIMEOUT) -> None:
        ready, _, _ = select.select([self.alive], [], [], seconds)
        self.assertTrue(ready, "a process of the job is still there")

    def assert_gone(self, files: list[str], seconds: float = TIMEOUT) -> None:
        until = time.monotonic() + seconds
        while left := [file for file in files if os.path.exists(file)]:
            # Another job that ends may have the lock, and be about to remove it.
            if not any(is_being_removed(file) for file in left):
                self.assertLess(time.monotonic(), until, f"{left} is still there")
            time.sleep(0.02)

    def job(self, *arguments: str, given: bytes | None = None, **more) -> Ended:
        if given is not None:
            more["stdin"] = subprocess.PIPE
        return self.finish(self.start(*arguments, **more), given)

    def read_lines(self, job: subprocess.Popen, count: int) -> list[str]:
        """The next lines of its output: processes print a line when they are where a test wants
        them."""
        return sorted(job.stdout.readline().decode().rstrip("\n") for _ in range(count))


@unittest.skipUnless(BINARY, "ctest runs these, with the program built")
class LaunchCase(JobCase):
    launcher = (BINARY,)

    def shell(self, processes: int, script: str, *options: str, **more) -> Ended:
        return self.job("-n", str(processes), *options, "sh", "-c", script, **more)

    def python(self, processes: int, script: str, *options: str, **more) -> Ended:
        return self.job("-n", str(processes), *options, sys.executable, "-c", script, **more)
