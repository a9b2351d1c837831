"""Tries how jobs on several hosts end, or do not begin."""

import os
import re
import signal
import sys
import time
import unittest

from launch_case import HERE, PATIENCE, HostsCase
from test_launch_ends import HOLDS, WAITS


class Ends(HostsCase):
    def test_a_failure_on_one_host_ends_all(self):
        script = "test $MESHPOST_PROCESS = 3 && { echo why >&2; exit 5; }; sleep 1000 & wait"
        ended = self.on("a,b", "-n", "4", "sh", "-c", script, ssh=self.far)
        self.assertEqual(ended.status, 5)
        self.assertRegex(
            ended.err,
            r"^\[3 b\] why\nmeshpost-run: process 3 \(pid \d+ on b\) ended "
            r"with status 5; ending the others\n",
        )

    def test_a_signal_is_passed_on_to_all(self):
        job = self.begin("a,b", WAITS, count=2)
        job.send_signal(signal.SIGTERM)
        ended = self.finish(job)
        self.assertEqual(ended.status, 128 + signal.SIGTERM)
        self.assertIn("SIGTERM is passed on to processes 0, 1; once more kills them", ended.err)

    def test_what_processes_leave_running_is_ended(self):
        ended = self.on("a,b", "sh", "-c", "sleep 1000 & exit 0", ssh=self.far)
        self.assertEqual(ended.status, 0)
        self.assertIn("ended what the processes had started and left running", ended.err)

    def test_killing_the_launcher_leaves_nothing_on_any_host(self):
        job = self.begin("a,b", WAITS, "-n", "4", count=4)
        job.kill()
        job.wait()
        self.assert_nothing_remains()

    def test_killing_launcher_or_agents_leaves_no_files_in_shared_memory(self):
        for agents in (False, True):
            job = self.start("--hosts", "a,b", *self.far, "--no-label", sys.executable, "-c", HOLDS)
            files = self.read_lines(job, 2)
            self.assertTrue(all(os.path.exists(file) for file in files), files)
            for host in "ab" if agents else ():
                os.kill(self.pid(f"agent.{host}"), signal.SIGKILL)
            job.kill()
            job.wait(PATIENCE)
            self.assert_gone(files)

    def test_a_host_whose_connection_ends_is_lost(self):
        job = self.begin("a,b", WAITS, count=2)
        os.killpg(self.pid("ssh.b"), signal.SIGKILL)
        ended = self.finish(job)
        self.assertEqual(ended.status, 1)
        self.assertRegex(ended.err, r"meshpost-run: b is lost: .* was killed by signal 9")
        self.assertIn("ending the others", ended.err)

    def test_a_host_whose_agent_is_killed_is_lost(self):
        job = self.begin("a,b", WAITS, "--lost-after", "2", count=2)
        os.kill(self.pid("agent.a"), signal.SIGKILL)
        ended = self.finish(job)
        self.assertEqual(ended.status, 1)
        self.assertIn("meshpost-run: a is lost: ", ended.err)

    def test_a_host_that_falls_silent_is_lost(self):
        job = self.begin("a,b", WAITS, "--lost-after", "2", count=2)
        agent = self.pid("agent.b")
        os.kill(agent, signal.SIGSTOP)
        self.assertEqual(job.wait(PATIENCE), 1)
        os.kill(agent, signal.SIGCONT)  # it finds that nobody is there any more
        said = job.stderr.read().decode()
        self.assertIn("b is lost: no sign of life for 2 s; see that the host is up", said)
        self.assert_nothing_remains()

    def test_processes_whose_launcher_falls_silent_end(self):
        job = self.begin("a,b", "echo $$; exec sleep 1000", "--lost-after", "2", count=2)
        job.send_signal(signal.SIGSTOP)
        until = time.monotonic() + PATIENCE
        pids = [line.split()[-1] for line in self.said]
        while any(os.path.exists(f"/proc/{pid}") for pid in pids):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        job.send_signal(signal.SIGCONT)
        self.assertEqual(self.finish(job).status, 1)

    def test_a_stopped_job_goes_on(self):
        job = self.begin("a,b", WAITS, "--lost-after", "1", count=2)
        job.send_signal(signal.SIGTSTP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED)[1]))
        time.sleep(1.5)  # longer than without a sign of life it may be
        job.send_signal(signal.SIGTERM)
        job.send_signal(signal.SIGCONT)
        self.assertEqual(self.finish(job).status, 128 + signal.SIGTERM)


