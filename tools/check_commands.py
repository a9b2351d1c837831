#!/usr/bin/env python3
"""Runs every command that the documents show, as it is written.

usage: check_commands.py [--list] [DOCUMENT...]

Commands are the lines of indented blocks and of ```sh blocks that begin with a program of the
project or of its build. A block behind the line `<!-- not run: REASON -->` is not run. A block that
quotes a file (`<!-- from: PATH -->`) holds no commands. Each command must end with status 0 within
LIMIT seconds.

The programs must have been built in build/cpu; nothing is built or installed. meshpost-run and
meshpost-topo, which documents show as installed, are those of build/cpu, and so is ./ring.
--list prints the commands and the reasons why others are not run.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

LIMIT = 120  # seconds for one command; a machine may be busy
AT_A_TIME = 2  # documents
PRESET = "cpu"
# Beginnings of commands; other indented lines are formulas or programs.
COMMAND = re.compile(
    r"(?:[A-Z_]+=\S* +)*"
    r"(?:\\$|\./|build/|tests/|tools/|\.venv/|meshpost-"
    r"|(?:cmake|ctest|export|mpiexec|mpirun|pip|python3?|srun|sudo|umask)\s)"
)
NOT_RUN = re.compile(r"<!-- not run: *(.*?) *-->")
INSTALLED = {"meshpost-run": "apps/launch/launch", "meshpost-topo": "apps/topo/topo"}
IN_FOLDER = {"ring": "examples/ring"}


class Wrong(Exception):
    """A document that can't be read as meant: names the place and the remedy."""


@dataclasses.dataclass(frozen=True)
class Command:
    place: str  # "README.md:16"
    text: str
    why_not: str = ""  # empty: to be run


def blocks(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """The blocks of a document that may hold commands: first line's number, kind, lines.

    Kinds: "indented", "sh"; also "mark" for an HTML comment, which describes the next block.
    """
    lines = text.split("\n")
    fence, begin, found, after_blank = "", 0, [], True
    kind = ""
    for number, line in enumerate([*lines, ""], 1):
        if fence:
            if line.strip() == fence:
                if kind == "sh":
                    yield begin, kind, found
                elif kind != "indented":
                    yield begin, "other", found
                fence, found = "", []
            else:
                found.append(line)
            continue
        if found and not line.startswith("    "):
            yield begin, "indented", found
            found = []
        if match := re.match(r"(```+)(\w*)", line):
            fence, begin = match[1], number + 1
            kind = "sh" if match[2] in ("sh", "bash", "console") else "other"
        elif line.startswith("<!-- "):
            yield number, "mark", [line]
        elif line.startswith("    ") and (after_blank or found):
            begin = begin if found else number
            found.append(line[4:])
        after_blank = not line.strip() or line.startswith("<!-- ")


def commands(path: str, text: str) -> Iterator[Command]:
    """The commands that a document shows. Raises Wrong for a mark that marks nothing."""
    why_not, quoted, marked_at = "", False, 0
    for number, kind, lines in blocks(text):
        if kind == "mark":
            if match := NOT_RUN.search(lines[0]):
                if not match[1]:
                    raise Wrong(f"{path}:{number}: error: a mark without a reason; write why")
                if why_not:
                    raise Wrong(f"{path}:{marked_at}: error: no commands follow; remove the mark")
                why_not, marked_at = match[1], number
            elif lines[0].startswith("<!-- from:"):
                quoted = True
            continue
        joined, place = "", number
        is_commands = not quoted and kind != "other" and COMMAND.match(lines[0]) is not None
        quoted = False
        if not is_commands:
            continue
        for offset, line in enumerate(lines):
            if not joined:
                place = number + offset
            if line.endswith("\\"):
                joined += line[:-1]
                continue
            joined += line
            if not COMMAND.match(joined):
                raise Wrong(
                    f"{path}:{place}: error: {joined!r} is among commands but is none; "
                    "move it, or add it to tools/check_commands.py"
                )
            yield Command(f"{path}:{place}", joined.strip(), why_not)
            joined = ""
        why_not = ""
    if why_not:
        raise Wrong(f"{path}:{marked_at}: error: no commands follow; remove the mark")


def documents(root: Path) -> list[Path]:
    """The documents whose commands are run."""
    found = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("apps/*/README.md")]
    found += [root / "bench/compare/README.md", root / "tests/README.md", *root.glob("docs/*.md")]
    found += [*root.glob("examples/README.md"), *root.glob("src/*/README.md")]
    return sorted(file for file in found if file.exists())


