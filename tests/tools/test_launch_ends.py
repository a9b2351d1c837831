"""Tests how jobs of meshpost-run end: by themselves, by a failure, by a signal, or not at all."""

import os
import resource
import signal
import subprocess
import sys
import time
import unittest

from launch_case import BINARY, SANITIZERS, TIMEOUT, LaunchCase

# Prints that it waits, then waits for ever, in a process that it has started.
WAITS = "sleep 1000 & echo ready; wait"

# Holds a file in shared memory, as the engine does over libfabric's shm. Prints its name, and
# waits.
HOLDS = """
import fcntl, os, signal
name = f"/dev/shm/{os.getpid()}:0:0"
file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
fcntl.flock(file, fcntl.LOCK_SH)
os.fchmod(file, 0o1600)
print(name, flush=True)
signal.pause()
"""


class Ends(LaunchCase):
    def test_all_that_end_with_0_end_the_job_with_0(self):
        ended = self.shell(3, "exit 0")
        self.assertEqual((ended.status, ended.out, ended.err), (0, "", ""))

    def test_the_status_is_that_of_the_first_failure(self):
        failing = "test $MESHPOST_PROCESS = 2 || exec cat fifo; exit 3"
        os.mkfifo(self.folder / "fifo")  # the others wait for ever
        began = time.monotonic()
        ended = self.shell(4, failing, cwd=self.folder)
        self.assertEqual(ended.status, 3)
        self.assertRegex(ended.err, r"^meshpost-run: process 2 \(pid \d+\) ended with status 3; en")
        self.assertIn("SIGTERM to processes 0, 1, 3, 2 s after that", ended.err)
        self.assertGreater(time.monotonic() - began, 1.9)

    def test_a_process_that_is_stopped_is_named_when_others_fail(self):
        script = (
            "if [ $MESHPOST_PROCESS = 1 ]; then echo $$ >pid; kill -STOP $$; exit; fi;"
            "until test -s pid && grep -q ') T ' /proc/$(cat pid)/stat; do sleep 0.02; done; exit 5"
        )
        ended = self.shell(3, script, cwd=self.folder)
        self.assertEqual(ended.status, 5)
        pid = (self.folder / "pid").read_text().strip()
        self.assertIn(
            f"process 1 (pid {pid}) has not ended: a signal has stopped it, `kill -CONT {pid}` "
            f"lets it go on (state T in /proc/{pid}/stat)\n",
            ended.err,
        )
        self.assertEqual(ended.err.count("has not ended"), 1)

    def test_a_process_that_is_stopped_is_named_at_a_timeout(self):
        ended = self.shell(2, "test $MESHPOST_PROCESS = 0 || kill -STOP $$", "--timeout", "3")
        self.assertEqual(ended.status, 124)
        self.assertRegex(ended.err, r"process 1 \(pid \d+\) has not ended: a signal has stopped")

    def test_a_signal_counts_as_128_and_its_number(self):
        ended = self.shell(1, "kill -9 $$")
        self.assertEqual(ended.status, 128 + 9)
        self.assertRegex(ended.err, r"process 0 \(pid \d+\) was killed by signal 9 \(Killed\)\n")

    def test_others_go_on_when_one_ends_with_0(self):
        os.mkfifo(self.folder / "fifo")
        script = "if [ $MESHPOST_PROCESS = 0 ]; then exit 0; fi; read x <fifo; echo got $x"
        job = self.start("-n", "2", "sh", "-c", script, cwd=self.folder)
        (self.folder / "fifo").write_text("it\n")
        ended = self.finish(job)
        self.assertEqual((ended.status, ended.lines), (0, ["[1] got it"]))

    def test_others_have_time_to_say_what_they_know(self):
        os.mkfifo(self.folder / "fifo")
        # Process 1 holds the fifo open until it dies: process 0 notices its end.
        script = (
            "if [ $MESHPOST_PROCESS = 1 ]; then exec 3>fifo; kill -9 $$; fi;"
            "read x <fifo; echo peer lost >&2; exit 5"
        )
        ended = self.shell(2, script, cwd=self.folder)
        self.assertEqual(ended.status, 128 + 9)
        self.assertIn("[0] peer lost", ended.err)
        self.assertNotIn("SIGTERM", ended.err)

    def test_who_ignores_sigterm_is_killed(self):
        script = "trap '' TERM; test $MESHPOST_PROCESS = 0 || { sleep 1000; exit; }; exit 4"
        ended = self.shell(2, script)
        self.assertEqual(ended.status, 4)
        self.assertIn("SIGKILL to process 1, 3 s after SIGTERM", ended.err)

    def test_last_words_come_before_what_is_said_of_the_end(self):
        ended = self.shell(1, "echo last words >&2; exit 1")
        self.assertRegex(ended.err, r"^\[0\] last words\nmeshpost-run: process 0 .* status 1\n$")

    def test_what_processes_leave_running_is_ended(self):
        ended = self.shell(2, "sleep 1000 & exit 0")
        self.assertEqual(ended.status, 0)
        self.assertIn("ended programs that the processes had started and left running", ended.err)
        quiet = self.shell(2, "sleep 1000 >/dev/null 2>&1 & exit 0")
        self.assertEqual((quiet.status, quiet.err), (0, ""))

    def test_timeout_ends_the_job(self):
        ended = self.shell(2, WAITS, "--timeout", "0.3")
        self.assertEqual(ended.status, 124)
        self.assertIn("the job ran for the 0.3 s of --timeout; ending processes 0, 1", ended.err)

    def test_a_job_that_ends_sooner_has_no_timeout(self):
        self.assertEqual(self.shell(2, "exit 0", "--timeout", "50").status, 0)


