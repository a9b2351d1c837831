#!/usr/bin/env python3
"""Checks the order of the parts: a part includes itself and parts above it, nothing below.

usage: check_layers.py [ROOT]

Also reports names of kinds of devices outside `device`, include cycles, headers without
`#pragma once` and files that have grown too long.
A header may close with includes of its own definitions, from a folder beneath it, that include it.
Prints `path:line: error: what is wrong; what to do` and exits with 1 if there was an error.
"""

from __future__ import annotations

import dataclasses
import graphlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# fmt: off
PARTS = ["base", "device", "trace", "fabric", "net", "world", "copy", "pipeline", "rma",
         "on_stream", "array", "remote", "compat"]
# fmt: on
FOLDERS = ["include", "src", "tests", "bench", "apps", "examples", "python", "tools"]
UMBRELLA = "include/meshpost/meshpost.hpp"
HEADERS = {".hpp", ".h", ".cuh"}
CPP = HEADERS | {".cpp", ".cu"}
SOURCES = CPP | {".py", ".sh"}
# Text allowed between two includes: preprocessor lines, line comments, nothing.
NO_CODE = re.compile(r"([ \t]*(#.*|//.*)?(\n|$))*")
WARN_LINES, MAX_LINES = 300, 400

# A kind of device has properties (DeviceTraits). Other parts use these and compare no name.
# Exceptions, with their reasons:
KIND_NAME = re.compile(r'"(cpu|cuda)"')
MAY_NAME_KINDS = {
    "src/compat/dcuda_host.cpp": "a kernel of dCUDA is nvcc's or the host compiler's",
    "src/fabric/hwloc.cpp": "hwloc has a plugin of that name",
    "src/net/ofi/ofi.hpp": "libfabric numbers the kinds of memory that it reaches itself",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
# Text that may hold `#include` without including: block comments and raw strings (kernel sources).
INERT = re.compile(r'/\*.*?\*/|R"([^()\\ ]{0,16})\(.*?\)\1"', re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str
    level: str = "error"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.level}: {self.message}"


@dataclasses.dataclass(frozen=True)
class Include:
    source: str  # paths from the root
    line: int
    target: str
    definitions: bool = False  # of what the source has declared above


@dataclasses.dataclass(frozen=True)
class Owner:
    """The place of a file. `part` is None outside the parts (the umbrella header, apps, ...)."""

    folder: str
    part: str | None

    @staticmethod
    def of(path: str) -> Owner:
        folder, *rest = path.split("/")
        if folder == "include":
            rest = rest[1:]
        in_part = len(rest) > 1 and rest[0] in PARTS
        return Owner(folder, rest[0] if in_part else None)


def check(root: Path) -> list[Finding]:
    texts = {str(file.relative_to(root)): file.read_text() for file in source_files(root)}
    includes = [
        include
        for path, text in texts.items()
        if Path(path).suffix in CPP
        for include in find_includes(path, text, texts)
    ]
    findings = [finding for path, text in texts.items() for finding in check_file(path, text)]
    findings += [
        Finding(include.source, include.line, message)
        for include in includes
        if (message := why_forbidden(include))
    ]
    findings += find_cycles(includes)
    return sorted(findings, key=lambda finding: (finding.path, finding.line))


def source_files(root: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        for file in (root / folder).rglob("*"):
            if file.suffix in SOURCES and file.is_file():
                yield file


def find_includes(path: str, text: str, known: dict[str, str]) -> Iterator[Include]:
    """The includes that lead to files of this project."""
    text = INERT.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in INCLUDE.finditer(text):
        if target := resolve(path, *match.groups(), known):
            beneath = os.path.dirname(target).startswith(os.path.dirname(path) + "/")
            closing = has_code(text[: match.start()]) and not has_code(text[match.end() :])
            line = text.count("\n", 0, match.start()) + 1
            yield Include(path, line, target, definitions=beneath and closing)


def has_code(text: str) -> bool:
    return not NO_CODE.fullmatch(text)


def resolve(path: str, quote: str, name: str, known: dict[str, str]) -> str | None:
    if name.startswith("meshpost/"):
        return f"include/{name}"  # even if it does not exist: its name gives its part
    beside = os.path.normpath(f"{os.path.dirname(path)}/{name}")
    candidates = [beside] if quote == '"' else []
    candidates.append(f"src/{name}")  # only if it exists: <net/if.h> is the system's
    return next((candidate for candidate in candidates if candidate in known), None)


def check_file(path: str, text: str) -> Iterator[Finding]:
    # The documentation of an interface may be as long as it has to be.
    lines = text.count("\n") - len(re.findall(r"^ *///", text, re.MULTILINE))
    if lines > MAX_LINES:
        yield Finding(path, MAX_LINES, f"{lines} lines, at most {MAX_LINES}; split it by concept")
    elif lines > WARN_LINES:
        message = f"{lines} lines, should stay under {WARN_LINES}; split it by concept"
        yield Finding(path, WARN_LINES, message, "warning")
    if Path(path).suffix in HEADERS and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield Finding(path, 1, "header without include guard; add `#pragma once`")
    owner = Owner.of(path)
    library = owner.folder in ("include", "src") and Path(path).suffix in CPP
    if library and owner.part != "device" and path not in MAY_NAME_KINDS:
        yield from find_kind_names(path, text)
    if library and owner.part is None and path != UMBRELLA:
        yield Finding(path, 1, f"belongs to no part; move it into one of: {', '.join(PARTS)}")


def find_kind_names(path: str, text: str) -> Iterator[Finding]:
    for number, line in enumerate(text.splitlines(), 1):
        if name := KIND_NAME.search(line.split("//")[0]):
            message = f"{name[0]} names a kind of device; ask for a property (DeviceTraits, Device)"
            yield Finding(path, number, message)


def why_forbidden(include: Include) -> str | None:
    if include.source == UMBRELLA:
        return None
    source, target = Owner.of(include.source), Owner.of(include.target)
    if target.folder == "include":
        if source.folder not in ("include", "src"):
            return None
        if include.target == UMBRELLA:
            return "a part includes the umbrella header; include the headers it needs"
        return why_out_of_order(source, target, "include")
    if target.folder == "src":
        if source.folder == "include":
            return f"public header includes private {include.target}; forward-declare, or move it"
        if source.folder == "src" or (source.folder in ("tests", "bench") and source.part):
            return why_out_of_order(source, target, "reach into")
    if target.folder != source.folder or target.folder == "src":
        return f"{source.folder}/ includes private {include.target}; use public headers only"
    return None


def why_out_of_order(source: Owner, target: Owner, verb: str) -> str | None:
    if source.part is None or target.part is None:
        return None  # the stray file has been reported already
    if PARTS.index(target.part) <= PARTS.index(source.part):
        return None
    return (
        f"`{source.part}` may not {verb} the later part `{target.part}`; "
        f"move what is shared up to `{source.part}`, or let `{target.part}` register itself"
    )


def find_cycles(includes: list[Include]) -> Iterator[Finding]:
    graph: dict[str, set[str]] = {}
    for include in includes:
        if not include.definitions:
            graph.setdefault(include.source, set()).add(include.target)
    lines = {(include.source, include.target): include.line for include in includes}
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
            return
        except graphlib.CycleError as error:
            chain = error.args[1][::-1]  # graphlib lists includes in opposite direction
        source, target = chain[0], chain[1]
        graph[source].remove(target)  # so that the next search finds the next cycle
        message = f"include cycle {' -> '.join(chain)}; forward-declare, or split one of them"
        yield Finding(source, lines[source, target], message)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    findings = check(root)
    for finding in findings:
        print(finding)
    return any(finding.level == "error" for finding in findings)


if __name__ == "__main__":
    sys.exit(main())
