"""The commands, and their output: tables, or JSON for machines."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorplug.command_line import doctor, listings, new
from tensorplug.engine.distributions import INSTALL
from tensorplug.engine.foreign_text import message_of, printable
from tensorplug.errors import TensorplugError
from tensorplug.observers import text_tables
from tensorplug.observers.text_tables import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.command_line.new_names import Kind

__all__ = ["main"]

Lines = list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 if all is well, 1 if something is wrong, 2 for invalid arguments."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.function(options)
    except TensorplugError as error:
        print(f"error: {message_of(error)}", file=sys.stderr)
        return 2
    return code


def _backends(options: argparse.Namespace) -> int:
    _show(listings.installed(), options, empty=f"nothing is installed. Try: {INSTALL['cpu']}")
    return 0


def _kernels(options: argparse.Namespace) -> int:
    lines = listings.kernels(options.pattern, options.backend, options.dtype)
    for line in lines:
        line["inputs"] = ", ".join(line["inputs"])
        line["outputs"] = ", ".join(line["outputs"])
    _show(lines, options)
    return 0


def _explain(options: argparse.Namespace) -> int:
    found = listings.explained(options.kernel, options.backend, options.inputs, options.set)
    if options.json:
        steps = [{"what": what, "outcome": outcome} for what, outcome in found.steps]
        print(
            json.dumps(
                {
                    "kernel": found.kernel,
                    "call": found.call,
                    "backend": found.backend,
                    "how": found.how,
                    "owner": found.owner,
                    "steps": steps,
                    "reason": found.reason,
                },
                indent=1,
            )
        )
    else:
        print(printable(str(found)))
    return 0 if found.how else 1


def _doctor(options: argparse.Namespace) -> int:
    lines = doctor.examine(options.backend, options.timeout)
    _show(lines, options)
    return 1 if any(line["state"] == "failed" for line in lines) else 0


def _new(options: argparse.Namespace) -> int:
    kind: Kind = "extension" if options.extension else "backend"
    project = new.create(options.name, kind, options.directory, options.author, options.license)
    print(new.advice(project))
    return 0


_WHOLE = ("kernel", "name", "state")
_COLOURS = {"ok": "green", "native": "green", "failed": "bold red", "not possible": "red"}


def _show(lines: Lines, options: argparse.Namespace, empty: str = "") -> None:
    """Print lines as a table, or as JSON with ``--json``."""
    if options.json:
        print(json.dumps(lines, indent=1))
        return
    if not lines:
        print(empty)
        return
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    cells = [[printable(str(line[name])) for name in columns] for line in lines]
    try:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table
    except ImportError:  # an extra, for colours only
        titles = [Column(name, whole=name in _WHOLE) for name in columns]
        print(text_tables.table(titles, cells, shutil.get_terminal_size().columns))
        return
    table = Table()
    for name in columns:  # findings may wrap, names may not
        table.add_column(name, no_wrap=name in _WHOLE, overflow="fold")
    for row in cells:
        escaped = map(escape, row)
        table.add_row(
            *(f"[{_COLOURS[cell]}]{cell}[/]" if cell in _COLOURS else cell for cell in escaped)
        )
    Console().print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorplug",
        description="List plugins and kernels, find out what is wrong, start a plugin.",
        epilog="Exit code: 0 all is well, 1 something is wrong, 2 invalid arguments.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="for machines")
    listing = commands.add_parser(
        "backends", parents=[shared], help="list installed plugins, without importing them"
    )
    listing.set_defaults(function=_backends)
    table = commands.add_parser(
        "kernels", parents=[shared], help="list kernels and how they run on a backend"
    )
    table.set_defaults(function=_kernels)
    table.add_argument("pattern", nargs="?", default="*", help="such as 'Conv*'")
    table.add_argument("--backend", metavar="NAME", help="the active one by default")
    table.add_argument("--dtype", help="for inputs of this dtype")
    why = commands.add_parser("explain", parents=[shared], help="say how a kernel runs, and why")
    why.set_defaults(function=_explain)
    why.add_argument("kernel")
    why.add_argument(
        "inputs", nargs="*", metavar="TYPE", help="of an input, such as float32[2,3]; - if absent"
    )
    why.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="attribute")
    why.add_argument("--backend", metavar="NAME", help="the active one by default")
    cure = commands.add_parser(
        "doctor", parents=[shared], help="try each backend in a separate process"
    )
    cure.set_defaults(function=_doctor)
    cure.add_argument("backend", nargs="?", help="only this one")
    cure.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="per backend (120)",
    )
    _add_new(commands.add_parser("new", help="start a backend or an op of your own"))
    return parser


def _add_new(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(function=_new)
    parser.description = (
        "Write a complete, tested distribution tensorplug-NAME: a backend, or an op with its "
        "kernels and gradient."
    )
    parser.add_argument("name", help="of the backend or the op, such as acme or acme-gpu")
    parser.add_argument(
        "--extension", action="store_true", help="an op for other people's backends"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        metavar="DIR",
        help="default: tensorplug-NAME",
    )
    parser.add_argument("--author", default="", help="a name for the package's metadata")
    parser.add_argument(
        "--license", default=new.LICENSE, metavar="SPDX", help=f"default: {new.LICENSE}"
    )
