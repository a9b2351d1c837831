"""Tries meshpost-run on several hosts: this one under several names, by what stands in for ssh."""

import os
import re
import signal
import socket
import sys
import time
import unittest
from pathlib import Path

from launch_case import BINARY, PATIENCE, LaunchCase
from test_launch import MEET

HERE = Path(__file__).parent / "../support/here.sh"
WAITS = "sleep 1000 & echo ready; wait"
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


class Placed(HostsCase):
    def placed(self, hosts: str, *options: str) -> list[str]:
        ended = self.on(hosts, *options, "sh", "-c", "echo $MESHPOST_PROCESS/$MESHPOST_PROCESSES")
        self.assertEqual((ended.status, ended.err), (0, ""))
        return sorted(ended.lines)

    def test_hosts_get_blocks_of_processes(self):
        expected = ["[0 a ] 0/4", "[1 a ] 1/4", "[2 bc] 2/4", "[3 bc] 3/4"]
        self.assertEqual(self.placed("a,bc", "-n", "4"), expected)

    def test_slots_are_filled_in_order(self):
        self.assertEqual(self.placed("a,b:2"), ["[0 a] 0/3", "[1 b] 1/3", "[2 b] 2/3"])

    def test_a_file_names_hosts(self):
        file = self.folder / "hosts"
        file.write_text("# ours\na slots=1 # small\n\nb:2\n")
        ended = self.job("--hostfile", str(file), "--ssh", str(HERE), "-n", "2", "echo")
        self.assertEqual(sorted(ended.lines), ["[0 a] ", "[1 b] "])

    def test_this_host_is_reached_without_ssh(self):
        ended = self.on("localhost:2", "echo", "x", ssh=("--ssh", ""))
        self.assertEqual(sorted(ended.lines), ["[0 localhost] x", "[1 localhost] x"])

    def test_a_variable_takes_the_place_of_the_option(self):
        ended = self.on("a", "echo", "x", ssh=(), env=os.environ | {"MESHPOST_SSH": str(HERE)})
        self.assertEqual(ended.lines, ["[0 a] x"])