def environment(folder: Path) -> dict[str, str]:
    """Environment of commands: the path of programs, and ./run's settings to use existing
    builds."""
    tools = folder / "bin"
    return os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "MESHPOST_PRESET": PRESET,
        "MESHPOST_BUILD": "0",
        "MESHPOST_OFFLINE": "1",
    }


def prepare(root: Path, folder: Path) -> None:
    """Makes a folder like the checkout, with programs at the paths that documents use."""
    (folder / "bin").mkdir()
    for place, names in ((folder / "bin", INSTALLED), (folder, IN_FOLDER)):
        for name, program in names.items():
            (place / name).symlink_to(root / "build" / PRESET / program)
    for name in ("run", "tests", "tools", "build", "apps", ".venv"):
        (folder / name).symlink_to(root / name)


def run(command: Command, folder: Path, variables: dict[str, str]) -> tuple[float, str]:
    """Runs a command. Returns its seconds, and the error or nothing."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            ["bash", "-euc", command.text],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status = child.wait(LIMIT)
            wrong = f"it ended with status {status}" if status else ""
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            wrong = f"it took longer than {LIMIT} s"
        said.seek(0)
        tail = said.read().decode(errors="replace").splitlines()[-20:]
    if wrong:
        first = f"{command.place}: error: {command.text}\n  {wrong}; its last words:"
        wrong = "\n".join([first, *tail])
    return time.monotonic() - began, wrong


def application(words: str) -> str:
    """The application that a command runs. The command owns the application's files in out/."""
    match = re.search(r"\./run app (\w+)", words)
    return match[1] if match else words


def run_all(shown: list[Command], root: Path) -> tuple[int, int]:
    """Runs each different command once. Returns their number and the number of failures.

    Commands of a document run one after the other. Two documents run at a time, but no application
    runs twice at a time.
    """
    documents: dict[str, list[tuple[Command, str]]] = {}
    seen = set()
    for command in shown:
        words = " ".join(shlex.split(command.text, comments=True))
        if words not in seen:
            documents.setdefault(command.place.partition(":")[0], []).append((command, words))
        seen.add(words)
    locks = {name: threading.Lock() for name in map(application, seen)}
    failures = []
    with tempfile.TemporaryDirectory(prefix="commands-") as name:
        folder = Path(name)
        prepare(root, folder)
        variables = environment(folder)

        def run_document(commands_of_one: list[tuple[Command, str]]) -> None:
            for command, words in commands_of_one:
                with locks[application(words)]:
                    seconds, wrong = run(command, folder, variables)
                lines = [f"{seconds:5.1f} s  {words}"] + [wrong] * bool(wrong)
                print("\n".join(lines), flush=True)
                if wrong:
                    failures.append(command)

        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(run_document, documents.values()))
    return len(seen), len(failures)


def main(arguments: list[str] | None = None, root: Path | None = None) -> int:
    """The program; returns its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    root = root or Path(__file__).resolve().parent.parent
    named = [root / word for word in given if word != "--list"]
    try:
        shown = [
            command
            for file in named or documents(root)
            for command in commands(str(file.relative_to(root)), file.read_text("utf-8"))
        ]
    except Wrong as wrong:
        print(wrong)
        return 1
    if "--list" in given:
        for command in shown:
            print(f"{command.place}: {command.text}")
            if command.why_not:
                print(f"    not run: {command.why_not}")
        return 0
    count, failed = run_all([command for command in shown if not command.why_not], root)
    unrun = sum(bool(command.why_not) for command in shown)
    print(f"{count} commands run, {failed} failed; {unrun} not run, as their documents say")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
