"""Tests apps/diffusion in several processes: the bits of its result, and its end."""

import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from launch_case import TIMEOUT, LaunchCase

PROGRAM = os.environ.get("MESHPOST_DIFFUSION_BINARY")
FIELD = "random:2x97x31:7"


@unittest.skipUnless(PROGRAM, "ctest runs these, with the program built")
class DiffusionJobs(LaunchCase):
    def result(self, name: str, *before: str, devices: str, more=()):
        """Runs the program behind `before`. Returns its result's bytes, its report and output."""
        out, report = self.folder / f"{name}.npy", self.folder / f"{name}.json"
        command = [*before, PROGRAM, "--input", FIELD, "--iterations", "25", "--devices", devices]
        command += ["--ranks", "5", "--output", str(out), "--json", str(report), *more]
        if before:
            ended = self.job(*command)
            self.assertEqual(ended.status, 0, ended.err)
            said = ended.out
        else:
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return out.read_bytes(), json.loads(report.read_text()), said

    def wait_until_busy(self, pid: str) -> None:
        """Waits until the process has used so much of a core that it must be computing."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
            if (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") > 0.5:
                return
            time.sleep(0.02)
        self.fail(f"process {pid} computes nothing")

    def test_the_result_is_that_of_one_process_to_the_bit(self):
        alone, report, _ = self.result("alone", devices="cpu:4")
        self.assertEqual((report["processes"], report["device_count"]), (1, 4))
        for processes, devices in ((2, "cpu:2"), (4, "cpu:1")):
            with self.subTest(processes=processes):
                bits, found, said = self.result(
                    f"of {processes}", "-n", str(processes), devices=devices
                )
                self.assertEqual(bits, alone)
                self.assertIs(found["bit_identical"], True)
                self.assertEqual((found["processes"], found["device_count"]), (processes, 4))
                for key in ("ranks", "owners", "exchanged_bytes", "shape"):
                    self.assertEqual(found[key], report[key])
                self.assertIn(f"[0] processes   {processes}, with 4 devices", said)
                self.assertNotIn("[1]", said)

    def test_a_process_without_devices_takes_part(self):
        script = f'test $MESHPOST_PROCESS != 0 || MESHPOST_DEVICES=none; exec "{PROGRAM}" "$@"'
        given = ["--input", FIELD, "--iterations", "9"]
        variables = {**os.environ, "MESHPOST_DEVICES": "cpu:2", "MESHPOST_RANKS": "3"}
        ended = self.job("-n", "3", "sh", "-c", script, "sh", *given, env=variables)
        self.assertEqual(ended.status, 0, ended.err)
        self.assertIn("[0] processes   3, with 4 devices", ended.out)
        self.assertIn("equal to the bit", ended.out)

    def test_each_process_records_its_own_timeline(self):
        self.result("t", "-n", "2", devices="cpu:1", more=["--trace", f"{self.folder}/t.trace"])
        for process in range(2):
            events = json.loads((self.folder / f"t-{process}.trace").read_text())["traceEvents"]
            rows = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
            self.assertEqual(rows, {(process, 5 * process + rank) for rank in range(5)})

    def test_bad_input_ends_the_job(self):
        for wrong, status, text in (
            (["--input", "missing.npy"], 1, "missing.npy: it can't be opened"),
            (["--input", FIELD, "--ranks", "100000"], 2, "100000 ranks a device"),
            (["--input", FIELD, "--devices", "gpu:1"], 2, "gpu"),
        ):
            with self.subTest(text):
                ended = self.job("-n", "3", PROGRAM, *wrong)
                self.assertEqual(ended.status, status, ended.err)
                self.assertIn(text, ended.err)
                self.assertEqual(ended.out, "")

    def test_fields_that_differ_end_the_job(self):
        script = f'exec "{PROGRAM}" --devices cpu:1 --input random:1x40x4$MESHPOST_PROCESS:1'
        ended = self.shell(2, script)
        self.assertEqual(ended.status, 1, ended.err)
        self.assertIn("let all processes of the job make the same calls", ended.err)

    def test_when_a_process_is_killed_all_others_name_it(self):
        options = "--devices cpu:1 --ranks 4 --iterations 100000000 --no-check --progress always"
        script = f'echo $$; exec "{PROGRAM}" --input random:2x400x300:1 {options}'
        job = self.start("-n", "3", "sh", "-c", script)
        pids = dict(line.split() for line in self.read_lines(job, 3))
        self.wait_until_busy(pids["[1]"])
        os.kill(int(pids["[1]"]), signal.SIGKILL)
        began = time.monotonic()
        ended = self.finish(job)
        self.assertLess(time.monotonic() - began, TIMEOUT / 2)
        self.assertEqual(ended.status, 128 + signal.SIGKILL)
        self.assertIn(f"process 1 (pid {pids['[1]']}) was killed by signal 9", ended.err)
        for process in (0, 2):
            named = rf"(?m)^\[{process}\] diffusion: .*process 1 \(.*pid {pids['[1]']}\) is gone"
            self.assertRegex(ended.err, named)
        self.assertIn("[peer lost]", ended.err)


if __name__ == "__main__":
    unittest.main()
