"""Tests apps/launch/over_ssh.sh on this host under several names, with a replacement of ssh."""

import os
import re
import signal
import socket
import subprocess
import sys
import unittest
from pathlib import Path

from launch_case import TIMEOUT, JobCase

OVER_SSH = Path(__file__).resolve().parents[2] / "apps/launch/over_ssh.sh"
# As with ssh, the command gets a shell, hardly any variables, and no signal of this terminal.
STANDS_IN = """#!/bin/sh
echo "$1" >>"$0.hosts"
test "$1" != nowhere || { echo "ssh: Could not resolve hostname nowhere" >&2; exit 255; }
shift
exec setsid env -i PATH="$PATH" sh -c "$*"
"""


class OverSsh(JobCase):
    lingering = TIMEOUT  # its descendants end just after it

    def setUp(self):
        super().setUp()
        stands_in = self.folder / "ssh"
        stands_in.write_text(STANDS_IN)
        stands_in.chmod(0o755)
        self.work = self.folder / "it's work"
        self.work.mkdir()
        self.launcher = (str(OVER_SSH), "-s", str(stands_in))

    def on(self, hosts: str, *command: str, **more):
        return self.job(hosts, *command, cwd=self.work, **more)

    def test_processes_are_told_of_their_job(self):
        script = "echo $MESHPOST_PROCESS/$MESHPOST_PROCESSES; env | grep -E 'RENDEZ|SECRET'; pwd"
        ended = self.on("me@a:2,b", "sh", "-c", script)
        self.assertEqual((ended.status, ended.err), (0, ""))
        said = [[line[4:] for line in ended.lines if line.startswith(f"[{k}] ")] for k in range(3)]
        self.assertEqual([one[0] for one in said], ["0/3", "1/3", "2/3"])
        self.assertEqual(len({tuple(sorted(one[1:])) for one in said}), 1)
        self.assertIn(str(self.work.resolve()), said[0])
        together = "\n".join(said[0])
        self.assertRegex(together, r"MESHPOST_SECRET=[0-9a-f]{64}(\n|$)")
        self.assertRegex(together, r"MESHPOST_RENDEZVOUS=a:2\d{4}(\n|$)")
        for k in range(3):
            log = (self.work / f"logs/process-{k}.log").read_text()
            self.assertEqual(log.splitlines(), said[k])

    def test_an_address_in_brackets_is_one_host(self):
        ended = self.on("[::1]:2,me@[fe80::2%eth0]", "sh", "-c", "echo $MESHPOST_RENDEZVOUS")
        self.assertEqual((ended.status, ended.err), (0, ""))
        said = {line[4:] for line in ended.lines}
        self.assertEqual((len(ended.lines), len(said)), (3, 1), ended.out)
        self.assertRegex(said.pop(), r"^\[::1\]:2\d{4}$")
        hosts = (self.folder / "ssh.hosts").read_text().splitlines()
        self.assertEqual(set(hosts), {"::1", "me@fe80::2%eth0"})

    def test_the_port_is_one_that_nobody_has(self):
        text = OVER_SSH.read_text()
        function = re.search(r"^free_port\(\).*?^}$", text, re.DOTALL | re.MULTILINE)
        self.assertTrue(function)

        def found() -> int:
            shell = ["bash", "-euc", f"{function.group()}\nRANDOM=1; free_port"]
            return int(subprocess.run(shell, check=True, capture_output=True, text=True).stdout)

        first = found()
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with self.subTest(address), socket.socket(family) as taken:
                try:
                    taken.bind((address, first))
                except OSError:
                    self.skipTest(f"no port {first} at {address}")
                taken.listen()
                self.assertNotEqual(found(), first)

    def test_what_a_signal_killed_is_named_and_the_shell_there_prints_nothing(self):
        ended = self.on("a", "sh", "-c", "kill -9 $$")
        self.assertEqual((ended.status, ended.out), (137, ""))
        self.assertIn("process 0 on a ended with status 137, see logs/process-0.log", ended.err)

    def test_words_and_variables_survive_all_shells(self):
        words = ["a  b", "it's", '"', "", "$HOME", "new\nline", "\\", "*", "-n", "--"]
        more = {"MESHPOST_NET": words[5] + "'", "MESHPOST_RENDEZVOUS": "c:1", "OTHER": "x"}
        script = (
            "import os, sys; e = os.environ.get;"
            "print(sys.argv[1:] + [e('MESHPOST_NET'), e('MESHPOST_RENDEZVOUS'), e('OTHER')])"
        )
        ended = self.on("a", sys.executable, "-c", script, *words, env=os.environ | more)
        self.assertEqual(ended.lines, [f"[0] {[*words, *list(more.values())[:2], None]}"])

    def test_the_secret_is_on_no_command_line(self):
        script = """
import os, pathlib
secret, read = os.environ["MESHPOST_SECRET"].encode(), 0
for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        line = file.read_bytes()
    except OSError:
        continue
    assert secret not in line, line
    read += 1
print(read > 5)
"""
        ended = self.on("a,b", sys.executable, "-c", script)
        self.assertEqual(sorted(ended.lines), ["[0] True", "[1] True"], ended.out)

    def test_a_failure_ends_the_others_after_a_while(self):
        script = (
            "test $MESHPOST_PROCESS = 0 || exit 5; trap 'echo warned; exit' TERM; sleep 99 & wait"
        )
        ended = self.on("a,b", "sh", "-c", script)
        self.assertEqual(
            (ended.status, ended.lines, ended.err),
            (5, ["[0] warned"], "over_ssh.sh: process 1 on b ended with status 5, "
             "see logs/process-1.log; ending the others\n"),
        )  # fmt: skip

    def test_a_host_that_is_not_reached_is_named(self):
        ended = self.on("a,nowhere", "true")
        self.assertEqual(ended.status, 255)
        self.assertEqual(ended.lines, ["[1] ssh: Could not resolve hostname nowhere"])
        self.assertIn("process 1 on nowhere ended with status 255, see logs/", ended.err)

    def test_a_first_host_that_is_not_reached_ends_it_at_once(self):
        ended = self.on("nowhere,a", "echo", "started")
        self.assertEqual((ended.status, ended.out), (255, ""))
        self.assertEqual(ended.err, "ssh: Could not resolve hostname nowhere\n")

    def test_a_program_that_is_not_there_is_named(self):
        ended = self.on("a", "./no-such")
        self.assertNotEqual(ended.status, 0)
        self.assertIn("./no-such: No such file or directory", ended.out)

    def test_control_c_ends_all_and_kills_who_does_not_heed_it(self):
        script = "trap '' TERM; sleep 1000 & echo ready; wait; wait; exec sleep 1000"
        job = self.start("a,b", "sh", "-c", script, cwd=self.work)
        self.assertEqual(self.read_lines(job, 2), ["[0] ready", "[1] ready"])
        job.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(job).status, 130)

    def test_control_c_at_a_terminal_tells_the_programs_and_does_not_reach_ssh(self):
        near = self.folder / "near"
        near.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        near.chmod(0o755)
        self.launcher = (str(OVER_SSH), "-s", str(near))
        script = "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
        for sent in (signal.SIGINT, signal.SIGQUIT):
            job = self.start("a,b", "sh", "-c", script, cwd=self.work, start_new_session=True)
            self.read_lines(job, 2)
            os.killpg(job.pid, sent)  # as a terminal does
            ended = self.finish(job)
            self.assertEqual(ended.status, 130)
            for k in range(2):
                self.assertIn("told", (self.work / f"logs/process-{k}.log").read_text())

    def test_killing_it_leaves_nothing(self):
        job = self.start("a:2,b", "sh", "-c", "sleep 1000 & echo ready; wait", cwd=self.work)
        self.read_lines(job, 3)
        job.kill()
        self.assert_nothing_remains()

    def test_what_processes_leave_running_is_ended(self):
        self.assertEqual(self.on("a", "sh", "-c", "sleep 1000 & exit 0").status, 0)

    def test_wrong_arguments(self):
        for arguments, message in (
            ("a", "give hosts and a program, as in: over_ssh.sh node-a,node-b:2 ./ring"),
            ("a:0 true", "'a:0' is no host; write hosts as node-a,node-b:2,[::1]:2"),
            ("::1 true", "'::1' is no host; write hosts as"),
            ("[a true", "'[a' is no host; write hosts as"),
            ("[-o::x] true", "'[-o::x]' is no host; write hosts as"),
            ("a,-oProxyCommand=x true", "'-oProxyCommand=x' is no host"),
            ("-y a true", "illegal option -- y"),
            ("-y a true", "usage: over_ssh.sh [-l FOLDER]"),
            (", true", "give hosts and a program"),
            ("-l /dev/null/x a true", "can't write to the folder '/dev/null/x'; name"),
        ):
            with self.subTest(arguments):
                ended = self.job(*arguments.split(), cwd=self.work)
                self.assertEqual(ended.status, 2)
                self.assertRegex(ended.err, re.escape(message))


if __name__ == "__main__":
    unittest.main()
