"""Counts the remote puts of both dCUDA reductions of examples/02_dcuda, in their timelines."""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path

from folder_case import FolderCase

LAUNCH = os.environ.get("MESHPOST_LAUNCH_BINARY")
LISTING = os.environ.get("MESHPOST_REDUCTION")
BY_DEVICE = os.environ.get("MESHPOST_REDUCTION_BY_DEVICE")


def of_the_listing(size: int, ranks: int) -> tuple[int, int]:
    """Remote and local puts of a binomial tree over all ranks."""
    remote = local = 0
    for rank in range(1, size):
        step = rank & -rank  # the rank sends once, to rank - step
        crosses = rank // ranks != (rank - step) // ranks
        remote, local = remote + crosses, local + (not crosses)
    return remote, local


@unittest.skipUnless(LAUNCH and LISTING and BY_DEVICE, "the programs are named by ctest")
class Puts(FolderCase):
    def run_job(self, program: str, devices: int, ranks: int, *options: str):
        """Runs a program. Returns its sum, and its remote and local puts that notify."""
        trace = self.folder / "trace.json"
        for old in self.folder.glob("trace*.json"):
            old.unlink()
        variables = {"MESHPOST_DEVICES": "cpu:1", "MESHPOST_RANKS": str(ranks)}
        variables["MESHPOST_TRACE"] = str(trace)
        ended = subprocess.run(
            [LAUNCH, "--no-label", "-n", str(devices), *options, program],
            env=os.environ | variables,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn("unconsumed", ended.stderr)
        files = sorted(Path(self.folder).glob("trace*.json"))
        self.assertEqual(len(files), devices)
        remote = local = 0
        for file in files:
            written = json.loads(file.read_text())
            self.assertEqual(written["otherData"]["lost_events"], 0)
            for event in written["traceEvents"]:
                if event["name"] in ("put", "put_notify"):
                    crosses = event["tid"] // ranks != event["args"]["peer"] // ranks
                    remote, local = remote + crosses, local + (not crosses)
        return int(float(re.search(r"Sum = (\S+)", ended.stdout)[1])), remote, local

    def check(self, devices: int, ranks: int, *options: str):
        """Both programs: the listing's puts, and one for each further device."""
        _, remote, local = self.run_job(LISTING, devices, ranks, *options)
        self.assertEqual((remote, local), of_the_listing(devices * ranks, ranks))
        found, fewer, copies = self.run_job(BY_DEVICE, devices, ranks, *options)
        self.assertEqual((fewer, copies), (devices - 1, 0))
        count = devices * ranks * 128
        self.assertEqual(found, count * (count + 1) // 2)
        return remote, fewer

    def test_one_rank_a_device_puts_and_nothing_is_copied_on_a_device(self):
        self.assertEqual(self.check(4, 3), (6, 3))

    def test_with_a_power_of_two_of_ranks_the_listing_puts_no_more_to_other_devices(self):
        self.assertEqual(self.check(3, 4), (2, 2))

    def test_one_rank_a_device(self):
        self.assertEqual(self.check(3, 1), (2, 2))

    def test_one_device(self):
        self.assertEqual(self.check(1, 5), (0, 0))

    @unittest.skipUnless(os.environ.get("MESHPOST_TEST_NETWORK") == "1", "there is no engine")
    def test_a_device_on_each_of_two_nodes(self):
        self.assertEqual(self.check(2, 3, "--nodes", "2"), (2, 1))


if __name__ == "__main__":
    unittest.main()