class Refused(HostsCase):
    def refused(self, status: int, message: str, *arguments: str, ssh=(), **more) -> str:
        ended = self.job(*arguments[:2], *(ssh or ("--ssh", str(HERE))), *arguments[2:], **more)
        self.assertEqual((ended.status, ended.out), (status, ""), ended.err)
        self.assertRegex(ended.err, message)
        return ended.err

    def test_a_host_that_is_not_there(self):
        said = self.refused(
            1, r"start on nowhere: .* before meshpost-run answered there; see that this command",
            "--hosts", "a,nowhere", "true", ssh=self.far)  # fmt: skip
        self.assertIn("[nowhere] ssh: Could not resolve hostname nowhere\n", said)

    def test_an_ssh_that_is_not_there(self):
        self.refused(127, "start 'no-such': no folder of PATH has it", "--hosts", "a", "true",
                     ssh=("--ssh", "no-such"))  # fmt: skip

    def test_a_host_that_says_nothing(self):
        silent = self.folder / "silent"
        silent.write_text("#!/bin/sh\nexec sleep 1000\n")
        silent.chmod(0o755)
        environment = os.environ | {"MESHPOST_START_DEADLINE": "0.5"}
        self.refused(
            1,
            r"start on a, b: no answer within 0.5 s; .* MESHPOST_START_DEADLINE",
            "--hosts",
            "a,b",
            "true",
            ssh=("--ssh", str(silent)),
            env=environment,
        )

    def test_launchers_that_are_not_there_or_others(self):
        other = self.folder / "other"
        for text, message in (
            (
                "echo meshpost-run agent 0 of meshpost 0.0; cat",
                "the launcher there is 'meshpost-run agent 0 of meshpost 0.0', "
                "this one 'meshpost-run agent 2 of .*'; install the same",
            ),
            ("exec yes hello", "what answers there is no meshpost-run; see that shells print"),
            ("exit 2", "ended with status 2 before meshpost-run answered there"),
        ):  # fmt: skip
            other.write_text(f"#!/bin/sh\n{text}\n")
            other.chmod(0o755)
            with self.subTest(text):
                self.refused(1, message, "--hosts", "a", "--launcher", str(other), "true")
        self.refused(1, "status 127: there is no such program; install it there, or say with",
                     "--hosts", "a", "--launcher", "/no/such", "true")  # fmt: skip

    def test_programs_that_are_not_on_a_host(self):
        self.refused(127, r"process \d on [ab]: start './no-such': there is no such file",
                     "--hosts", "a,b", "./no-such")  # fmt: skip
        self.refused(126, r"process 0 on a: start '/': it is a folder", "--hosts", "a", "/")

    def test_a_folder_that_is_not_on_a_host(self):
        self.refused(2, "start on [ab]: start in --wdir /no/such: No such file",
                     "--hosts", "a,b", "--wdir", "/no/such", "true")  # fmt: skip

    def test_wrong_arguments(self):
        file = self.folder / "hosts"
        file.write_text("a\nb slots=x\n")
        for arguments, message in (
            ("--hosts a:2,b -n 4 true", "place the processes: 4 of -n are more than the 3 slots"),
            ("--hosts a:0 true", "read --hosts: '0' is no number of slots, a whole one from 1 to"),
            ("--hosts a,,b true", "read --hosts: '' names no host; write hosts as a,b:4,c"),
            ("--hosts -oProxyCommand=x true", "'-oProxyCommand=x' is no host: no name begins"),
            ("--hosts a;b true", "'a;b' is no host's name"),
            (f"--hostfile {file} true", "line 2: 'x' is no number of slots"),
            ("--hostfile /no/such true", "read --hostfile /no/such: No such file"),
            ("--hosts a -n 513 true", "'513' is no number of processes; .* from 1 to 512"),
            ("--hosts a --hostfile b true", "read --hosts: --hostfile is given as well"),
            ("--hosts a,b --nodes 2 true", "read --nodes: it pretends hosts, and --hosts names"),
            ("--hosts a,b --rendezvous x:y true", "read --rendezvous: 'x:y' is no address"),
            ("--hosts a,b --lost-after 0 true", "read --lost-after: '0' is no time"),
            ("-n 2 --launcher x true", "read --ssh: there are no other hosts"),
        ):
            with self.subTest(arguments):
                self.refused(2, re.escape(message).replace(r"\.\*", ".*"), *arguments.split())


if __name__ == "__main__":
    unittest.main()
