"""Plants documents in a small tree of its own and reads what check_docs says about them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_docs

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

TABLE = "<!-- variables -->\n{}<!-- /variables -->\n"
ROWS = """\
| variable | meaning | default |
|---|---|---|
| `MESHPOST_A` | one thing | 3 |
| `MESHPOST_B` | another | empty |
"""
CONFIG = '      {"MESHPOST_A", "one thing", "3"},\n      {"MESHPOST_B", "another", ""},\n'
SOURCE = """\
int before;
  // [part]
  int one;

    int two;
  // [/part]
int after;
"""


class CheckDocs(FolderCase):
    def setUp(self):
        super().setUp()
        self.root = self.folder
        self.write("src/base/config.cpp", CONFIG)
        self.write("code.cpp", SOURCE)
        self.write("README.md", TABLE.format(ROWS))

    def write(self, path: str, text: str):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def found(self, text: str) -> list[str]:
        self.write("docs/page.md", text)
        return check_docs.check(self.root)

    def assert_one(self, text: str, *expected: str):
        findings = self.found(text)
        self.assertEqual(len(findings), 1, findings)
        for part in expected:
            self.assertIn(part, findings[0])

    def test_a_block_may_be_a_whole_file(self):
        self.assertEqual(self.found(f"<!-- from: code.cpp -->\n```cpp\n{SOURCE}```\n"), [])

    def test_readmes_of_folders_in_a_part_are_documents(self):
        self.write("src/rma/via/README.md", "[gone](gone.md)\n")
        findings = check_docs.check(self.root)
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("src/rma/via/README.md:1:", findings[0])

    def test_a_block_may_be_a_region_which_loses_its_indentation(self):
        block = "```cpp\nint one;\n\n  int two;\n```\n"
        self.assertEqual(self.found(f"<!-- from: code.cpp [part] -->\n{block}"), [])

    def test_a_block_that_differs_is_found_with_its_line(self):
        text = "\n\n<!-- from: code.cpp [part] -->\n```cpp\nint three;\n```\n"
        self.assert_one(text, "docs/page.md:3: error: the block differs from code.cpp", "--fix")

    def test_every_block_of_a_page_is_checked(self):
        wrong = "<!-- from: code.cpp [part] -->\n```cpp\nwrong\n```\n"
        self.assertEqual(len(self.found(wrong + "\ntext\n\n" + wrong)), 2)

    def test_a_file_or_region_that_is_gone_is_named(self):
        self.assert_one("<!-- from: gone.cpp -->\n```\n```\n", "there is no gone.cpp")
        self.assert_one("<!-- from: code.cpp [gone] -->\n```\n```\n", "no lines between [gone]")

    def test_a_mark_without_a_block_is_found(self):
        self.assert_one("<!-- from: code.cpp -->\ntext\n", "no fenced block follows")

    def test_unmarked_blocks_are_left_alone(self):
        self.assertEqual(self.found("```sh\n./run demo\n```\n"), [])

    def test_the_variables_are_those_of_the_library(self):
        self.assertEqual(self.found(TABLE.format(ROWS)), [])
        less = ROWS.replace("| `MESHPOST_B` | another | empty |\n", "")
        self.assert_one(TABLE.format(less), "docs/page.md:2: error: the table differs")

    def test_the_readme_must_have_the_table(self):
        self.write("README.md", "text\n")
        self.assertIn("no table of environment variables", check_docs.check(self.root)[0])

    def test_links_lead_to_files(self):
        self.assertEqual(
            self.found("[a](../code.cpp) [b](page.md#top) [c](https://x.org) [d](#e)"), []
        )
        self.assert_one("\n[a](gone.md)\n", "docs/page.md:2: error: the link to gone.md")

    def test_fixing_makes_a_page_clean_and_changes_nothing_else(self):
        old = "text\n<!-- from: code.cpp [part] -->\n```cpp\nold\n```\nmore\n" + TABLE.format(
            "old\n"
        )
        new = check_docs.fixed(self.root, old)
        self.assertEqual(self.found(new), [])
        self.assertTrue(new.startswith("text\n<!--") and "```\nmore\n" in new)


if __name__ == "__main__":
    unittest.main()
