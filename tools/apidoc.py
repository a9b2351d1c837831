#!/usr/bin/env python3
"""Writes docs/api.md from the comments of the public headers.

usage: apidoc.py [--check] [ROOT]

The entry of a header has the text behind /// and, as code, the declaration below it; of classes
only the public part. Headers in folders named detail, cpu and cuda are left out, and so are
namespaces of these names. --check writes nothing and fails if docs/api.md differs from what it
would write.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

OUTPUT = "docs/api.md"
INCLUDE = "include/meshpost"
# In the order for readers. Headers that no line names come under the last.
CHAPTERS = {
    "Programs": [
        "rma/world.hpp",
        "rma/run.hpp",
        "rma/window.hpp",
        "rma/graph.hpp",
        "world/communicator.hpp",
        "rma/mpi.hpp",
        "on_stream/stream_endpoint.hpp",
        "on_stream/stream_calls.hpp",
        "on_stream/message_window.hpp",
        "base/types.hpp",
    ],
    "Kernels": [
        "rma/rank.hpp",
        "rma/prepared.hpp",
        "rma/combine.hpp",
        "rma/roles.hpp",
        "base/span.hpp",
        "base/strided.hpp",
        "base/fn.hpp",
    ],
    "Errors, messages, configuration": ["base/error.hpp", "base/events.hpp", "base/config.hpp"],
    "Devices": ["device/device.hpp"],
    "Copies and pipelines": [
        "copy/copy.hpp",
        "copy/job_memory.hpp",
        "copy/route.hpp",
        "pipeline/pipeline.hpp",
        "pipeline/schedule.hpp",
        "pipeline/group.hpp",
        "fabric/allocate.hpp",
    ],
    "Arrays": [
        "array/array.hpp",
        "array/context.hpp",
        "array/coherence.hpp",
        "array/distribution.hpp",
        "array/plan.hpp",
        "array/exchange.hpp",
        "array/stream_exchange.hpp",
        "compat/lama.hpp",
    ],
    "Grids": [
        "array/grid.hpp",
        "array/grid_options.hpp",
        "array/grid_field.hpp",
        "array/box.hpp",
        "array/boxes.hpp",
    ],
    "Tests of protocols": ["base/step.hpp", "base/hooks.hpp"],
    "dCUDA": ["compat/dcuda/dcuda_host.h", "compat/dcuda/dcuda_device.cu.h"],
    "For layers above and new kinds of devices": [],
}
LEFT_OUT = {"detail", "cpu", "cuda", "memory", "delivery"}
INTRODUCTION = """\
# API reference

