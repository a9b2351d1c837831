#!/usr/bin/env python3
"""Checks documents and comments: short lines, plain sentences, no word that the project gave up.

usage: check_prose.py [ROOT]

A line of a document has at most 100 columns, except rows of tables, fenced blocks and URLs.
RETIRED words occur nowhere, in code or documents; RETIRED_FROM_PROSE in no text of a document
(code spans and blocks may quote names that the code still has). docs/api.md is generated from
comments, so it counts as code. No sentence in a comment of a C++ or CUDA source begins with a free
relative clause, such as "Who sends" or "That it ends", unless it is a question.
Prints `path:line: error: what is wrong; what to do`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

COLUMNS = 100
CODE = ["include", "src", "tests", "bench", "apps", "examples", "tools", "cmake"]
SUFFIXES = {".hpp", ".h", ".cuh", ".cpp", ".cu", ".py", ".sh", ".cmake", ".txt"}
GENERATED = "docs/api.md"
CPP_SUFFIXES = {".hpp", ".h", ".cuh", ".cpp", ".cu"}
SELF = {"tools/check_prose.py", "tests/tools/test_check_prose.py"}  # which name the words

# A retired word and what to write instead. In code a word is found as part of a name, too:
# `council` in `council_round`, `Council` and `RunCouncil`. Text is compared without regard to case.
RETIRED: dict[str, str] = {
    "letter": "command",
    "letters": "commands",
    "mailbox": "command queue",
    "mailboxes": "command queues",
    "parcel": "message",
    "parcels": "messages",
    "council": "termination detector",
    "chair": "root",
    "gang": "cooperative launch",
    "gangs": "cooperative launches",
    "crew": "launch resources, grids",
    "crews": "launch resources, grids",
    "desk": "copy server",
    "desks": "copy servers",
    "courier": "progress thread",
    "wish": "request",
    "wishes": "requests",
    "door": "acceptor",
    "doors": "acceptors",
    "stranger": "unauthenticated peer",
    "strangers": "unauthenticated peers",
    "glance": "fast-path poll",
    "gate": "access epoch",
    "leftover": "unconsumed notification",
    "leftovers": "unconsumed notifications",
    "evidence": "run state",
    "story": "fault text",
    "stories": "fault texts",
    "patience": "deadline, timeout",
}
RETIRED_FROM_PROSE: dict[str, str] = {
    "post": "request",
    "posts": "requests",
    "posted": "requested",
    "bare count": "packed signal",
    "bare counts": "packed signals",
    "come to nothing": "fail",
    "comes to nothing": "fails",
    "came to nothing": "failed",
}

# Folders whose comments are not yet rewritten in plain words: sentences there may begin as they
# like. Remove an entry after its folder is rewritten.
NOT_YET: tuple[str, ...] = ()

# The beginning of a sentence whose subject is a clause. "That" alone is a plain subject ("That is
# slow.", "That output has ended."), so it must be followed by the subject of its clause.
FREE_RELATIVE = re.compile(
    r"(?:^|(?<=[.!?:;]\s)|(?<=[.!?:;]\s\s))"
    r"(?P<begin>Who|Whoever|What|Whatever|Whether"
    r"|That (?:the|a|an|all|any|both|each|every|it|its|no|nobody|somebody|some|their|there|these"
    r"|they|this|those|we))\b"
    r"(?P<rest>.*?(?:[.!?](?=\s|$)|$))",
    re.MULTILINE,
)
COMMENT = re.compile(
    r'//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/|R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


def documents(root: Path) -> list[Path]:
    found = [*root.glob("*.md"), *root.glob("docs/*.md")]
    for folder in CODE:
        found += (root / folder).rglob("*.md")
    return sorted(file for file in found if file.relative_to(root).as_posix() != GENERATED)


def sources(root: Path) -> list[Path]:
    files = [file for folder in CODE for file in (root / folder).rglob("*")]
    files += [root / "run", root / "CMakeLists.txt", root / GENERATED]
    named = {"run", Path(GENERATED).name}
    return sorted(
        file
        for file in files
        if file.is_file()
        and (file.suffix in SUFFIXES or file.name in named)
        and file.relative_to(root).as_posix() not in SELF
    )


def text_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Number, line, and whether it is text: not of a fenced or an indented block or a comment."""
    fence, blank, block = "", True, False
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"```+", line)
        if mark:
            fence = "" if fence == mark[0] else fence or mark[0]
        indented = line.startswith("    ")
        block = indented and (block or blank)
        yield number, line, not (fence or mark or block or line.startswith("<!--"))
        blank = not line.strip() or line.startswith("<!--")