class Signals(LaunchCase):
    def test_a_signal_is_passed_on_to_all(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            job = self.start("-n", "3", "sh", "-c", WAITS)
            self.read_lines(job, 3)
            job.send_signal(number)
            ended = self.finish(job)
            self.assertEqual(ended.status, 128 + number)
            self.assertIn(f"{number.name} is passed on to processes 0-2", ended.err)
            self.assertNotIn("was killed", ended.err)

    def test_a_job_may_end_well_after_a_signal(self):
        script = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        job = self.start("-n", "2", "sh", "-c", script)
        self.read_lines(job, 2)
        job.send_signal(signal.SIGTERM)
        ended = self.finish(job)
        self.assertEqual((ended.status, sorted(ended.lines)), (0, ["[0] saved", "[1] saved"]))

    def test_the_same_signal_again_kills(self):
        script = "trap 'echo no' INT; echo ready; while :; do sleep 0.05; done"
        job = self.start("-n", "2", "sh", "-c", script)
        self.read_lines(job, 2)
        job.send_signal(signal.SIGINT)
        self.assertEqual(self.read_lines(job, 2), ["[0] no", "[1] no"])
        job.send_signal(signal.SIGINT)
        ended = self.finish(job)
        self.assertEqual(ended.status, 128 + signal.SIGINT)
        self.assertIn("SIGINT again: killed processes 0, 1", ended.err)

    def test_a_stopped_job_goes_on(self):
        job = self.start("-n", "2", "sh", "-c", WAITS)
        self.read_lines(job, 2)
        job.send_signal(signal.SIGTSTP)
        self.assertTrue(os.WIFSTOPPED(os.waitpid(job.pid, os.WUNTRACED)[1]))
        job.send_signal(signal.SIGTERM)  # which only processes that go on will notice
        job.send_signal(signal.SIGCONT)
        self.assertEqual(self.finish(job).status, 128 + signal.SIGTERM)

    def test_killing_the_launcher_leaves_nothing(self):
        job = self.start("-n", "4", "sh", "-c", WAITS)
        self.read_lines(job, 4)
        job.kill()
        job.wait()
        self.assert_nothing_remains()

    def test_no_way_to_end_leaves_files_in_shared_memory(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with self.subTest(number.name):
                job = self.start("-n", "2", "--no-label", sys.executable, "-c", HOLDS)
                files = self.read_lines(job, 2)
                self.assertTrue(all(os.path.exists(file) for file in files), files)
                job.send_signal(number)
                job.wait(TIMEOUT)
                self.assert_gone(files, TIMEOUT if number == signal.SIGKILL else 0)

    def test_files_in_shared_memory_of_living_processes_stay(self):
        other = self.start("-n", "1", "--no-label", sys.executable, "-c", HOLDS)
        files = self.read_lines(other, 1)
        self.assertEqual(self.shell(1, "exit 0").status, 0)
        self.assertTrue(os.path.exists(files[0]))
        other.terminate()
        other.wait(TIMEOUT)
        self.assert_gone(files, 0)

    def test_a_signal_ends_a_job_whose_output_nobody_reads(self):
        job = self.start("-n", "2", "yes")
        self.read_lines(job, 1)  # and no more: its pipe is soon full
        job.send_signal(signal.SIGTERM)
        # It ends both. Their output is still not read, and the job waits for that.
        while b"passed on" not in job.stderr.readline():
            continue
        while job.poll() is None:
            job.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)
        self.assert_nothing_remains(0)


class Refused(LaunchCase):
    def refused(self, status: int, message: str, *arguments: str, **more) -> None:
        ended = self.job(*arguments, **more)
        self.assertEqual((ended.status, ended.out), (status, ""))
        self.assertRegex(ended.err, rf"^meshpost-run: {message}")
        self.assertEqual(ended.err.count("\n"), 1)

    def test_programs_that_are_not_there(self):
        self.refused(127, "start 'no-such': no folder of PATH has it; ", "-n", "4", "no-such")
        self.refused(127, "start './no-such': there is no such file; ", "-n", "4", "./no-such")
        script = self.folder / "script"
        script.write_text("#!/no/such/shell\n")
        script.chmod(0o755)
        self.refused(127, f"start '{script}': the interpreter that it names does not", str(script))

    def test_programs_that_may_not_be_run(self):
        plain = self.folder / "plain"
        plain.write_text("")
        self.refused(126, f"start '{plain}': it may not be executed; chmod", "-n", "4", str(plain))
        self.refused(126, f"start '{self.folder}': it is a folder; name", str(self.folder))

    def test_wrong_arguments(self):
        for arguments, message in (
            ("", "read the command line: it names no program; write it behind"),
            ("-n 4", "read the command line: it names no program; write it behind"),
            ("-n 0 true", "read -n: '0' is not a number of processes; give .* from 1 to 512"),
            ("-n 513 true", "read -n: '513' is not a number of processes; give .* from 1 to 512"),
            ("-n -3 true", "read -n: '-3' is not a number of processes"),
            ("-n 2x true", "read -n: '2x' is not a number of processes"),
            ("-n", "read the command line: -n.* see meshpost-run --help"),
            ("--bogus true", "read the command line: .*--bogus; see meshpost-run --help"),
            ("-n 2 --nodes 3 true", "read --nodes: 3 nodes are more than the 2 processes of -n"),
            ("--nodes 2 true", "read --nodes: 2 nodes are more than the one process of -n"),
            ("--nodes 0 true", "read --nodes: '0' is not a number of nodes"),
            ("--timeout 0 true", "read --timeout: '0' is not a time; give seconds, more than 0"),
            ("--timeout soon true", "read --timeout: 'soon' is not a time"),
            ("--timeout nan true", "read --timeout: 'nan' is not a time"),
            ("--env A true", "read --env: 'A' sets no variable; write it as NAME=VALUE"),
            ("--env =A true", "read --env: '=A' sets no variable"),
            ("--env MESHPOST_SECRET=1 true", "read --env: MESHPOST_SECRET is set by meshpost-run"),
            ("--wdir /tmp true", "read --wdir: processes start in the folder of meshpost-run; cd"),
            (
                "-n 2 --hosts a,b true",
                "read --hosts: .* this host only; .* by mpirun, mpiexec, srun",
            ),
            ("-np 4 true", "read -np: .* calls the number of processes -n; .* meshpost-run -n 4 "),
            ("-H a,b true", "read -H: .* this host only; .* mpirun, mpiexec, srun or meshpost-o"),
            ("--host a:2 true", "read --host: .* this host only"),
            ("--ssh=rsh true", "read --ssh: meshpost-run starts processes of this host only"),
            ("-x A true", "read -x: all processes have the variables that are set here; leave"),
            ("--logs /dev/null/x true", "make the folder /dev/null/x of --logs: Not a directory"),
        ):
            with self.subTest(arguments):
                self.refused(2, message, *arguments.split())

    def test_help_has_examples(self):
        ended = self.job("--help")
        self.assertEqual(ended.status, 0)
        self.assertIn("Examples:\n  meshpost-run -n 4 ./ring", ended.out)

    @unittest.skipIf("undefined" in SANITIZERS, "the sanitizer itself needs a descriptor then")
    def test_too_few_open_files_end_what_was_started(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))

        ended = self.job("-n", "100", "sh", "-c", WAITS, preexec_fn=limit)
        self.assertEqual(ended.status, 1)
        self.assertRegex(ended.err, r"start process (\d+) of 100: pipe: .*; raise ulimit -n")
        self.assertRegex(ended.err, r"ending processes 0(-|, )\d+, which were started")

    @unittest.skipIf(os.getuid(), "only root can become a user who has no other process")
    def test_too_few_processes_end_what_was_started(self):
        user = 50_000 + os.getpid() % 10_000
        if subprocess.run([BINARY, "--help"], user=user, capture_output=True).returncode:
            self.skipTest("the program lies where other users can't run it")

        def limit():
            resource.setrlimit(resource.RLIMIT_NPROC, (6, 6))

        # Python sets the user after preexec_fn: the limit counts for that user.
        ended = self.job("-n", "50", "sleep", "1000", preexec_fn=limit, user=user)
        self.assertEqual(ended.status, 1)
        self.assertRegex(ended.err, r"start process \d of 50: fork: .*\(ulimit -u\)")
        self.assertRegex(ended.err, r"ending processes 0-\d, which were started")


if __name__ == "__main__":
    unittest.main()
