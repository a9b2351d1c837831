"""Code that the fronts of all apps share: options, start of the C++ program, pictures."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import child

ROOT = Path(__file__).resolve().parents[2]
NO_PICTURES = ("numpy", "matplotlib")  # without them there are no pictures, and all else works


class Misuse(Exception):
    """An argument that can't be used: names the value, the limit and the remedy."""


class Failure(Exception):
    """The program gave no result, or could not be started."""


@dataclasses.dataclass(frozen=True)
class App:
    """The properties in which one front differs from another."""

    name: str
    description: str
    example: str  # arguments
    figures: str = "result.json"  # in --out
    pictures: tuple[str, ...] = ()  # in --out
    # Draws the figures of --json into the folder; returns what it wrote. Imports what it needs.
    # None: there is one picture, `pictures`, and picture.py beside the front draws it.
    draw: Callable[..., list[Path]] | None = None
    # Help text of --beside FILE. Then `draw` gets that file's figures too, or None. Empty: there is
    # no such option.
    beside: str = ""

    @property
    def command(self) -> str:
        return f"./run app {self.name}"


def options_parser(app: App, *, own_help: bool) -> argparse.ArgumentParser:
    """A parser of the options that are the same in all fronts.

    own_help: True for a front that knows all options; argparse prints --help. Otherwise unknown
    options go to the C++ program, and its --help is shown too.
    """
    parser = argparse.ArgumentParser(
        prog=app.command,
        description=app.description,
        epilog=f"example: {app.command} {app.example}",
        add_help=own_help,
        allow_abbrev=False,  # --out must not take a program's --output
    )
    if not own_help:
        parser.usage = (
            f"{app.command} [--out FOLDER] [--json FILE] [--no-plot | --draw FILE] [OPTIONS below]"
        )
        parser.add_argument("--help", "-h", action="store_true", help="this, and the options below")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out", app.name),
        metavar="FOLDER",
        help="folder for figures and pictures (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help=f"file for the figures (default: FOLDER/{app.figures})",
    )
    parser.add_argument("--no-plot", dest="plot", action="store_false", help="draw nothing")
    return parser


