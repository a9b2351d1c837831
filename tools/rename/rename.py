#!/usr/bin/env python3
"""The glossary rename of issue 18, item 1: field terms in code, file names, messages, docs.

usage: rename.py ROOT [--no-git] [--report] [--left FILE]

Rewrites a checkout by words: identifiers, file names (git mv; --no-git: rename), cmake lists,
includes, comments, messages, tests, documents. A second run changes nothing. --report changes
nothing at all and only lists which retired words are left, as path:line. --left FILE also writes
the sentences that want a writer's hand. GLOSSARY.md, beside this file, says why each name.

How it works. A C++ file is cut into code, comments and strings.
- Code: PATCHES (regular expressions by file contents, for names that need their neighbours), then
  NAMES (whole identifiers, the first rule whose path fits), then parts of names (SNAKE, CAMEL).
- Comments, documents, strings: code-like words as code; then PHRASES, in order; then NOUNS.
  Comment paragraphs that got lines of more than 100 columns are wrapped anew.
Paths in rules are regular expressions; they fit before and after files are moved into folders.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

COLUMNS = 100
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from rules import (  # noqa: E402
    CAMEL, FILE_WORDS, FILES, KEEP, NAMES, NOUNS, PATCHES, PHRASES, RETIRED, SKIP, SNAKE, STRINGS_KEEP,
)

CPP = {".hpp", ".h", ".cpp", ".cu", ".cuh", ".c"}
SCRIPT = {".py", ".sh", ".cmake", ".txt", ".toml", ".yml", ".yaml", ".json", ".in", ".supp",
          ".litmus", ".bell", ".cat"}
IDENT = re.compile(r"(?<![\w])[A-Za-z_]\w*")
counts: Counter = Counter()


@functools.cache
def compiled(pattern: str, flags: int = 0) -> re.Pattern:
    return re.compile(pattern, flags)


def fits(path: str, scope: str | None) -> bool:
    return scope is None or compiled(scope).search(path) is not None


# --- names -----------------------------------------------------------------------------------


class Names:
    """What identifiers of one file become."""

    def __init__(self, path: str):
        self.path = path
        self.exact: dict[str, str] = {}
        for scope, table in NAMES:
            if fits(path, scope):
                for old, new in table.items():
                    self.exact.setdefault(old, new)
        self.keep = {w for scope, words in KEEP if fits(path, scope) for w in words.split()}
        self.snake = {k: v for scope, table in SNAKE if fits(path, scope) for k, v in table.items()}
        self.camel = {k: v for scope, table in CAMEL if fits(path, scope) for k, v in table.items()}

    def of(self, name: str) -> str:
        if name in self.keep:
            return name
        if name in self.exact:
            return self.exact[name]
        if "_" in name.strip("_") and not name.isupper():
            parts = name.split("_")
            if not any(any(c.isupper() for c in p) for p in parts):
                new = "_".join(self.snake.get(p, p) for p in parts)
                if new != name:
                    return new
        if re.match(r"[A-Z][a-z]", name):
            parts = re.findall(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])|[^A-Z]+", name)
            new = "".join(self.camel.get(p, p) for p in parts)
            if new != name:
                return new
        return name

    def code(self, text: str) -> str:
        def one(match: re.Match) -> str:
            new = self.of(match[0])
            if new != match[0]:
                counts[f"{match[0]} -> {new}"] += 1
            return new

        return IDENT.sub(one, text)


def looks_like_code(word: str, text: str, begin: int, end: int) -> bool:
    """Whether a word of a comment is a name of the code rather than English."""
    if "_" in word.strip("_") or word.endswith("_"):
        return True
    if re.search(r"[a-z][A-Z]", word):
        return True
    before, behind = text[max(0, begin - 2) : begin], text[end : end + 2]
    if before.endswith(("::", "->")) or behind.startswith(("::", "->", "(")):
        return True
    if before.endswith(".") and not before.startswith(" ") and len(before) == 2 and before[0] != ".":
        return word[:1].islower()  # a member: `state.posts`
    if word[:1].isupper() and not word.isupper():  # a type in the middle of a sentence
        ahead = text[:begin].rstrip(" \n\t/*-#|`(\"'")
        return bool(ahead) and ahead[-1] not in ".:;!?|"
    return False


# --- prose -----------------------------------------------------------------------------------

CODE_SPAN = re.compile(r"`[^`\n]+`")


def capital_like(new: str, old: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


class Prose:
    def __init__(self, path: str, names: Names):
        self.names = names
        # names of files without their ending, as READMEs of folders have them in tables
        self.stems = STEMS.get(os.path.dirname(path), {}) if path.endswith(".md") else {}
        self.rules = []
        for scope, old, new in [*PHRASES, *NOUNS]:
            if fits(path, scope):
                pattern = re.sub(r"(?<!\\) ", r"\\s+", old)
                whole = rf"(?<![\w\-/.`]){pattern}(?![\w\-]|::|/\w)"
                self.rules.append((compiled(whole, re.I), new))
        # most texts have none of these words
        self.any = compiled("|".join(pattern.pattern for pattern, _ in self.rules), re.I)

    def words(self, text: str) -> str:
        """Names within prose."""

        def one(match: re.Match) -> str:
            word = match[0]
            if not looks_like_code(word, text, match.start(), match.end()):
                return word
            return self.names.of(word)

        return IDENT.sub(one, text)

    def phrases(self, text: str) -> str:
        if not self.any.search(text):
            return text
        for pattern, new in self.rules:
            def one(match: re.Match, new=new) -> str:
                made = match.expand(new)
                lines = match[0].count("\n")
                made = capital_like(made, match[0])
                if lines:  # keep the number of lines where that is easy
                    cut = made.rfind(" ")
                    made = made if cut < 0 else made[:cut] + "\n" + made[cut + 1 :]
                counts[f"prose: {match[0].lower()} -> {made.lower()}"] += made != match[0]
                return made

            text = pattern.sub(one, text)
        return text

    def __call__(self, text: str) -> str:
        spans: list[str] = []

        def hide(match: re.Match) -> str:
            span = match[0][1:-1]
            spans.append("`" + (self.stems.get(span) or self.names.code(span)) + "`")
            return f"\x00{len(spans) - 1}\x01"

        hidden = CODE_SPAN.sub(hide, text)
        made = self.phrases(self.words(hidden))
        if made != hidden:
            made = re.sub(r"\b([Aa]) (?=(?:acceptor|unauthenticated|unconsumed|access epoch)\b)", r"\1n ", made)
            made = re.sub(r"\b([Aa])n (?=(?:command|message|request|root|termination|launch|copy|packed)\b)", r"\1 ", made)
        return re.sub("\x00(\\d+)\x01", lambda m: spans[int(m[1])], made)


# --- comments --------------------------------------------------------------------------------


def wrap(lines: list[str], prefix: str) -> list[str]:
    """Texts of comment lines, without prefix, so that prefix and text have at most 100 columns."""
    out: list[str] = []
    paragraph: list[str] = []

    def flush() -> None:
        if not paragraph:
            return
        if all(len(prefix + line) <= COLUMNS for line in paragraph):
            out.extend(paragraph)
        else:
            lead = re.match(r"\s*(?:(?:[-*]|\d+[.)]) +)?", paragraph[0])[0]
            hang = re.match(r"\s*", paragraph[1])[0] if len(paragraph) > 1 else " " * len(lead)
            words = " ".join(line.strip() for line in paragraph)[len(lead.strip()) :].split()
            line, first = lead, True
            bare = True
            for word in words:
                if not bare and len(prefix + line) + 1 + len(word) > COLUMNS:
                    out.append(line)
                    line, bare = hang, True
                line += word if bare else " " + word
                bare = False
            out.append(line)
        paragraph.clear()

    for line in lines:
        text = line.strip()
        begins = re.match(r"(?:[-*]|\d+[.)]) |\\\w|@\w|(?:Called by|Ordering|Reuse|Errors):", text)
        if not text or text.startswith(("|", "```", "---", "clang-format")) or line.startswith("     "):
            flush()
            out.append(line)
        elif begins:
            flush()
            paragraph.append(line)
        else:
            paragraph.append(line)
    flush()
    return out


COMMENT_LINE = re.compile(r"([ \t]*)(///?<?|#)( ?)(.*)")


def rewrite_comment_block(block: list[str], prose: Prose) -> list[str]:
    """Whole-line comments of one indentation and mark."""
    match = COMMENT_LINE.match(block[0])
    prefix = match[1] + match[2]
    texts = [line[len(prefix) :] for line in block]
    old = "\n".join(texts)
    new = prose(old)
    if new == old and all(len(line) <= COLUMNS for line in block):
        return block
    lines = new.split("\n")
    return [(prefix + line).rstrip() for line in wrap(lines, prefix)]


TOKENS = re.compile(
    r"""(?P<raw>R"(?P<delim>[^()\s\\]*)\(.*?\)(?P=delim)")"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*")"""
    r"""|(?P<char>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')"""
    r"""|(?P<line>//[^\n]*)"""
    r"""|(?P<block>/\*.*?\*/)""",
    re.S | re.X,
)