def find_long_lines(text: str) -> Iterator[tuple[int, str]]:
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if mark := re.match(r"```+", line):
            fence = "" if fence == mark[0] else fence or mark[0]
        if len(line) > COLUMNS and not (fence or line.startswith("|") or "://" in line):
            yield number, f"{len(line)} columns, at most {COLUMNS}; wrap the line"


def find_retired_names(text: str, retired: dict[str, str]) -> Iterator[tuple[int, str]]:
    for word, instead in retired.items():
        part = rf"(?:(?<![A-Za-z])(?i:{word})|{word[0].upper()}{word[1:]})(?![a-z])"
        for match in re.finditer(part, text):
            line = text.count("\n", 0, match.start()) + 1
            yield line, f"`{match[0]}` is a retired word; write: {instead}"


def find_retired_words(text: str, retired: dict[str, str]) -> Iterator[tuple[int, str]]:
    # Blocks become empty lines and code spans a dash: a word may stand across a line's end.
    prose = "\n".join(line if is_text else "" for _, line, is_text in text_lines(text))
    prose = re.sub(r"`[^`]+`|\]\([^)]*\)", lambda span: "-" + "\n" * span[0].count("\n"), prose)
    for word, instead in retired.items():
        spaced = r"\s+".join(map(re.escape, word.split()))
        for match in re.finditer(rf"(?i)(?<![\w-]){spaced}(?![\w-])", prose):
            line = prose.count("\n", 0, match.start()) + 1
            yield line, f"'{' '.join(match[0].split())}' is a retired word; write: {instead}"


def comments(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of each comment of a C++ source. Adjacent lines at one column are one."""
    first, words, next_place = 0, "", (0, 0)
    for match in COMMENT.finditer(text):
        if match["line"] is None and match["block"] is None:
            continue  # a string or a character
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        number = text.count("\n", 0, match.start()) + 1
        if before.strip() or (number, len(before)) != next_place:
            if words:
                yield first, words
            first, words = number, ""
        words += re.sub(r"^[/!<]*", "", match["line"] if match["block"] is None else match["block"])
        words += "\n"
        next_place = (number + match[0].count("\n") + 1, len(before))
    if words:
        yield first, words


def find_free_relatives(text: str) -> Iterator[tuple[int, str]]:
    for first, comment in comments(text):
        prose = "\n".join(line.strip(" \t*") for line in comment.splitlines())
        prose = re.sub(r"`[^`]*`", lambda span: re.sub(r"[^\n]", "-", span[0]), prose)
        # One line a paragraph; lengths stay, so that positions give lines.
        for match in FREE_RELATIVE.finditer(re.sub(r"(?<!\n)\n(?!\n)", " ", prose)):
            if not match["rest"].endswith("?"):
                begin = match["begin"]
                remedy = "'True if'" if begin == "Whether" else "its subject"
                line = first + prose.count("\n", 0, match.start())
                yield line, f"a sentence begins with '{begin}'; begin it with {remedy}"


def check(
    root: Path,
    retired: dict[str, str] = RETIRED,
    retired_from_prose: dict[str, str] = RETIRED_FROM_PROSE,
    not_yet: tuple[str, ...] = NOT_YET,
) -> list[str]:
    findings = []

    def add(file: Path, found: Iterator[tuple[int, str]]) -> None:
        path = file.relative_to(root).as_posix()
        findings.extend(f"{path}:{line}: error: {message}" for line, message in sorted(found))

    for file in documents(root):
        text = file.read_text("utf-8")
        add(file, find_long_lines(text))
        add(file, find_retired_words(text, retired_from_prose))
        add(file, find_retired_names(text, retired))
    exempt = tuple(f"{folder}/" for folder in not_yet)
    for file in sources(root):
        text = file.read_text("utf-8")
        add(file, find_retired_names(text, retired))
        path = file.relative_to(root).as_posix()
        if file.suffix in CPP_SUFFIXES and not path.startswith(exempt):
            add(file, find_free_relatives(text))
    return findings


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    findings = check(root)
    print("\n".join(findings), end="\n" if findings else "")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
