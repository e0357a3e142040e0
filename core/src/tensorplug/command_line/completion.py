"""Completion of the commands in shells, by argcomplete, which the extra ``cli`` brings."""

from __future__ import annotations

import argparse
import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tensorplug.command_line import listings
from tensorplug.command_line.parser import make_parser
from tensorplug.errors import PackageNotInstalledError
from tensorplug.system.distributions import pip_install

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PROGRAM: Final = "tensorplug"
_WORD: Final = re.compile(r"[\w.-]+", re.ASCII)  # what acts on no terminal and in no shell
# Arguments by their name in the options: the kind of words that complete them.
_KINDS: Final[Mapping[str, str]] = {
    "backend": "backends",
    "dtype": "dtypes",
    "kernel": "explained",
    "kernels": "kernels",
}


def script(shell: str) -> str:
    """Return the script for a shell, to be read at its start.

    Raises:
        PackageNotInstalledError: argcomplete is missing.

    """
    try:
        from argcomplete.shell_integration import shellcode  # an extra
    except ImportError as error:
        raise PackageNotInstalledError(
            f"completion needs argcomplete. Try: {pip_install('tensorplug[cli]')}"
        ) from error
    code: str = shellcode([_PROGRAM], use_defaults=False, shell=shell)
    return code.strip()


def offer() -> None:
    """End the process with words for the line in the environment, if a shell asks for them."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    from argcomplete import completers, finders  # the shell has a script that comes from them

    parser = make_parser(_PROGRAM)
    for action in _actions(parser):
        completer: Any = partial(_words, _KINDS.get(action.dest))
        if action.dest == "directory":
            completer = completers.DirectoriesCompleter()
        if not action.choices:
            action.completer = completer  # type: ignore[attr-defined]
    finders.CompletionFinder()(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _words(kind: str | None, **_asked: object) -> list[str]:
    words = listings.words(kind) if kind else []
    return [word for word in words if _WORD.fullmatch(word)]