def rewrite_cpp(path: str, text: str) -> str:
    names = Names(path)
    prose = Prose(path, names)
    keep_string = [re.compile(p) for scope, p in STRINGS_KEEP if fits(path, scope)]

    def string(token: str) -> str:
        if any(p.search(token) for p in keep_string):
            return token
        return prose(token)

    out: list[str] = []
    for pattern_scope, needs, pattern, new in PATCHES:
        if fits(path, pattern_scope) and (needs is None or compiled(needs).search(text)):
            text, n = compiled(pattern, re.M).subn(new, text)
            if n:
                counts[f"patch {pattern} -> {new}"] += n
    # whole-line comments as blocks, all else by tokens
    lines = text.split("\n")
    at = 0
    rest: list[str] = []

    def flush_code() -> None:
        if not rest:
            return
        body = "\n".join(rest)
        made, last = [], 0
        for match in TOKENS.finditer(body):
            made.append(names.code(body[last : match.start()]))
            token = match[0]
            if match["line"] or match["block"]:
                made.append(prose(token))
            elif match["string"] or match["raw"]:
                before = body[: match.start()].rsplit("\n", 1)[-1]
                made.append(token if re.match(r"\s*#\s*include", before) else string(token))
            else:
                made.append(token)
            last = match.end()
        made.append(names.code(body[last:]))
        out.append("".join(made))
        rest.clear()

    formatted = True
    while at < len(lines):
        match = COMMENT_LINE.match(lines[at])
        if match and match[2] != "#":
            prefix = match[1] + match[2]
            end = at
            while end < len(lines):
                follows = COMMENT_LINE.match(lines[end])
                if not follows or follows[1] + follows[2] != prefix:
                    break
                end += 1
            flush_code()
            out.append("\n".join(rewrite_comment_block(lines[at:end], prose)))
            at = end
        else:
            rest.append(lines[at])
            at += 1
    flush_code()
    return "\n".join(out)


