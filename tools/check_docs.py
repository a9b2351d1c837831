#!/usr/bin/env python3
"""Checks that documents say what the repository says.

usage: check_docs.py [--fix] [ROOT]

A fenced block behind the line `<!-- from: PATH -->` must equal that file; behind
`<!-- from: PATH [NAME] -->`, the lines between `[NAME]` and `[/NAME]` in it (behind `//` or `#`).
The table between `<!-- variables -->` and `<!-- /variables -->` lists the environment variables of
src/base/config.cpp. Links to files of the repository must lead somewhere.
--fix rewrites blocks and table. Prints `path:line: error: what is wrong; what to do`.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

FROM = re.compile(
    r"^<!-- from: (?P<path>\S+)(?: \[(?P<name>[\w-]+)\])? -->\n+"
    r"(?P<fence>```+)(?P<language>\w*)\n(?P<block>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"^<!-- from: .*$", re.MULTILINE)
VARIABLES = re.compile(r"(?<=<!-- variables -->\n).*?(?=<!-- /variables -->)", re.DOTALL)
VARIABLE = re.compile(r'\{"(MESHPOST_\w+)",\s*((?:"[^"]*"\s*)+),\s*"([^"]*)"\},')
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
CONFIG = "src/base/config.cpp"


class Wrong(Exception):
    """A reference that can't be followed."""


def quoted(root: Path, path: str, name: str | None) -> str:
    """The text that a block from that place must have."""
    file = root / path
    if not file.is_file():
        raise Wrong(f"there is no {path}; correct the path")
    text = file.read_text(encoding="utf-8")
    if name is None:
        return text
    begin, end = (rf"^[ \t]*(?://|#) \[{slash}{re.escape(name)}\]\n" for slash in ("", "/"))
    region = re.search(rf"{begin}(.*?){end}", text, re.MULTILINE | re.DOTALL)
    if region is None:
        raise Wrong(f"{path} has no lines between [{name}] and [/{name}]; mark them")
    inner = re.sub(r"^[ \t]*(?://|#) \[/?[\w-]+\]\n", "", region[1], flags=re.MULTILINE)
    return textwrap.dedent(inner)


def variables_table(root: Path) -> str:
    """The table of environment variables, from the list that the library itself uses."""
    found = VARIABLE.findall((root / CONFIG).read_text(encoding="utf-8"))
    if not found:
        raise Wrong(f"found no variables in {CONFIG}; adapt check_docs.py to how it lists them")
    literal = re.compile(r'"([^"]*)"')
    rows = [
        f"| `{name}` | {''.join(literal.findall(meaning))} | {value or 'empty'} |"
        for name, meaning, value in found
    ]
    return "\n".join(["| variable | meaning | default |", "|---|---|---|", *rows]) + "\n"


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def check_blocks(root: Path, text: str) -> Iterator[tuple[int, str]]:
    blocks = {match.start(): match for match in FROM.finditer(text)}
    for mark in MARK.finditer(text):
        match = blocks.get(mark.start())
        if match is None:
            yield mark.start(), "no fenced block follows; put one there, with nothing between"
            continue
        try:
            expected = quoted(root, match["path"], match["name"])
        except Wrong as wrong:
            yield mark.start(), str(wrong)
            continue
        if match["block"] != expected:
            yield (
                mark.start(),
                f"the block differs from {match['path']}; run tools/check_docs.py --fix",
            )


def check_variables(root: Path, text: str) -> Iterator[tuple[int, str]]:
    table = VARIABLES.search(text)
    if table and table[0] != variables_table(root):
        yield table.start(), f"the table differs from {CONFIG}; run tools/check_docs.py --fix"


def check_links(file: Path, text: str) -> Iterator[tuple[int, str]]:
    prose = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    for link in LINK.finditer(prose):
        if not (file.parent / link[1]).exists():
            line = line_of(prose, link.start())  # lines are the text's, positions are not
            position = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
            yield position, f"the link to {link[1]} has no target; correct it"


def fixed(root: Path, text: str) -> str:
    def block(match: re.Match[str]) -> str:
        try:
            inside = quoted(root, match["path"], match["name"])
        except Wrong:
            return match[0]
        return match[0][: match.start("block") - match.start()] + inside + match["fence"]

    text = FROM.sub(block, text)
    return VARIABLES.sub(lambda _: variables_table(root), text)


def documents(root: Path) -> list[Path]:
    parts = [*root.glob("apps/*/README.md"), *root.glob("tests/**/README.md")]
    parts += [*root.glob("src/**/README.md"), *root.glob("include/meshpost/**/README.md")]
    named = [root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"]
    return [
        file for file in [*named, *sorted(root.glob("docs/*.md")), *sorted(parts)] if file.exists()
    ]


def check(root: Path) -> list[str]:
    findings = []
    for file in documents(root):
        text = file.read_text(encoding="utf-8")
        found = [
            *check_blocks(root, text),
            *check_variables(root, text),
            *check_links(file, text),
        ]
        for position, message in sorted(found):
            path = file.relative_to(root)
            findings.append(f"{path}:{line_of(text, position)}: error: {message}")
    readme = root / "README.md"
    if readme.exists() and not VARIABLES.search(readme.read_text(encoding="utf-8")):
        findings.append("README.md:1: error: no table of environment variables; mark its place")
    return findings


def main() -> int:
    arguments = sys.argv[1:]
    fix = "--fix" in arguments
    paths = [argument for argument in arguments if argument != "--fix"]
    root = Path(paths[0]) if paths else Path(__file__).resolve().parent.parent
    if fix:
        for file in documents(root):
            text = file.read_text(encoding="utf-8")
            if (new := fixed(root, text)) != text:
                file.write_text(new, encoding="utf-8")
                print(f"rewrote {file.relative_to(root)}")
    findings = check(root)
    print(*findings, sep="\n", end="\n" if findings else "")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
