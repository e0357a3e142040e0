"""The arguments of the commands; completion in shells follows from them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from tensorplug.command_line import new
from tensorplug.system.foreign_text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence


SHELLS: Final = ("bash", "zsh", "fish")
# How a kernel may run on a backend; None, "not possible", has this name as a filter.
HOW: Final = ("native", "widened", "decomposed", "host", "fallback", "not-possible")
_EPILOG: Final = (
    "Exit code: 0 all is well, 1 the answer is no or something failed, 2 wrong arguments, "
    "130 interrupted, 141 the reader of a pipe ended."
)


class Parser(argparse.ArgumentParser):
    """A parser that takes options in full only, and prints no control characters."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and how to call the command; end with 2."""
        super().error(printable(message))


def parse(arguments: Sequence[str] | None, prog: str) -> argparse.Namespace:
    """Return the options of a call; ``command`` is None if only the version is wanted.

    Raises:
        SystemExit: 0 after help, 2 if the arguments are wrong.

    """
    parser = make_parser(prog)
    options = parser.parse_args(arguments)
    if options.command is None and not options.version:
        parser.error("a command is needed; --help describes them")
    return options


def make_parser(prog: str) -> Parser:
    """Return the parser of all commands, which ``prog`` runs."""
    parser = Parser(
        prog=prog,
        description="List plugins, devices and kernels, find out what is wrong, start a plugin.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and end")
    parser.add_argument(
        "--verbose", action="store_true", help="with --version: also those of all plugins"
    )
    parser.add_argument("--json", action="store_true", help="answer in JSON, for programs")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=Parser
    )
    shared = Parser(add_help=False)
    shared.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS,  # or it would undo the one before the command
        help="answer in JSON, for programs",
    )

    def add(name: str, help_text: str, *parents: Parser) -> Parser:
        return commands.add_parser(
            name,
            parents=parents,
            help=help_text,
            description=f"{help_text.capitalize()}.",
            allow_abbrev=False,
        )

    add("backends", "list installed plugins, without importing them", shared)
    devices = add("devices", "list the devices of backends", shared)
    devices.add_argument("backend", nargs="?", metavar="BACKEND", help="only of this one")
    _add_kernels(add("kernels", "list kernels and how they run on a backend", shared))
    _add_explain(add("explain", "say how a kernel or a function runs, and why", shared))
    cure = add("doctor", "try each backend in a separate process", shared)
    cure.add_argument("backend", nargs="?", metavar="BACKEND", help="only this one")
    cure.add_argument(
        "--timeout", type=_seconds, default=120.0, metavar="SECONDS", help="per backend (120)"
    )
    _add_new(add("new", "start a backend or an op of your own"))
    _add_completion(add("completion", "print a script for a shell that completes the commands"))
    return parser


def _add_kernels(parser: Parser) -> None:
    parser.add_argument(
        "kernels",
        nargs="*",
        default=["*"],
        metavar="KERNEL",
        help="only these; a pattern such as 'Conv*' names several; case does not matter",
    )
    parser.add_argument("--backend", metavar="NAME", help="the active one by default")
    parser.add_argument("--dtype", metavar="DTYPE", help="for inputs of this dtype")
    parser.add_argument(
        "--how",
        action="append",
        choices=HOW,
        metavar="HOW",
        help=f"only those that run so: {', '.join(HOW)}; may be repeated",
    )


def _add_explain(parser: Parser) -> None:
    parser.add_argument(
        "kernel",
        metavar="NAME",
        help="a kernel, such as Softmax, or a public function, such as nn.softmax, whose kernels "
        "are listed; without types, those of the call in its documentation",
    )
    parser.add_argument(
        "inputs", nargs="*", metavar="TYPE", help="of an input, such as float32[2,3]; - if absent"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an attribute of the call, or an argument of the function",
    )
    parser.add_argument("--backend", metavar="NAME", help="the active one by default")
    parser.add_argument(
        "--source", action="store_true", help="show the programs that the backend compiles"
    )


def _add_new(parser: Parser) -> None:
    parser.description = (
        "Write a complete, tested distribution tensorplug-NAME: a backend, or an op with its "
        "kernels and gradient."
    )
    parser.add_argument(
        "name", metavar="NAME", help="of the backend or the op, such as acme or acme-gpu"
    )
    kinds = parser.add_mutually_exclusive_group()
    for kind, text in {
        "c": "a backend whose device is a library of C, C++ or Rust",
        "dialect": "a backend whose kernels tensorplug-loops writes for the device's compiler",
        "extension": "an op for other people's backends",
    }.items():
        kinds.add_argument(
            f"--{kind}",
            action="store_const",
            dest="kind",
            const=kind,
            default="backend",
            help=text,
        )
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where to (default: tensorplug-NAME)"
    )
    parser.add_argument(
        "--author", default="", metavar="NAME", help="a name for the package's metadata"
    )
    parser.add_argument(
        "--license", default=new.LICENSE, metavar="SPDX", help=f"default: {new.LICENSE}"
    )


def _add_completion(parser: Parser) -> None:
    parser.epilog = "For bash, in ~/.bashrc: source <(tensorplug completion bash)"
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh, fish")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