def rewrite_md(path: str, text: str) -> str:
    names = Names(path)
    prose = Prose(path, names)
    out: list[str] = []
    paragraph: list[str] = []
    fence, blank, block = "", True, False

    def flush() -> None:
        if not paragraph:
            return
        old = "\n".join(paragraph)
        new = prose(old)
        lines = new.split("\n")
        if path != "docs/api.md" and not paragraph[0].lstrip().startswith(("|", "#", "<!--")):
            if any(len(line) > COLUMNS and "://" not in line for line in lines):
                lines = wrap(lines, "")
        out.extend(lines)
        paragraph.clear()

    for line in text.split("\n"):
        mark = re.match(r"```+", line)
        indented = line.startswith("    ")
        block = indented and (block or blank)
        if mark:
            flush()
            fence = "" if fence == mark[0] else fence or mark[0]
            out.append(line)
        elif fence or block:
            flush()
            out.append(names.code(line) if fence else line)
        elif not line.strip() or line.startswith(("|", "<!--", "#")):
            flush()
            if line.strip():
                paragraph.append(line)
                flush()
            else:
                out.append(line)
        else:
            paragraph.append(line)
        blank = not line.strip() or line.startswith("<!--")
    flush()
    return "\n".join(out)


def rewrite_script(path: str, text: str) -> str:
    names = Names(path)
    prose = Prose(path, names)
    for pattern_scope, needs, pattern, new in PATCHES:
        if fits(path, pattern_scope) and (needs is None or compiled(needs).search(text)):
            text, n = compiled(pattern, re.M).subn(new, text)
            counts[f"patch {pattern} -> {new}"] += n
    docs: list[str] = []
    if path.endswith(".py"):

        def hide(match: re.Match) -> str:
            docs.append(prose(match[0]))
            return f"\x02{len(docs) - 1}\x03"

        text = re.sub(r'"""(?:.|\n)*?"""', hide, text)
    out: list[str] = []
    for line in text.split("\n"):
        mark = re.search(r"(?:^|\s)(#|//) ", line)
        if path.endswith((".litmus", ".bell", ".cat")):
            out.append(prose(line))
        elif mark:
            out.append(names.code(line[: mark.start()]) + prose(line[mark.start() :]))
        else:
            made = names.code(line)
            out.append(re.sub(r'"(?:\\.|[^"\\])*"', lambda m: prose(m[0]), made))
    return re.sub("\x02(\\d+)\x03", lambda m: docs[int(m[1])], "\n".join(out))


# --- files -----------------------------------------------------------------------------------


def listed(root: Path) -> list[str]:
    git = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True, check=True)
    return sorted(f for f in set(git.stdout.split("\n")) if f and (root / f).is_file()
                  and not (root / f).is_symlink() and not any(re.search(s, f) for s in SKIP))


