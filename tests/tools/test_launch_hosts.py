"""Tries meshpost-run on several hosts: this one under several names, by what stands in for ssh."""

import os
import signal
import socket
import sys
import unittest

from launch_case import BINARY, HERE, PATIENCE, HostsCase
from test_launch import MEET

# What is said to host a comes there later, and in the same order; host b hears at once.
SLOW = f"""#!/bin/sh
test $1 = a || exec "{HERE}" "$@"
{sys.executable} -c '
import os, queue, threading, time
said = queue.Queue()
def pass_on():
    for due, said_then in iter(said.get, None):
        time.sleep(max(0, due - time.monotonic()))
        os.write(1, said_then)
threading.Thread(target=pass_on).start()
for piece in iter(lambda: os.read(0, 65536), b""):
    said.put((time.monotonic() + 0.5, piece))
said.put(None)
' | "{HERE}" "$@"
"""


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
    def meet(self, hosts: str, *options: str, **more):
        script = MEET + "\nprint(os.environ['MESHPOST_RENDEZVOUS'])"
        ended = self.on(hosts, *options, "--no-label", sys.executable, "-c", script, **more)
        self.assertEqual(ended.status, 0, ended.err)
        addresses = {line for line in ended.lines if "here" not in line}
        self.assertEqual(len(addresses), 1, ended.lines)
        return addresses.pop()

    def test_all_know_one_address_that_leads_to_process_0(self):
        self.assertRegex(self.meet("a:2,b:2"), r"^(\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]):\d+$")

    def test_a_first_host_that_hears_late_is_not_met_before_process_0_is_there(self):
        slow = self.folder / "slow"
        slow.write_text(SLOW)
        slow.chmod(0o755)
        self.meet("a:2,b:2", "--timeout", "20", ssh=("--ssh", str(slow)))

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
        self.assertIn(
            f"start on a: listen at port {port} for the other processes: Address", ended.err
        )
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
        script = (
            "import os; print((os.environ['MESHPOST_PROCESS'] * 1_000_000 + '\\n') * 3, end='')"
        )
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


if __name__ == "__main__":
    unittest.main()
