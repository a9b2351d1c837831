"""What the tests of apps/launch share: jobs, and the proof that nothing of them remains."""

import dataclasses
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
PATIENCE = 60  # seconds for what takes none, on a busy machine


@dataclasses.dataclass
class Ended:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@unittest.skipUnless(BINARY, "ctest runs these, with the program built")
class LaunchCase(FolderCase):
    lingering = 0  # seconds that processes may be there when the launcher has ended

    def start(self, *arguments: str, **more) -> subprocess.Popen:
        """Starts meshpost-run. Every process of the job inherits a pipe, as proof of its life."""
        self.alive, inherited = os.pipe()
        self.addCleanup(os.close, self.alive)
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            job = subprocess.Popen([BINARY, *arguments], pass_fds=[inherited], **pipes | more)
        finally:
            os.close(inherited)
        for pipe in (job.stdin, job.stdout, job.stderr):
            if pipe:
                self.addCleanup(pipe.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def finish(self, job: subprocess.Popen, given: bytes | None = None) -> Ended:
        """Waits for the end of the job: it must leave no process behind, whatever its status."""
        out, err = job.communicate(given, timeout=PATIENCE)
        ended = Ended(job.returncode, (out or b"").decode(), (err or b"").decode())
        self.assert_nothing_remains(self.lingering)
        return ended

    def assert_nothing_remains(self, seconds: float = PATIENCE) -> None:
        ready, _, _ = select.select([self.alive], [], [], seconds)
        self.assertTrue(ready, "a process of the job is still there")

    def assert_gone(self, files: list[str], seconds: float = PATIENCE) -> None:
        until = time.monotonic() + seconds
        while left := [file for file in files if os.path.exists(file)]:
            self.assertLess(time.monotonic(), until, f"{left} is still there")
            time.sleep(0.02)

    def job(self, *arguments: str, given: bytes | None = None, **more) -> Ended:
        if given is not None:
            more["stdin"] = subprocess.PIPE
        return self.finish(self.start(*arguments, **more), given)

    def shell(self, processes: int, script: str, *options: str, **more) -> Ended:
        return self.job("-n", str(processes), *options, "sh", "-c", script, **more)

    def python(self, processes: int, script: str, *options: str, **more) -> Ended:
        return self.job("-n", str(processes), *options, sys.executable, "-c", script, **more)

    def read_lines(self, job: subprocess.Popen, count: int) -> list[str]:
        """The next lines of its output: processes say so when they are where a test wants them."""
        return sorted(job.stdout.readline().decode().rstrip("\n") for _ in range(count))


HERE = Path(__file__).resolve().parents[1] / "support/here.sh"
# What is behind ssh is no child of it: the connection ends between the two, or falls silent.
FAR = """#!/bin/sh
host=$1
shift
case $host in
  nowhere) echo "ssh: Could not resolve hostname nowhere" >&2; exit 255 ;;
  noisy) echo "Welcome to noisy"; echo "and its rules" ;;
esac
echo $$ >$FOLDER/ssh.$host
cat | setsid sh -c 'echo $$ >$0; exec "$@"' $FOLDER/agent.$host "$@" | cat
"""


class HostsCase(LaunchCase):
    # What is behind a connection that is cut ends by itself: no launcher can wait for it.
    lingering = PATIENCE

    def setUp(self):
        super().setUp()
        far = self.folder / "far"
        far.write_text(FAR.replace("$FOLDER", str(self.folder)))
        far.chmod(0o755)
        self.far = ("--ssh", str(far))

    def on(self, hosts: str, *arguments: str, ssh: tuple = ("--ssh", str(HERE)), **more):
        return self.job("--hosts", hosts, *ssh, *arguments, **more)

    def begin(self, hosts: str, script: str, *options: str, count: int):
        """Starts a job far away, and returns when each of its processes has said so."""
        job = self.start("--hosts", hosts, *self.far, *options, "sh", "-c", script)
        self.said = self.read_lines(job, count)
        return job

    def pid(self, name: str) -> int:
        return int((self.folder / name).read_text())