Made by `tools/apidoc.py` from the headers; change them, not this page. `meshpost/meshpost.hpp`
includes all that a program needs. Names are in the namespace `meshpost` unless they say otherwise.
What the words mean, and the rules of delivery and order, are in [architecture.md](architecture.md).
"""

TYPE = re.compile(
    r"(template\s*<.*?>\s*(requires[^{;]*?)?)?(class|struct|enum class|enum|union)\b", re.S
)
ACCESS = re.compile(r"(public|private|protected)\s*:\s*")


@dataclasses.dataclass
class Declaration:
    head: str  # up to its body or semicolon, as written
    comment: list[str]  # behind /// above it
    behind: str  # behind ///< on its last line
    body: str | None  # of a type
    apart: bool  # an empty line or another comment is above it

    @property
    def is_type(self) -> bool:
        return self.body is not None

    @property
    def name(self) -> str:
        head = re.sub(r"\b(alignas|__attribute__)\s*\(+[^()]*\)+", "", self.head)
        if not head.startswith("#"):
            head = re.sub(r"^template\s*<.*?>\s*(?=\w)", "", head, flags=re.S)
        if self.is_type:
            return re.search(r"(?:class|struct|enum|union)\s+(?:class\s+)?(\w+)", head)[1]
        if define := re.match(r"#define (\w+)", head):
            return define[1]
        if alias := re.search(r"using (\w+) =", head):
            return alias[1]
        if pointer := re.search(r"\(\*(\w+)\)", head):
            return pointer[1]
        before = re.split(r"[(={]", head, maxsplit=1)[0].rstrip()
        found = re.search(r"(operator\S*|~?\w+)(?:<.*>)?$", before)
        if found is None:
            raise ValueError(f"tools/apidoc.py can't read this declaration: {self.head!r}")
        return found[1]


class Scanner:
    """Finds the declarations of one scope. Knows only the C++ that our headers use."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def declarations(self, public: bool = True) -> Iterator[Declaration | str]:
        """Declarations, and the headings (`// -- ...`) between them."""
        comment: list[str] = []
        apart = True
        while self.at < len(self.text):
            rest = self.text[self.at :]
            if space := re.match(r"\s+", rest):
                apart |= space[0].count("\n") > 1
                self.at += space.end()
            elif line := re.match(r"///(?!<) ?(.*)\n", rest):
                comment.append(line[1].rstrip())
                self.at += line.end()
            elif heading := re.match(r"// -- (.*)\n((?:\s*//(?!/| --).*\n)*)", rest):
                more = " ".join(one.strip(" /") for one in heading[2].splitlines())
                if public:
                    yield f"{heading[1]} {more}".strip()
                self.at += heading.end()
            elif define := re.match(r"#\s*define (?!.*\\\n).*\n", rest):
                line, _, behind = define[0].partition("///<")
                if comment or behind:
                    yield Declaration(line.strip(), comment, behind.strip(), None, apart)
                self.at += define.end()
                comment, apart = [], False
            elif skipped := re.match(r"//.*\n|#(?:.*\\\n)*.*\n|\}.*\n?|;", rest):
                self.at += skipped.end()
                comment, apart = [], True
            elif access := ACCESS.match(rest):
                public = access[1] == "public"
                self.at += access.end()
                comment, apart = [], True
            elif space_of_names := re.match(r"(?:inline )?namespace ([\w:]*)\s*\{", rest):
                self.at += space_of_names.end()
                if space_of_names[1].split("::")[-1] in LEFT_OUT:
                    self.body()
                comment, apart = [], True
            else:
                found = self.declaration(comment, apart)
                if public and found:
                    yield found
                comment, apart = [], False

    def declaration(self, comment: list[str], apart: bool) -> Declaration | None:
        begin, depth, body = self.at, 0, None
        while self.at < len(self.text):
            char = self.text[self.at]
            depth += (char in "([") - (char in ")]")
            if depth == 0 and char in ";{":
                break
            self.at += 1
        head = self.text[begin : self.at].strip()
        if self.text[self.at : self.at + 1] == "{":
            self.at += 1
            inside = self.body()
            if TYPE.match(head) and "(" not in re.sub(r"alignas\(\w+\)|requires.*?\)", "", head):
                body = inside
            elif "(" not in head:  # a value in braces
                head += "{" + inside + "}"
        end = re.compile(r"[^;\n]*;|").match(self.text, self.at)
        if "=" in end[0] or "," in end[0]:
            head += end[0].rstrip(";")
        self.at = end.end()
        behind = re.compile(r"[ \t]*///< ?(.*(?:\n[ \t]+///<? ?.*(?=\n[ \t]*(?:///<|$)))*)").match(
            self.text, self.at
        )
        if behind:
            self.at = behind.end()
        return (
            Declaration(head, comment, behind[1] if behind else "", body, apart) if head else None
        )

    def body(self) -> str:
        """Moves behind the closing brace of the open scope; returns the text inside."""
        begin, depth = self.at, 1
        inert = re.compile(r'//.*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'')
        while depth:
            if skipped := inert.match(self.text, self.at):
                self.at = skipped.end()
                continue
            depth += (self.text[self.at] == "{") - (self.text[self.at] == "}")
            self.at += 1
        return self.text[begin : self.at - 1]


def signature(declaration: Declaration) -> str:
    """The declaration without parts that only the compiler needs."""
    if declaration.head.startswith("#"):
        return declaration.head
    head = re.sub(r"\bMESHPOST_(FN|COLD)\s+(inline\s+)?", "", declaration.head)
    head = re.sub(r"^(static\s+)?inline\s+(?!constexpr|std)", r"\1", head)
    head = re.sub(r"__device__ ", "", head)
    head = re.sub(
        r"\)\s*(noexcept\s*)?\n?\s*:\s[^:].*", ")", head, flags=re.S
    )  # a constructor's initialisers
    return head + ";"


def unwanted(declaration: Declaration) -> bool:
    """Members that tell a reader nothing."""
    head = declaration.head
    return (
        head.endswith("= delete")
        or head.endswith("&&) noexcept = default")
        or head.startswith(("friend", "static_assert", "~", "virtual ~"))
    )


def code_of(declaration: Declaration, documented: bool = False) -> str:
    """The declaration as code, with its comment unless the comment is shown above the code."""
    lines = [] if documented else [f"// {line}".rstrip() for line in declaration.comment]
    if not declaration.is_type:
        text = dedent_tail(signature(declaration))
        behind = f"  // {declaration.behind}" if declaration.behind else ""
        if behind and len(text) + len(behind) > 110:
            return "\n".join([*lines, behind.strip(), text])
        return "\n".join([*lines, text + behind])
    head = re.sub(r" : private [\w:]+", "", re.sub(r"[ \t]+", " ", declaration.head))
    if "enum" in declaration.head:
        inside = re.sub(r"///<", "//", textwrap.dedent(declaration.body.strip("\n"))).rstrip()
        if "\n" not in inside:
            return "\n".join([*lines, f"{head} {{ {inside.strip()} }};"])
    else:
        inside = members_of(declaration)
    if not inside:
        return "\n".join([*lines, f"{head};"])
    return "\n".join([*lines, f"{head} {{", textwrap.indent(inside, "  "), "};"])


def dedent_tail(text: str) -> str:
    """Lines after the first lose their scope's indentation; continuation lines get four columns."""
    first, *rest = text.split("\n")
    tail = textwrap.dedent("\n".join(rest)).split("\n") if rest else []
    whole = first.startswith("template")  # the next line is not a continuation
    return "\n".join(
        [first, *(f"    {line.strip()}" if line[:1] == " " or not whole else line for line in tail)]
    )


def members_of(declaration: Declaration) -> str:
    is_class = re.search(r"\bclass\b", declaration.head.split(declaration.name)[0]) is not None
    is_class &= not re.search(r"\bstruct\b", declaration.head)
    text = ""
    for member in Scanner(declaration.body).declarations(public=not is_class):
        if isinstance(member, str):
            text += f"\n// -- {member}\n"
        elif not unwanted(member):
            if member.comment and text and not text.endswith("--\n"):
                text += "\n" if member.apart else ""
            text += code_of(member) + "\n"
    return text.strip("\n")


def prose(comment: list[str]) -> str:
    text = "\n".join(re.sub(r"\\throws\b", "Throws", line) for line in comment)
    # Code stays as it is, between quotes or in indented lines.
    code = r"(`[^`]*`|^ {4}.*$)"
    text = re.sub(rf"{code}|<", lambda match: match[1] or "&lt;", text, flags=re.M)
    return re.sub(r"\n+(?=(?:Throws|Reuse:|Errors:|Called by:|Ordering:) )", "\n\n", text)


def header_section(path: str, text: str) -> str:
    scanner = Scanner(text)
    parts: list[str] = []
    group: list[Declaration] = []

    def close() -> None:
        if not group:
            return
        code = "\n".join(code_of(one, documented=one is group[0]) for one in group)
        names = list(dict.fromkeys(one.name for one in group))
        title = "### " + ", ".join(f"`{name}`" for name in names)
        lead = prose(group[0].comment)
        parts.append("\n\n".join(filter(None, [title, lead, f"```cpp\n{code}\n```"])))
        group.clear()

    headed = False  # everything under a heading is shown
    for found in scanner.declarations():
        if isinstance(found, str):
            close()
            parts.append(f"**{found[:1].upper()}{found[1:]}**")
            headed = True
            continue
        follows = bool(group) and not found.apart
        plain = not (found.comment or found.behind or headed or "///<" in (found.body or ""))
        if unwanted(found) or (plain and not follows):
            close()
            continue
        if not follows or (found.comment and (found.is_type or group[-1].is_type)):
            close()
        group.append(found)
    close()
    if not any(part.startswith("###") for part in parts):
        return ""
    lead = introduction(text)
    return "\n\n".join(filter(None, [f"## `{path}`", lead, *parts])) + "\n"


def introduction(text: str) -> str:
    """The comment with which a header begins."""
    found = re.match(r"#pragma once\n((?://(?!/).*\n)+)", text)
    return (
        "\n".join(line.removeprefix("//").strip() for line in found[1].splitlines())
        if found
        else ""
    )


def generate(root: Path) -> str:
    folder = root / INCLUDE
    headers = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted([*folder.rglob("*.hpp"), *folder.rglob("*.h")])
        if not LEFT_OUT & set(path.relative_to(folder).parts)
    }
    named = [path for paths in CHAPTERS.values() for path in paths]
    text = INTRODUCTION
    for chapter, paths in CHAPTERS.items():
        here = paths or [path for path in headers if path not in named]
        sections = [
            header_section(f"meshpost/{path}", headers[path]) for path in here if path in headers
        ]
        if any(sections):
            text += f"\n# {chapter}\n\n" + "\n".join(filter(None, sections))
    return text


def main() -> int:
    arguments = sys.argv[1:]
    check = "--check" in arguments
    paths = [argument for argument in arguments if argument != "--check"]
    root = Path(paths[0]) if paths else Path(__file__).resolve().parent.parent
    output = root / OUTPUT
    text = generate(root)
    if not check:
        output.parent.mkdir(exist_ok=True)
        output.write_text(text, encoding="utf-8")
        return 0
    if output.exists() and output.read_text(encoding="utf-8") == text:
        return 0
    print(f"{OUTPUT}:1: error: not what the headers say; run tools/apidoc.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
