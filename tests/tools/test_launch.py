"""Tests meshpost-run: input and environment of its processes, and their output."""

import os
import pty
import resource
import signal
import subprocess
import sys
import unittest

from launch_case import BINARY, LaunchCase

# Process 0 accepts the others on the socket that it inherited; they connect to its address.
MEET = """
import os, socket
k, n = int(os.environ["MESHPOST_PROCESS"]), int(os.environ["MESHPOST_PROCESSES"])
host, port = os.environ["MESHPOST_RENDEZVOUS"].rsplit(":", 1)
if k == 0:
    listener = socket.socket(fileno=int(os.environ["MESHPOST_LISTENER"]))
    for _ in range(1, n):
        print(listener.accept()[0].makefile().read())
else:
    assert "MESHPOST_LISTENER" not in os.environ
    with socket.create_connection((host, int(port))) as peer:
        peer.sendall(f"{k} is here".encode())
"""
# Sockets that listen among the descriptors of this process.
LISTENERS = """
import os, socket
count = 0
for name in os.listdir("/proc/self/fd"):
    try:
        one = socket.socket(fileno=os.dup(int(name)))
        count += one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        pass
print(count)
"""


class Output(LaunchCase):
    def test_lines_carry_the_number_of_their_process(self):
        ended = self.shell(3, "echo out $MESHPOST_PROCESS; echo err $MESHPOST_PROCESS >&2")
        self.assertEqual(ended.status, 0)
        self.assertEqual(sorted(ended.lines), ["[0] out 0", "[1] out 1", "[2] out 2"])
        self.assertEqual(sorted(ended.err.splitlines()), ["[0] err 0", "[1] err 1", "[2] err 2"])

    def test_labels_are_aligned(self):
        ended = self.shell(11, "echo x")
        self.assertEqual(sorted(ended.lines), sorted(f"[{k:2}] x" for k in range(11)))

    def test_no_label_leaves_lines_as_they_are(self):
        ended = self.shell(2, "echo ' a  b'; echo; printf c", "--no-label")
        self.assertEqual(sorted(ended.lines), sorted([" a  b", "", "c"] * 2))

    def test_lines_of_a_process_keep_their_order(self):
        ended = self.shell(4, "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done")
        for k in range(4):
            mine = [line[4:] for line in ended.lines if line.startswith(f"[{k}] ")]
            self.assertEqual(mine, [str(i) for i in range(3000)])

    def test_long_lines_are_never_mixed(self):
        script = (
            "import os; print((os.environ['MESHPOST_PROCESS'] * 3_000_000 + '\\n') * 2, end='')"
        )
        ended = self.python(4, script, stderr=subprocess.STDOUT)
        expected = [f"[{k}] {str(k) * 3_000_000}" for k in range(4) for _ in range(2)]
        self.assertTrue(sorted(ended.lines) == expected, [len(line) for line in ended.lines])

    def test_a_line_over_16_MiB_is_broken(self):
        ended = self.python(1, "print('x' * (17 << 20))")
        self.assertEqual([len(line) - 4 for line in ended.lines], [16 << 20, 1 << 20])

    def test_a_last_line_without_end_is_forwarded_with_one(self):
        ended = self.shell(2, "printf 'a\\nlast'; printf oops >&2")
        self.assertEqual(
            sorted(ended.out.split("\n")), ["", "[0] a", "[0] last", "[1] a", "[1] last"]
        )
        self.assertEqual(sorted(ended.err.split("\n")), ["", "[0] oops", "[1] oops"])

    def test_what_a_process_started_may_print_after_its_end(self):
        os.mkfifo(self.folder / "fifo")
        script = "(read x <fifo; echo late) & exec 3>fifo; exit 0"  # read fails once this one ends
        ended = self.shell(1, script, cwd=self.folder)
        self.assertEqual((ended.status, ended.out, ended.err), (0, "[0] late\n", ""))

    def test_a_reader_that_goes_away_ends_the_job(self):
        job = self.start("-n", "3", "yes")
        job.stdout.readline()
        job.stdout.close()
        self.assertEqual(job.wait(60), 128 + signal.SIGPIPE)
        self.assertEqual(job.stderr.read(), b"")
        self.assert_nothing_remains(0)

    def test_a_full_disk_ends_the_job(self):
        with open("/dev/full", "wb") as full:
            ended = self.job("-n", "2", "yes", stdout=full)
        self.assertEqual(ended.status, 1)
        self.assertIn("standard output can't be written: No space left on device", ended.err)

    def test_logs_hold_what_each_process_printed(self):
        folder = self.folder / "new" / "logs"
        ended = self.shell(2, "echo out $MESHPOST_PROCESS; printf err >&2", "--logs", str(folder))
        self.assertEqual(len(ended.lines), 2)
        self.assertEqual(sorted(os.listdir(folder)), ["process-0.log", "process-1.log"])
        for k in range(2):
            text = (folder / f"process-{k}.log").read_text()
            self.assertIn(text, (f"out {k}\nerr", f"errout {k}\n"))


