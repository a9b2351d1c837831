"""Tests which commands are found in documents, and that a wrong one is reported."""

import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_commands

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import FolderCase

DOCUMENT = """# Title

    ./run demo    # comment
    A=1 build/cpu/x --option \\
        --more

Text

    lap = 4 u - u(i-1)

<!-- not run: needs GPUs -->
    ./run app x --devices cuda

- a list
    ./goes on

```sh
./run help
```

<!-- from: x.sh -->
```sh
./is quoted
```

```cpp

    ./is code
```
"""


def found(text: str) -> list[tuple[str, str, str]]:
    return [(one.place, one.text, one.why_not) for one in check_commands.commands("D.md", text)]


class Finding(unittest.TestCase):
    def test_commands_stand_in_indented_and_shell_blocks(self):
        expected = [
            ("D.md:3", "./run demo    # comment", ""),
            ("D.md:4", "A=1 build/cpu/x --option     --more", ""),
            ("D.md:12", "./run app x --devices cuda", "needs GPUs"),
            ("D.md:18", "./run help", ""),
        ]
        self.assertEqual(found(DOCUMENT), expected)

    def test_a_mark_wants_a_reason_and_commands(self):
        for text in ("<!-- not run: -->\n    ./run x\n", "<!-- not run: why -->\n\ntext\n"):
            with self.assertRaisesRegex(check_commands.Wrong, "D.md:1: error"):
                found(text)

    def test_what_is_no_command_among_commands_is_told(self):
        with self.assertRaisesRegex(check_commands.Wrong, "D.md:3: error: 'ls'"):
            found("x\n\n    ./run x\n    ls\n".replace("x\n\n", "\n", 1))

    def test_a_mark_holds_for_one_block(self):
        text = "<!-- not run: why -->\n    ./run a\n    ./run b\n\ntext\n\n    ./run c\n"
        self.assertEqual([why for _, _, why in found(text)], ["why", "why", ""])

    def test_the_documents_can_be_read_and_few_commands_are_not_run(self):
        root = Path(check_commands.__file__).resolve().parent.parent
        shown = [
            command
            for file in check_commands.documents(root)
            for command in check_commands.commands(str(file), file.read_text())
        ]
        unrun = {command.text for command in shown if command.why_not}
        self.assertGreater(len({command.text for command in shown} - unrun), 25)
        self.assertLess(len(unrun), 33)


class Running(FolderCase):
    def run_documents(self, text: str) -> tuple[int, str]:
        (self.folder / "README.md").write_text(text)
        for name in ("tools", "build", "apps", ".venv"):
            (self.folder / name).mkdir(exist_ok=True)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = check_commands.main([], self.folder)
        return status, said.getvalue()

    def test_every_command_runs_once_and_one_that_fails_is_named(self):
        (self.folder / "run").write_text('#!/bin/sh\necho "given $1" >>"${0%/*}/log"; exit "$1"\n')
        (self.folder / "run").chmod(0o755)
        text = "\n    ./run 0\n    ./run 0    # again\n    ./run 3\n\n"
        text += "<!-- not run: why -->\n    ./run 4\n"
        status, said = self.run_documents(text)
        self.assertEqual(status, 1, said)
        self.assertIn("README.md:4: error: ./run 3", said)
        self.assertIn("status 3", said)
        self.assertIn("2 commands run, 1 failed; 1 not run", said)

    def test_commands_that_succeed_leave_status_0(self):
        (self.folder / "run").write_text("#!/bin/sh\ntest $MESHPOST_BUILD = 0\n")
        (self.folder / "run").chmod(0o755)
        status, said = self.run_documents("\n    ./run x\n")
        self.assertEqual(status, 0, said)


if __name__ == "__main__":
    unittest.main()
