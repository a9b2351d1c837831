"""Plants documents and sources in a small tree and reads what check_prose says about them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_prose

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

WORDS = {"parcel": "message", "bare count": "packed signal"}
LONG = "word " * 21


class CheckProse(FolderCase):
    def found(
        self,
        text: str,
        path: str = "docs/page.md",
        retired: dict | None = None,
        not_yet: tuple[str, ...] = (),
    ):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return check_prose.check(self.folder, retired or {}, WORDS, not_yet)

    def assert_one(self, findings: list[str], *expected: str):
        self.assertEqual(len(findings), 1, findings)
        for part in expected:
            self.assertIn(part, findings[0])

    def test_a_line_has_at_most_100_columns(self):
        self.assertEqual(self.found("x" * 100 + "\n"), [])
        self.assert_one(self.found(f"short\n{LONG}\n"), "docs/page.md:2: error: 105 columns")

    def test_tables_fenced_blocks_and_urls_may_be_longer(self):
        text = f"| {LONG} |\n\n```text\n{LONG}\n```\n\nSee https://example.org/{'x' * 100}\n"
        self.assertEqual(self.found(text), [])

    def test_behind_a_fenced_block_lines_count_again(self):
        self.assert_one(self.found(f"````text\n```\n{LONG}\n````\n{LONG}\n"), "page.md:5:")

    def test_a_retired_word_is_found_in_text_and_tables(self):
        self.assert_one(self.found("A Parcel is sent.\n"), "page.md:1:", "'Parcel'", "message")
        self.assert_one(self.found("| a | a parcel |\n"), "'parcel'")

    def test_a_retired_phrase_is_found_across_the_end_of_a_line(self):
        self.assert_one(self.found("This is a bare\ncount.\n"), "page.md:1:", "packed signal")

    def test_longer_words_are_others(self):
        self.assertEqual(self.found("Parcelling of parcel-like things.\n"), [])

    def test_code_spans_blocks_links_and_comments_may_quote_names(self):
        text = (
            "The file `parcel.hpp` and [it](src/parcel/x.md).\n\n    ./parcel\n\n"
            "```cpp\nParcel parcel;\n```\n<!-- not run: parcel -->\n"
        )
        self.assertEqual(self.found(text), [])

    def test_the_second_line_of_an_item_is_no_code_block(self):
        self.assert_one(self.found("1. An item\n    with a parcel\n"), "page.md:2:")

    def test_a_word_retired_from_code_is_found_as_part_of_a_name(self):
        for name in ("council", "council_round", "RunCouncil", "run_council", "COUNCIL"):
            findings = self.found(f"int {name};\n", "src/a.cpp", {"council": "detector"})
            self.assert_one(findings, "src/a.cpp:1:", "detector")
        self.assertEqual(self.found("int councillor;\n", "src/a.cpp", {"council": "detector"}), [])

    def test_a_word_retired_from_code_is_found_in_documents_code_spans_too(self):
        self.assert_one(self.found("Read `council.hpp`.\n", retired={"council": "x"}), "page.md:1:")

    def test_the_generated_reference_counts_as_code(self):
        self.assertEqual(self.found(f"A parcel. {LONG}\n", "docs/api.md"), [])
        self.assert_one(self.found("A parcel.\n", "docs/api.md", {"parcel": "x"}), "api.md:1:")

    def test_readmes_of_parts_are_documents(self):
        self.assert_one(self.found("A parcel.\n", "src/rma/via/README.md"), "README.md:1:")

    def test_no_sentence_of_a_comment_begins_with_a_free_relative(self):
        for sentence, begin in (
            ("Who sends is named.", "Who"),
            ("Whoever comes first, takes it.", "Whoever"),
            ("What is left is sent.", "What"),
            ("Whatever it is, it ends.", "Whatever"),
            ("That the host finds it rests on the bus.", "That the"),
            ("That all ranks wait is no deadlock.", "That all"),
        ):
            findings = self.found(f"int a;  // {sentence}\n", "src/a.cpp")
            self.assert_one(findings, "src/a.cpp:1:", f"'{begin}'", "its subject")
        self.assert_one(self.found("/// Whether it ended.\n", "src/a.cpp"), "'True if'")

    def test_plain_uses_of_these_words_are_fine(self):
        for sentence in (
            "What is it?",
            "That is slow. That needs no fence.",
            "That output has ended. That many are known.",
            "Says who sends, and what; whether it ends.",
            "Whole words. Whose is it? Thatched.",
            "A type of `What` is drawn.",
        ):
            self.assertEqual(self.found(f"// {sentence}\n", "src/a.cpp"), [])

    def test_a_sentence_within_a_comment_of_several_lines_is_found_at_its_line(self):
        text = "int a;\n  /// Sends all. It\n  /// ends. What is\n  /// left waits.\nint b;\n"
        self.assert_one(self.found(text, "src/a.cu"), "src/a.cu:3:")
        self.assert_one(self.found("/// One line\n///\n/// Who waits\n", "src/a.cu"), "a.cu:3:")
        self.assert_one(self.found("/* One.\n * What.\n */\n", "src/a.cu"), "src/a.cu:2:")

    def test_a_sentence_that_goes_on_in_the_next_line_begins_once(self):
        self.assertEqual(self.found("// It says\n// What it is.\n", "src/a.cpp"), [])
        self.assertEqual(self.found("int a;  // says\n        // What.\n", "src/a.cpp"), [])
        self.assert_one(self.found("int a;  // number\n// Who waits\n", "src/a.cpp"), "a.cpp:2:")

    def test_only_comments_of_cpp_and_cuda_sources_count(self):
        self.assertEqual(self.found('auto a = "// Who sends";\n', "src/a.cpp"), [])
        self.assertEqual(self.found('auto a = R"(\n// Who\n)";\n', "src/a.cpp"), [])
        self.assertEqual(self.found("# What it does.\n", "tools/a.py"), [])

    def test_folders_that_are_not_yet_rewritten_are_exempt(self):
        text = "// Who sends.\n"
        self.assertEqual(self.found(text, "src/rma/a.cpp", not_yet=("src/rma",)), [])
        findings = self.found(text, "src/rmax/a.cpp", not_yet=("src/rma",))
        self.assert_one(findings, "src/rmax/a.cpp:1:")


if __name__ == "__main__":
    unittest.main()
