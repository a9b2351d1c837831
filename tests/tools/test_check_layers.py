"""Plants violations in a small tree of its own and reads what check_layers says about them."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers

ONCE = "#pragma once\n"


def findings(files: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return [str(finding) for finding in check_layers.check(Path(folder))]


class Order(unittest.TestCase):
    def assert_clean(self, files: dict[str, str]):
        self.assertEqual(findings(files), [])

    def assert_one(self, files: dict[str, str], *expected: str):
        found = findings(files)
        self.assertEqual(len(found), 1, found)
        for text in expected:
            self.assertIn(text, found[0])

    def test_a_part_may_include_itself_and_earlier_parts(self):
        self.assert_clean(
            {
                "include/meshpost/base/error.hpp": ONCE,
                "include/meshpost/rma/window.hpp": ONCE + "#include <meshpost/base/error.hpp>\n",
                "src/rma/lane.hpp": ONCE + "#include <meshpost/rma/window.hpp>\n",
                "src/rma/lane.cpp": '#include "lane.hpp"\n#include "rma/lane.hpp"\n',
            }
        )

    def test_a_later_part_is_named_with_line_and_remedy(self):
        self.assert_one(
            {
                "include/meshpost/base/error.hpp": ONCE + "\n#include <meshpost/rma/window.hpp>\n",
                "include/meshpost/rma/window.hpp": ONCE,
            },
            "include/meshpost/base/error.hpp:3: error: `base` may not include",
            "later part `rma`; move what is shared",
        )

    def test_a_later_part_is_recognised_by_name_before_its_header_exists(self):
        self.assert_one({"src/net/wire.cpp": "#include <meshpost/copy/route.hpp>\n"}, "`copy`")

    def test_private_headers_obey_the_same_order(self):
        self.assert_one(
            {"src/device/fiber.cpp": '#include "trace/log.hpp"\n', "src/trace/log.hpp": ONCE},
            "src/device/fiber.cpp:1: error: `device` may not reach into the later part `trace`",
        )

    def test_a_system_header_in_a_folder_named_like_a_part_is_no_part(self):
        self.assert_clean({"src/base/address.cpp": "#include <net/if.h>\n"})

    def test_only_the_umbrella_header_may_include_everything(self):
        umbrella = ONCE + "#include <meshpost/rma/window.hpp>\n"
        files = {
            "include/meshpost/meshpost.hpp": umbrella,
            "include/meshpost/rma/window.hpp": ONCE,
        }
        self.assert_clean(files)
        user = {"src/array/grid.cpp": "#include <meshpost/meshpost.hpp>\n"}
        self.assert_one(files | user, "src/array/grid.cpp:1", "umbrella header")

    def test_a_file_outside_the_parts_is_told_which_parts_there_are(self):
        self.assert_one({"src/misc/util.cpp": "\n"}, "src/misc/util.cpp:1", "base, device, trace")
        self.assert_one({"include/meshpost/util.hpp": ONCE}, "belongs to no part")

    def test_a_public_header_may_not_include_a_private_one(self):
        self.assert_one(
            {
                "include/meshpost/rma/window.hpp": ONCE + '#include "rma/lane.hpp"\n',
                "src/rma/lane.hpp": ONCE,
            },
            "include/meshpost/rma/window.hpp:2: error: public header includes private src/rma/lane",
        )

    def test_tests_and_benchmarks_may_reach_into_their_own_part_and_earlier_ones(self):
        private = {"src/device/fiber.hpp": ONCE, "src/rma/lane.hpp": ONCE}
        both = '#include "device/fiber.hpp"\n#include "../../src/rma/lane.hpp"\n'
        self.assert_clean(private | {"tests/rma/lane_test.cpp": both})
        self.assert_one(private | {"tests/device/fiber_test.cpp": both}, "fiber_test.cpp:2")
        self.assert_clean(private | {"bench/rma/lane.cpp": both})
        self.assert_one(private | {"bench/device/fiber.cpp": both}, "fiber.cpp:2")
        self.assert_one(
            {"src/rma/lane.hpp": ONCE, "tests/system/all_test.cpp": '#include "rma/lane.hpp"\n'},
            "tests/ includes private src/rma/lane.hpp; use public headers only",
        )

    def test_programs_include_public_headers_and_their_own_only(self):
        public = {"include/meshpost/rma/window.hpp": ONCE, "src/rma/lane.hpp": ONCE}
        main = '#include "solve.hpp"\n#include <meshpost/rma/window.hpp>\n'
        app = {"apps/heat/solve.hpp": ONCE, "apps/heat/heat.cpp": main}
        self.assert_clean(public | app)
        for folder in ("apps", "bench", "examples/01_ring"):
            path = f"{folder}/main.cpp"
            self.assert_one(
                public | {path: "#include <rma/lane.hpp>\n"}, f"{path}:1", "private src/rma/lane"
            )

    def test_comments_and_raw_strings_include_nothing(self):
        include = "#include <meshpost/rma/window.hpp>"
        text = f'// {include}\n/*\n{include}\n*/\nauto s = R"cpp(\n{include}\n)cpp";\n'
        self.assert_clean({"src/base/text.cpp": text})
        self.assert_one({"src/base/text.cpp": text + include + "\n"}, "src/base/text.cpp:8:")


class Files(unittest.TestCase):
    def test_every_include_cycle_is_reported_once_with_its_chain(self):
        def header(name: str) -> str:
            return ONCE + f"#include <meshpost/base/{name}.hpp>\n"

        found = findings(
            {
                "include/meshpost/base/a.hpp": header("b"),
                "include/meshpost/base/b.hpp": header("c"),
                "include/meshpost/base/c.hpp": header("a"),
                "include/meshpost/base/x.hpp": header("y"),
                "include/meshpost/base/y.hpp": header("x"),
            }
        )
        self.assertEqual(len(found), 2, found)
        self.assertRegex(found[0], r"/base/[abc]\.hpp:2: error: include cycle")
        self.assertRegex(found[1], r"x\.hpp -> \S+y\.hpp -> \S+x\.hpp|y\.hpp -> \S+x\.hpp -> \S+y")

    def test_a_header_may_close_with_definitions_from_beneath_it_that_include_it(self):
        back = ONCE + "#include <meshpost/base/a.hpp>\n"
        files = {"include/meshpost/base/cpu/a.hpp": back, "include/meshpost/base/a_impl.hpp": back}
        declaration, include = (
            "struct A {};\n",
            "#if 1\n#include <meshpost/base/cpu/a.hpp>\n#endif\n",
        )

        def with_header(text: str) -> list[str]:
            return findings(files | {"include/meshpost/base/a.hpp": ONCE + text})

        self.assertEqual(with_header(declaration + include + include), [])
        self.assertEqual(len(with_header(include + declaration)), 1)
        self.assertEqual(len(with_header(include)), 1)
        beside = "#include <meshpost/base/a_impl.hpp>\n"
        self.assertEqual(len(with_header(declaration + beside)), 1)

    def test_a_header_needs_pragma_once_and_a_source_does_not(self):
        found = findings({"include/meshpost/base/a.hpp": "\n", "src/base/a.cpp": "\n"})
        self.assertEqual(len(found), 1, found)
        self.assertIn("include/meshpost/base/a.hpp:1: error: header without", found[0])

    def test_only_device_names_kinds_of_devices(self):
        text = "\n" + 'bool const gpu = device.kind() == "cuda";  // or "cpu"\n'
        allowed = {"src/device/registry.cpp": text, "src/fabric/hwloc.cpp": text}
        elsewhere = {"tests/rma/a.cpp": text, "apps/gemm/a.cpp": text}
        words = {"src/rma/a.cpp": '// "cpu"\nauto const form = "cpu:4";\n'}
        self.assertEqual(findings(allowed | elsewhere | words), [])
        found = findings({"src/rma/a.cpp": text, "include/meshpost/rma/a.hpp": ONCE + text})
        self.assertEqual(len(found), 2, found)
        self.assertIn('a.cpp:2: error: "cuda" names a kind of device; ask for a property', found[1])
        self.assertIn("include/meshpost/rma/a.hpp:3: error", found[0])

    def test_long_files_warn_and_longer_ones_fail(self):
        self.assertEqual(findings({"src/base/a.cpp": "\n" * 300}), [])
        self.assertIn("warning: 301 lines", findings({"src/base/a.cpp": "\n" * 301})[0])
        self.assertIn("error: 401 lines", findings({"tools/a.sh": "\n" * 401})[0])


if __name__ == "__main__":
    unittest.main()
