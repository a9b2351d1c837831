"""Reads a compiler's report whose answers are known."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import kernel_cost

ENTRY = "_ZN8meshpost6detail9gpu_entryILb{}ENS_4cost4waitEEEvT0_NS_8RunStateE"
REPORT = f"""\
ptxas info    : Compiling entry function '{ENTRY.format(0)}' for 'sm_90'
ptxas info    : Function properties for {ENTRY.format(0)}
    192 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 93 registers, used 1 barriers, 192 bytes cumulative stack size
ptxas info    : Function properties for _ZNK8meshpost12CommandQueue4pollEv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '{ENTRY.format(1)}' for 'sm_90'
ptxas info    : Function properties for {ENTRY.format(1)}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1648 bytes smem
"""


class Costs(unittest.TestCase):
    def test_are_those_of_entries(self):
        names = ("operation", "lanes", "registers", "stack", "spills", "shared", "ranks")
        rows = [tuple(row[name] for name in names) for row in kernel_cost.costs(REPORT)]
        self.assertEqual(
            rows, [("wait", False, 93, 192, 8, 0, 2), ("wait", True, 40, 0, 0, 1648, 6)]
        )

    def test_a_warp_gets_registers_in_chunks(self):
        self.assertEqual([kernel_cost.ranks_of(n) for n in (32, 33, 40, 41, 255)], [8, 6, 6, 5, 1])


if __name__ == "__main__":
    unittest.main()