def new_path(path: str) -> str:
    folder, name = os.path.split(path)
    stem, dot, ext = name.partition(".")
    for scope, table in FILES:
        if fits(path, scope) and stem in table:
            return os.path.join(folder, table[stem] + dot + ext)
    if "_" in stem and path.startswith(("src/", "include/", "tests/", "bench/")):
        new = "_".join(FILE_WORDS.get(word, word) for word in stem.split("_"))
        return os.path.join(folder, new + dot + ext)
    return path


def spelling(path: str) -> str:
    """As includes and lists name it."""
    for root in ("include/", "src/", "tests/", "bench/", "apps/"):
        if path.startswith(root):
            return path[len(root) :]
    return path


def rename_mentions(text: str, moved: dict[str, str], path: str) -> str:
    """Paths of moved files, as includes, lists and documents write them."""
    for old, new in moved.items():
        a, b = spelling(old), spelling(new)
        if os.path.basename(a) not in text:
            continue
        stem_a, stem_b = os.path.splitext(a)[0], os.path.splitext(b)[0]
        text = re.sub(rf"(?<![\w])((?:[\w.]+/)*?){re.escape(a)}(?![\w])", lambda m: m[1] + b, text)
        # parts of a path: `job/gate.cpp`, `rma/detail/glance.hpp`, `ofi/leftover.hpp`
        pieces = a.split("/")
        for cut in range(1, len(pieces) - 1):
            part, to = "/".join(pieces[cut:]), "/".join(b.split("/")[cut:])
            text = re.sub(rf"(?<![\w/.]){re.escape(part)}(?![\w])", to, text)
        del stem_a, stem_b
    # names alone: in documents of the folder, in cmake of it, and in comments where there is but
    # one file of that name
    bases: dict[str, set[str]] = defaultdict(set)
    for old, new in moved.items():
        bases[os.path.basename(old)].add(os.path.basename(new))
    here = os.path.dirname(path)
    for base, news in bases.items():
        near = {os.path.basename(n) for o, n in moved.items() if os.path.basename(o) == base
                and (os.path.dirname(o).startswith(here) or here.startswith(os.path.dirname(o)))}
        to = news if len(news) == 1 else near
        if len(to) != 1:
            continue
        if base not in text:
            continue
        if KNOWN[base] - len([o for o in moved if os.path.basename(o) == base]) > 0 and not near:
            continue  # other files have that name, too
        text = re.sub(rf"(?<![\w/.-]){re.escape(base)}(?![\w])", to.copy().pop(), text)
    return text


KNOWN: Counter = Counter()
STEMS: dict[str, dict[str, str]] = {}


def rewrite(path: str, text: str) -> str:
    suffix = os.path.splitext(path)[1]
    if path.endswith(".md"):
        return rewrite_md(path, text)
    if suffix in CPP or path.endswith(".cu.h"):
        return rewrite_cpp(path, text)
    return rewrite_script(path, text)


# --- what is left ----------------------------------------------------------------------------