class Given(HostsCase):
    def test_arguments_survive_all_shells(self):
        words = ["a  b", "it's", '"', "", "$HOME", "new\nline", "\\", "*", "-n", "--"]
        ended = self.on("a,b", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
        self.assertEqual(sorted(ended.lines), [f"[0 a] {words}", f"[1 b] {words}"])

    def test_the_launcher_may_have_a_name_of_any_kind(self):
        launcher = self.folder / "it's a launcher"
        launcher.symlink_to(BINARY)
        ended = self.on("a", "--launcher", str(launcher), "echo", "x")
        self.assertEqual(ended.lines, ["[0 a] x"], ended.err)

    def test_variables_that_were_named_and_those_of_the_library(self):
        given = os.environ | {"MESHPOST_RANKS": "7", "A": "1 2", "B": "no", "MESHPOST_NODE": "old"}
        script = 'echo "$MESHPOST_RANKS|$A|$B|$C|$MESHPOST_NODE|$MESHPOST_LAUNCHER|$(pwd -P)"'
        options = ("-x", "A", "--env", "C=3=4", "--wdir", str(self.folder))
        ended = self.on("a", *options, "sh", "-c", script, env=given)
        there = self.folder.resolve()
        self.assertEqual(ended.lines, [f"[0 a] 7|1 2||3=4||meshpost-run|{there}"])

    def test_programs_are_found_by_the_path_that_is_passed_on(self):
        program = self.folder / "only-here"
        program.write_text("#!/bin/sh\necho x\n")
        program.chmod(0o755)
        ended = self.on("a", "--env", f"PATH={self.folder}:{os.defpath}", "only-here")
        self.assertEqual(ended.lines, ["[0 a] x"], ended.err)

    def test_nobody_sees_the_secret_who_may_not_read_the_environment_of_processes(self):
        script = """
import os
secret, pid, seen = os.environ["MESHPOST_SECRET"].encode(), os.getppid(), 0
while pid > 1:
    status = open(f"/proc/{pid}/status").read()
    for name in ("cmdline", "environ"):
        assert secret not in open(f"/proc/{pid}/{name}", "rb").read(), (pid, name)
    seen += b"--agent" in open(f"/proc/{pid}/cmdline", "rb").read()
    pid = int(status.split("PPid:")[1].split()[0])
print(len(secret), seen > 0)
"""
        ended = self.on("a,b", sys.executable, "-c", script)
        self.assertEqual(sorted(ended.lines), ["[0 a] 64 True", "[1 b] 64 True"], ended.err)

    def test_process_0_gets_standard_input(self):
        given = os.urandom(1_000_000)
        ended = self.on("a,b", "--no-label", "sh", "-c", "wc -c", given=given)
        self.assertEqual(sorted(ended.lines), ["0", "1000000"])

    def test_input_that_nobody_reads_harms_nobody(self):
        ended = self.on("a,b", "true", given=bytes(1_000_000))
        self.assertEqual((ended.status, ended.err), (0, ""))


class Meeting(HostsCase):
    def meet(self, hosts: str, *options: str):
        script = MEET + "\nprint(os.environ['MESHPOST_RENDEZVOUS'])"
        ended = self.on(hosts, *options, "--no-label", sys.executable, "-c", script)
        self.assertEqual(ended.status, 0, ended.err)
        addresses = {line for line in ended.lines if "here" not in line}
        self.assertEqual(len(addresses), 1, ended.lines)
        return addresses.pop()

    def test_all_know_one_address_that_leads_to_process_0(self):
        self.assertRegex(self.meet("a:2,b:2"), r"^(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+$")

    def test_on_one_host_they_meet_within_it(self):
        self.assertRegex(self.meet("a:3"), r"^127\.0\.0\.1:\d+$")

    def test_an_address_an_interface_and_a_port_can_be_chosen(self):
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        self.assertEqual(self.meet("a,b", "--rendezvous", f"127.0.0.1:{port}"), f"127.0.0.1:{port}")
        self.assertRegex(self.meet("a,b", "--rendezvous", "lo"), r"^127\.0\.0\.1:\d+$")

    def test_a_port_that_is_taken_is_named(self):
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        with socket.create_server(("", 0), family=family, dualstack_ipv6=dual) as one:
            port = one.getsockname()[1]
            ended = self.on("a,b", "--rendezvous", f":{port}", "true")
        self.assertEqual(ended.status, 1)
        self.assertIn(f"start on a: listen at port {port} for the other processes: Address", ended.err)
        self.assertIn("name another one with --rendezvous", ended.err)

    def test_no_such_interface_and_no_such_address(self):
        ended = self.on("a,b", "--rendezvous", "no-such.invalid", "true")
        self.assertEqual(ended.status, 2)
        self.assertIn("'no-such.invalid' is no interface of a, and no host's name", ended.err)


class Output(HostsCase):
    def test_logs_hold_what_each_process_printed_on_any_host(self):
        folder = self.folder / "logs"
        script = "echo out $MESHPOST_PROCESS; printf err >&2"
        self.on("a,b", "--logs", str(folder), "sh", "-c", script)
        for k in range(2):
            text = (folder / f"process-{k}.log").read_text()
            self.assertIn(text, (f"out {k}\nerr", f"errout {k}\n"))

    def test_long_lines_of_hosts_are_never_mixed(self):
        script = "import os; print((os.environ['MESHPOST_PROCESS'] * 1_000_000 + '\\n') * 3, end='')"
        ended = self.on("a,b", "-n", "4", sys.executable, "-c", script)
        expected = [f"[{k} {'ab'[k // 2]}] {str(k) * 1_000_000}" for k in range(4) for _ in "123"]
        self.assertTrue(sorted(ended.lines) == expected, [len(line) for line in ended.lines])

    def test_what_shells_print_is_passed_on(self):
        ended = self.on("a,noisy", "echo", "x", ssh=self.far)
        self.assertEqual((ended.status, sorted(ended.lines)), (0, ["[0 a    ] x", "[1 noisy] x"]))
        self.assertEqual(ended.err, "[noisy] Welcome to noisy\n[noisy] and its rules\n")

    def test_a_reader_that_goes_away_ends_the_job(self):
        job = self.start("--hosts", "a,b", *self.far, "yes")
        job.stdout.readline()
        job.stdout.close()
        self.assertEqual(job.wait(PATIENCE), 128 + signal.SIGPIPE)
        self.assert_nothing_remains()


class Ends(HostsCase):
    def test_a_failure_on_one_host_ends_all(self):
        script = "test $MESHPOST_PROCESS = 3 && { echo why >&2; exit 5; }; trap 'exit 0' TERM; sleep 1000 & wait"
        ended = self.on("a,b", "-n", "4", "sh", "-c", script, ssh=self.far)
        self.assertEqual(ended.status, 5)
        self.assertRegex(ended.err, r"^\[3 b\] why\nmeshpost-run: process 3 \(pid \d+ on b\) ended "
                         r"with status 5; ending the others\n")

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
        self.refused(1, r"start on a, b: no answer within 0.5 s; .* MESHPOST_START_DEADLINE",
                     "--hosts", "a,b", "true", ssh=("--ssh", str(silent)), env=environment)

    def test_launchers_that_are_not_there_or_others(self):
        other = self.folder / "other"
        for text, message in (
            ("echo meshpost-run agent 0 of meshpost 0.0; cat", "the launcher there is 'meshpost-run "
             "agent 0 of meshpost 0.0', this one 'meshpost-run agent 1 of .*'; install the same"),
            ("exec yes hello", "what answers there is no meshpost-run; see that shells print nothing"),
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