class Given(LaunchCase):
    def test_process_0_gets_standard_input_and_the_others_none(self):
        ended = self.shell(3, "cat; echo end", given=b"one\ntwo\n")
        self.assertEqual(
            sorted(ended.lines), ["[0] end", "[0] one", "[0] two", "[1] end", "[2] end"]
        )

    def test_process_0_gets_all_that_is_typed(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(BINARY, [BINARY, "-n", "2", "sh", "-c", "while read x; do echo got $x; done"])
        self.addCleanup(os.close, terminal)
        said = b""
        for word in (b"one", b"two"):
            os.write(terminal, word + b"\n")
            while b"[0] got " + word not in said:
                said += os.read(terminal, 1000)
        os.write(terminal, b"\x04")  # the end of input, like Ctrl-D
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_every_variable_of_the_job(self):
        outer = {"MESHPOST_NODE": "old", "MESHPOST_SECRET": "old", "MESHPOST_PROCESS": "7"}
        outer |= {"MESHPOST_RENDEZVOUS": "old:1", "MESHPOST_LISTENER": "99", "PATH": os.defpath}
        ended = self.shell(2, "env | grep -a ^MESHPOST_ | sort", "--no-label", env=outer)
        found = [line.split("=", 1) for line in ended.lines]
        count = {name: [value for one, value in found if one == name] for name, _ in found}
        secrets = count.pop("MESHPOST_SECRET")
        self.assertRegex(secrets[0], "^[0-9a-f]{64}$")
        self.assertEqual(secrets[0], secrets[1])
        rendezvous = count.pop("MESHPOST_RENDEZVOUS")
        self.assertRegex(rendezvous[0], r"^127\.0\.0\.1:[1-9][0-9]*$")
        self.assertEqual(rendezvous[0], rendezvous[1])
        listeners = count.pop("MESHPOST_LISTENER")  # of process 0 alone
        self.assertEqual(len(listeners), 1)
        self.assertNotEqual(listeners, ["99"])
        self.assertEqual(sorted(count.pop("MESHPOST_PROCESS")), ["0", "1"])
        self.assertEqual(count.pop("MESHPOST_PROCESSES"), ["2", "2"])
        self.assertEqual(count.pop("MESHPOST_LAUNCHER"), ["meshpost-run"] * 2)
        self.assertEqual(count, {})

    def test_each_job_has_a_secret_of_its_own(self):
        secrets = {self.shell(2, "echo $MESHPOST_SECRET", "--no-label").out for _ in range(3)}
        self.assertEqual(len(secrets), 3)

    def test_processes_meet_at_the_rendezvous(self):
        ended = self.python(4, MEET)
        self.assertEqual(ended.status, 0, ended.err)
        self.assertEqual(sorted(ended.lines), [f"[0] {k} is here" for k in (1, 2, 3)])

    def test_only_process_0_holds_a_listening_socket(self):
        self.assertEqual(sorted(self.python(3, LISTENERS).lines), ["[0] 1", "[1] 0", "[2] 0"])

    def test_a_job_inside_a_job_has_its_own_socket_alone(self):
        ended = self.job(
            "-n", "1", "--no-label", BINARY, "-n", "2", sys.executable, "-c", LISTENERS
        )
        self.assertEqual(sorted(ended.lines), ["[0] 1", "[1] 0"])

    def test_nodes_take_blocks_of_processes(self):
        ended = self.shell(5, "echo $MESHPOST_NODE", "--nodes", "2")
        nodes = ["node-0"] * 3 + ["node-1"] * 2
        self.assertEqual(sorted(ended.lines), [f"[{k}] {node}" for k, node in enumerate(nodes)])

    def test_env_sets_variables(self):
        ended = self.shell(2, 'echo "$A|$HOME"', "--env", "A=1=2", "--env", "HOME=")
        self.assertEqual(sorted(ended.lines), ["[0] 1=2|", "[1] 1=2|"])

    def test_options_behind_the_program_are_its_own(self):
        for words in (["printf"], ["--", "printf"], ["--no-label", "--", "printf"]):
            ended = self.job("-n", "1", *words, "%s ", "-n", "3", "--", "--no-label")
            self.assertEqual(ended.lines[0].removeprefix("[0] "), "-n 3 -- --no-label ")

    def test_signals_are_the_default_ones(self):
        def ignore():
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})

        script = "grep -E 'Sig(Ign|Blk|Pnd)|ShdPnd' /proc/self/status"
        ended = self.shell(2, script, preexec_fn=ignore)
        self.assertEqual(ended.status, 0)
        self.assertEqual({line.split()[-1] for line in ended.lines}, {"0" * 16})

    def test_open_files_have_the_limit_that_they_had(self):
        ended = self.job(
            "-n", "1", "sh", "-c", "ulimit -Sn", preexec_fn=lambda: limit_files(50, 80)
        )
        self.assertEqual(ended.lines, ["[0] 50"])


def limit_files(soft: int, hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


if __name__ == "__main__":
    unittest.main()