def find_left(root: Path) -> list[tuple[str, int, str, str]]:
    found = []
    any_word = compiled("|".join(word for word, _, _ in RETIRED), re.I)
    for path in listed(root):
        if os.path.splitext(path)[1] not in CPP | SCRIPT | {".md"} and path != "run":
            continue
        names = Names(path)
        text = (root / path).read_text("utf-8", errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            if not any_word.search(line):
                continue
            for word, instead, scope_not in RETIRED:
                if scope_not and re.search(scope_not, path):
                    continue
                part = rf"(?:(?<![A-Za-z])(?i:{word})|{word[0].upper()}{word[1:]})(?![a-z])"
                for match in re.finditer(part, line):
                    whole = next((m[0] for m in IDENT.finditer(line)
                                  if m.start() <= match.start() < m.end()), match[0])
                    if whole not in names.keep:
                        found.append((path, number, whole, instead))
        for match in re.finditer(r"\bbare\s+(?:///?\s+)?counts?\b", text):
            found.append((path, text.count("\n", 0, match.start()) + 1, "bare count", "packed signal"))
        stem = os.path.basename(path).split(".")[0]
        for word, instead, scope_not in RETIRED:
            if re.search(rf"(?:^|_){word}(?:_|$)", stem) and not (scope_not and re.search(scope_not, path)):
                found.append((path, 0, stem, "file: " + instead))
    return found


# Sentences in which only the noun was replaced and that still speak of the old picture.
PICTURES = [
    (r"\b(?:open|opens|opened|unopened)\b[^.]{0,60}\bcommands?\b|\bcommands?\b[^.]{0,60}\b(?:opens?|opened|unopened)\b", "commands are carried out, not opened"),
    (r"\btermination detector\b[^.]{0,40}\bsits?\b", "polls"),
    (r"\bwrites? (?:a )?commands?\b[^.]{0,30}\bsays?\b", "holds"),
    (r"\broot'?s?\b[^.]{0,30}\bquestions\b", ""),
    (r"\b(?:come|comes|came) to nothing\b", "fails; failed"),
    (r"\bat it\b[.,;]", "idiom"),
    (r"\b(?:lets?|let) in\b|\bkeep(?:s)? out\b", "accept, refuse"),
    (r"\b(?:is|are|reads?|takes?|hears?|called|stands|says) (?:it |that )?no more\b|the world no more", "idiom"),
    (r"(?:^|[.!?] )(?:Who|What|That|Whoever|Whatever) [^.?]*[.]", "begins with a free relative clause"),
    (r"\bplaces? in (?:rings?|a ring)\b|\bring places?\b", "slots"),
]


def find_pictures(root: Path) -> list[tuple[str, int, str, str]]:
    found = []
    for path in listed(root):
        if os.path.splitext(path)[1] not in CPP or "/results/" in path:
            continue
        lines = (root / path).read_text("utf-8", errors="replace").split("\n")
        block: list[str] = []
        begin = 0
        for number, line in enumerate([*lines, ""], 1):
            match = re.search(r"///?<?\s?(.*)", line)
            if match and not re.match(r".*https?:$", line[: match.start()]):
                if not block:
                    begin = number
                block.append(match[1].strip())
                continue
            text = " ".join(block)
            for sentence in re.findall(r"[^.!?]+[.!?]?", text):
                for pattern, why in PICTURES:
                    if re.search(pattern, sentence.strip(), re.I if "free" not in why else 0):
                        head = sentence.strip()[:25]
                        offset = next((i for i, b in enumerate(block) if head[:18] in b), 0)
                        found.append((path, begin + offset, sentence.strip(), why))
                        break
            block = []
    return found


# --- main ------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--no-git", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--left", type=Path)
    given = parser.parse_args()
    root = given.root.resolve()
    files = listed(root)
    moved = {f: new_path(f) for f in files if new_path(f) != f}
    if not given.report:
        targets = Counter(new_path(f) for f in files)
        clashes = [t for t, n in targets.items() if n > 1]
        if clashes:
            print("two files would have one name:", *clashes, sep="\n  ", file=sys.stderr)
            return 1
        KNOWN.update(os.path.basename(f) for f in files)
        for old, new in moved.items():
            folder, name = os.path.split(old)
            for above in (folder, os.path.dirname(folder)):
                STEMS.setdefault(above, {})[name.split(".")[0]] = os.path.basename(new).split(".")[0]
        changed = 0
        for path in files:
            suffix = os.path.splitext(path)[1]
            if suffix not in CPP | SCRIPT | {".md"} and path not in ("run", ".clang-tidy"):
                continue
            file = root / path
            try:
                old = file.read_text("utf-8")
            except UnicodeDecodeError:
                continue
            new = rewrite(path, rename_mentions(old, moved, path))
            if new != old:
                file.write_text(new, "utf-8")
                changed += 1
        for old, new in moved.items():
            if given.no_git:
                os.rename(root / old, root / new)
            else:
                subprocess.run(["git", "-C", root, "mv", old, new], check=True)
        print(f"{changed} files changed, {len(moved)} renamed, {sum(counts.values())} words")
        for old, new in sorted(moved.items()):
            print(f"  {old} -> {new}")
    left = find_left(root)
    print(f"\n{len(left)} retired words left:")
    for path, number, word, instead in left:
        print(f"  {path}:{number}: {word} ({instead})")
    if given.left:
        pictures = find_pictures(root)
        with given.left.open("w") as out:
            out.write("# Left for rewriting by hand\n\nWritten by `rename.py --left`. First words, then "
                      "sentences of comments that still speak of the old picture, or begin with a\n"
                      "free relative clause.\n\n## Retired words\n\n")
            out.writelines(f"- `{p}:{n}`: {w} ({i})\n" for p, n, w, i in left)
            out.write("\n## Sentences\n\n")
            out.writelines(f"- `{p}:{n}` ({w}): {s}\n" for p, n, s, w in pictures)
        print(f"{len(pictures)} sentences for a writer's hand: {given.left}")
    if os.environ.get("RENAME_COUNTS"):
        for name, n in counts.most_common():
            if n:
                print(f"{n:6} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