def parse(app: App, arguments: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Reads the front's own options. The C++ program reads the rest and refuses unknown ones."""
    parser = options_parser(app, own_help=False)
    parser.add_argument(
        "--draw", type=Path, metavar="FILE", help="only draw the figures of an earlier run"
    )
    if app.beside:
        parser.usage = parser.usage.replace(" [OPTIONS", " [--beside FILE] [OPTIONS")
        parser.add_argument("--beside", type=Path, metavar="FILE", help=app.beside)
    options, others = parser.parse_known_args(arguments)
    if options.help:
        parser.print_help()
        print(flush=True)
        sys.exit(run_binary([str(find_binary(app.name)), "--help"], launch=False))
    options.beside = getattr(options, "beside", None)
    if options.beside and not options.plot:
        raise Misuse("--beside draws, and --no-plot forbids it: leave one out")
    options.json = options.json or options.out / app.figures
    return options, others


def find_binary(name: str, root: Path | None = None) -> Path:
    """The program: MESHPOST_APP_BINARY, else the newest one built in this checkout."""
    root = root or ROOT
    remedy = f"build it with ./run app {name}, or set MESHPOST_APP_BINARY"
    if named := os.environ.get("MESHPOST_APP_BINARY"):
        binary = Path(named)
        if not (binary.is_file() and os.access(binary, os.X_OK)):
            raise Misuse(f"MESHPOST_APP_BINARY is {named}, which is no program: {remedy}")
        return binary.resolve()
    built = [path for path in root.glob(f"build/*/apps/{name}/{name}") if path.is_file()]
    if not built:
        raise Misuse(f"no program build/*/apps/{name}/{name} under {root}: {remedy}")
    return max(built, key=lambda path: path.stat().st_mtime)


def launched(command: list[str]) -> list[str]:
    """The command with that of MESHPOST_APP_LAUNCH, which starts several processes, before it."""
    return shlex.split(os.environ.get("MESHPOST_APP_LAUNCH", "")) + command


def run_binary(command: list[str], *, launch: bool = True) -> int:
    """Runs the program on this terminal, so that its progress shows. Returns its exit status.

    The program has ended when this function ends, also after an exception.
    """
    if launch:
        command = launched(command)
    sys.stdout.flush()
    try:
        return child.run(command)
    except OSError as error:
        message = f"{command[0]} can't be started: {error.strerror}; rebuild it"
        raise Misuse(message) from error


def guarded(name: str, work: Callable[[], int]) -> int:
    """Does the work of the front `name`. Returns an exit status in every case.

    SIGTERM, SIGINT and SIGHUP end the work, and the C++ program that it runs.
    """
    try:
        with child.handlers(child.stop):
            return work()
    except Misuse as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except (Failure, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def writable(path: Path) -> Path:
    """Makes the folder of `path` and returns `path`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"{path} can't be written: {error.strerror}; name another file") from error
    return path


def write_figures(file: Path, facts: dict) -> None:
    """Writes the figures. An interrupted run leaves no half of the file."""
    part = file.with_name(file.name + ".part")
    part.write_text(json.dumps(facts, indent=1) + "\n")
    part.replace(file)


def replacing(outputs: list[Path], work: Callable[[], int]) -> int:
    """Does the work, which writes these files, and returns its exit status.

    Files of an earlier run must not be taken for this run's, so they are set aside. They come back
    if the work refuses its arguments, by status 2 or by Misuse. Otherwise they are removed.
    """
    aside, refused = [], False
    try:
        for output in outputs:
            if output.is_file():
                kept = output.with_name(output.name + ".earlier")
                output.replace(kept)
                aside.append((output, kept))
        status = work()
        refused = status == 2
    except Misuse:
        refused = True
        raise
    finally:
        for output, kept in aside:
            if refused:
                kept.replace(output)
            else:
                kept.unlink(missing_ok=True)
    return status


def explain_no_picture(error: ImportError, command: str) -> None:
    """Prints why there is no picture and how to get it. Any other missing module is a bug.

    A package that is installed but broken, as by a C extension of another Python, gives no name.
    """
    if error.name and error.name.partition(".")[0] not in NO_PICTURES:
        raise error
    print(
        f"no picture: {error}. Pictures need NumPy and Matplotlib, which ./run setup installs, or "
        f"apt: python3-matplotlib. Then: {command}",
        file=sys.stderr,
    )


def picture_and_film(name: str, picture: ModuleType, facts: dict, folder: Path) -> list[Path]:
    """Draws NAME.png by `picture`, which is the app's module, and the film if there are frames."""
    written = [folder / f"{name}.png"]
    picture.draw(facts, written[0])
    if facts.get("film"):
        written.append(folder / "film.gif")
        picture.film(facts, written[1])
    return written


def draw_picture(app: App, facts: dict, folder: Path) -> list[Path]:
    """Draws an app's only picture."""
    (name,) = app.pictures
    importlib.import_module("picture").draw(facts, folder / name)
    return [folder / name]


def read_figures(file: Path) -> dict:
    """The figures in a file of --json."""
    try:
        facts = json.loads(file.read_text())
    except OSError as error:
        raise Misuse(f"{file} can't be read: {error.strerror}; name a file of --json") from error
    except ValueError as error:
        raise Misuse(f"{file} holds no figures: {error}; name a file of --json") from error
    if not isinstance(facts, dict):
        raise Misuse(f"{file} holds no figures: it is no JSON object; name a file of --json")
    return facts


def draw(app: App, figures: Path, folder: Path, beside: Path | None = None) -> bool:
    """Draws the figures, or prints the command that would. False if they can't be drawn."""
    writable(folder / "x")
    facts = read_figures(figures)
    more = [read_figures(beside) if beside else None] if app.beside else []
    try:
        written = app.draw(facts, folder, *more) if app.draw else draw_picture(app, facts, folder)
    except ImportError as error:
        words = [*app.command.split(), "--draw", str(figures)]
        if folder != Path("out", app.name):
            words += ["--out", str(folder)]
        if beside:
            words += ["--beside", str(beside)]
        explain_no_picture(error, shlex.join(words))
        return True
    except ValueError as error:  # of a finished measurement: its figures are kept
        print(f"no picture: {error}", file=sys.stderr)
        return False
    for picture in written:
        print(f"picture     {picture}")
    return True


def run(app: App, arguments: list[str] | None, more: tuple[str, ...] = ()) -> int:
    """The whole front of an app: runs the program with `more` arguments, and draws its figures."""
    options, others = parse(app, arguments)
    if options.draw:
        if others:
            raise Misuse(f"--draw runs no program, so {others[0]} has no effect: leave one out")
        return 0 if draw(app, options.draw, options.out, options.beside) else 1
    if options.beside:
        read_figures(options.beside)  # before a measurement that may take long
    binary = find_binary(app.name)
    given = [word.replace("{out}", str(options.out)) for word in more]

    def work() -> int:
        status = run_binary([str(binary), *given, *others, "--json", str(options.json)])
        if not options.json.exists():
            return status if status in (1, 2) else 1
        print(f"\nfigures     {options.json}")
        if options.plot:
            draw(app, options.json, options.out, options.beside)
        return min(abs(status), 1)

    outputs = [options.json, *(options.out / name for name in app.pictures)]
    return replacing([writable(output) for output in outputs], work)


def main(app: App, arguments: list[str] | None, more: tuple[str, ...] = ()) -> int:
    """The program of a front; returns its exit status."""
    return guarded(app.name, lambda: run(app, arguments, more))
