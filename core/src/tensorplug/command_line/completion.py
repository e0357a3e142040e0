"""Scripts that complete the commands in bash, zsh and fish.

Commands and options are written into the script; the names of backends, kernels, functions and
dtypes are asked for when they are needed, from the program that the user typed.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tensorplug.command_line.parser import make_parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


WORD: Final = re.compile(r"[\w.-]+", re.ASCII)  # what needs no quotes in any shell
_PROGRAM: Final = "tensorplug"
_DIRECTORY: Final = "DIRECTORY"
# Arguments by their name in the options: what completes them. Those with choices tell them.
_KINDS: Final[Mapping[str, str]] = {
    "backend": "backends",
    "directory": _DIRECTORY,
    "dtype": "dtypes",
    "kernel": "explained",
    "kernels": "kernels",
}


@dataclass(frozen=True, slots=True)
class _Argument:
    """An option or a positional argument.

    ``words``: what completes its value, if it has one: a name of ``--words``, _DIRECTORY, or
    words with spaces between them; "" if nothing does.
    """

    flags: tuple[str, ...]
    name: str
    told: str
    words: str
    valued: bool
    many: bool


@dataclass(frozen=True, slots=True)
class _Command:
    """A command, "" for what stands before one."""

    name: str
    told: str
    options: tuple[_Argument, ...]
    positionals: tuple[_Argument, ...]


def script(shell: str) -> str:
    """Return the script for a shell, to be read at its start."""
    return _SCRIPTS[shell](list(_commands(make_parser(_PROGRAM))))


def _commands(parser: argparse.ArgumentParser) -> Iterator[_Command]:
    """Yield the parser's own arguments as a command without name, then its commands."""
    arguments = [_argument(action) for action in parser._actions if _is_plain(action)]
    options = tuple(argument for argument in arguments if argument.flags)
    positionals = tuple(argument for argument in arguments if not argument.flags)
    yield _Command("", "", options, positionals)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                (command,) = _commands(below)
                yield _Command(name, told[name], command.options, command.positionals)


def _is_plain(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS
    return not hidden and not isinstance(action, argparse._SubParsersAction)


def _argument(action: argparse.Action) -> _Argument:
    choices = " ".join(map(str, action.choices or ()))
    return _Argument(
        flags=tuple(action.option_strings),
        name=str(action.metavar or action.dest),
        told=action.help or "",
        words=choices or _KINDS.get(action.dest, ""),
        valued=action.nargs != 0,
        many=action.nargs == "*",
    )


# bash -----------------------------------------------------------------------------------

# For bash 3.2, too, which macOS has. COMP_WORDS is of no use: bash splits it at = and at :.
_BASH: Final = r"""
# Completion of tensorplug in bash; made by: tensorplug completion bash

_tensorplug_words() {
    "${words[0]/#\~/$HOME}" completion --words "$1" 2>/dev/null
}

# The words for an option's value, or for the argument at a position, of a command.
_tensorplug_values() {
    case "$1 $2" in
@values@
    esac
}

_tensorplug_options() {
    case "$1" in
@options@
    esac
}

_tensorplug_takes_value() {
    case "$1 $2" in
        @valued@) return 0 ;;
    esac
    return 1
}

_tensorplug() {
    local line="${COMP_LINE:0:COMP_POINT}" current prefix="" command="" pending="" word reply
    local position=0 at
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]} - 1]}"
    for ((at = 1; at < ${#words[@]} - 1; at++)); do
        word="${words[at]}"
        if [[ -n "$pending" ]]; then
            pending=""
        elif [[ "$word" == -?* ]]; then
            [[ "$word" != *=* ]] && _tensorplug_takes_value "$command" "$word" && pending="$word"
        elif [[ -z "$command" ]]; then
            command="$word"
        else
            position=$((position + 1))
        fi
    done
    COMPREPLY=()
    if [[ -z "$pending" && "$current" == --*=* ]]; then
        pending="${current%%=*}"
        [[ "$COMP_WORDBREAKS" == *=* ]] || prefix="$pending="
        current="${current#*=}"
    fi
    while IFS= read -r reply; do
        [[ -n "$reply" && "$reply" == "$current"* ]] && COMPREPLY+=("$prefix$reply")
    done < <(
        if [[ -n "$pending" ]]; then
            _tensorplug_values "$command" "$pending"
        elif [[ "$current" == -* ]]; then
            _tensorplug_options "$command"
        elif [[ -z "$command" ]]; then
            printf '%s\n' @commands@
        else
            _tensorplug_values "$command" "$position"
        fi
    )
}

complete -F _tensorplug tensorplug
"""


def _bash(commands: list[_Command]) -> str:
    values, options, valued = [], [], []
    for command in commands:
        flags = " ".join(flag for option in command.options for flag in option.flags)
        options.append(f"        \"{command.name}\") printf '%s\\n' {flags} ;;")
        for option in command.options:
            keys = [f'"{command.name} {flag}"' for flag in option.flags]
            if option.valued:
                valued += keys
                values += [f"        {key}) {_bash_words(option)} ;;" for key in keys]
        for at, argument in enumerate(command.positionals):
            key = f'"{command.name} "*' if argument.many else f'"{command.name} {at}"'
            values.append(f"        {key}) {_bash_words(argument)} ;;")
    names = " ".join(command.name for command in commands if command.name)
    return (
        _BASH.strip()
        .replace("@values@", "\n".join(values))
        .replace("@options@", "\n".join(options))
        .replace("@valued@", "|".join(valued))
        .replace("@commands@", names)
    )


def _bash_words(argument: _Argument) -> str:
    if argument.words == _DIRECTORY:
        return 'compgen -d -- "$current"'
    if argument.words in _KINDS.values():
        return f"_tensorplug_words {argument.words}"
    return f"printf '%s\\n' {argument.words}" if argument.words else ":"


# zsh ------------------------------------------------------------------------------------

_ZSH: Final = r"""
#compdef tensorplug
# Completion of tensorplug in zsh; made by: tensorplug completion zsh

_tensorplug_words() {
    local -a found  # the kind is the last argument, behind options for compadd
    found=(${(f)"$(${program/#\~/$HOME} completion --words ${@[-1]} 2>/dev/null)"})
    compadd "${@[1,-2]}" -a found
}

_tensorplug() {
    local program=$words[1] curcontext=$curcontext state line
    local -a commands
    commands=(
@commands@
    )
    _arguments -C @options@ '1: :->command' '*:: :->arguments'
    case $state in
        command) _describe -t commands command commands ;;
        arguments)
            case $line[1] in
@arguments@
            esac
            ;;
    esac
}

if [[ $funcstack[1] == _tensorplug ]]; then
    _tensorplug "$@"
else
    compdef _tensorplug tensorplug
fi
"""


def _zsh(commands: list[_Command]) -> str:
    whole, *others = commands
    described = [f"        {_quoted(f'{one.name}:{one.told}')}" for one in others]
    arguments = [
        f"                {one.name}) _arguments {' '.join(_zsh_arguments(one))} ;;"
        for one in others
    ]
    return (
        _ZSH.strip()
        .replace("@commands@", "\n".join(described))
        .replace("@options@", " ".join(_zsh_arguments(whole)))
        .replace("@arguments@", "\n".join(arguments))
    )


def _zsh_arguments(command: _Command) -> Iterator[str]:
    """Yield what ``_arguments`` is told of a command."""
    for option in command.options:
        told = re.sub(r"([\[\]:\\])", r"\\\1", option.told)
        for flag in option.flags:
            value = (
                f"=[{told}]:{option.name}:{_zsh_words(option)}" if option.valued else f"[{told}]"
            )
            repeated = "*" if option.valued else ""
            yield _quoted(f"{repeated}{flag}{value}")
    for at, argument in enumerate(command.positionals, start=1):
        place = "*" if argument.many else str(at)
        yield _quoted(f"{place}:{argument.name}:{_zsh_words(argument)}")


def _zsh_words(argument: _Argument) -> str:
    if argument.words == _DIRECTORY:
        return "_files -/"
    if argument.words in _KINDS.values():
        return f"_tensorplug_words {argument.words}"
    return f"({argument.words})" if argument.words else " "


# fish -----------------------------------------------------------------------------------

_FISH: Final = r"""
# Completion of tensorplug in fish; made by: tensorplug completion fish

function __tensorplug_words
    set -l program (string replace -r '^~' -- $HOME (commandline -opc)[1])
    $program completion --words $argv[1] 2>/dev/null
end

complete -c tensorplug -f
"""


def _fish(commands: list[_Command]) -> str:
    names = " ".join(command.name for command in commands if command.name)
    lines = [_FISH.strip()]
    for command in commands:
        seen = f"__fish_seen_subcommand_from {command.name or names}"
        where = f"-n {_quoted(seen if command.name else f'not {seen}')}"
        if command.name:
            free = _quoted(f"not __fish_seen_subcommand_from {names}")
            told = _fish_quoted(command.told)
            lines.append(f"complete -c {_PROGRAM} -n {free} -a {command.name} -d {told}")
        for option in command.options:
            for flag in option.flags:
                kind = "-l" if flag.startswith("--") else "-s"
                name = f"{kind} {flag.lstrip('-')} -d {_fish_quoted(option.told)}"
                value = f" -x{_fish_words(option)}" if option.valued else ""
                lines.append(f"complete -c {_PROGRAM} {where} {name}{value}")
        lines += [
            f"complete -c {_PROGRAM} {where}{_fish_words(argument)}"
            for argument in command.positionals
            if argument.words
        ]
    return "\n".join(lines)


def _fish_words(argument: _Argument) -> str:
    if argument.words == _DIRECTORY:
        return " -a '(__fish_complete_directories)'"
    if argument.words in _KINDS.values():
        return f" -a '(__tensorplug_words {argument.words})'"
    return f" -a {_quoted(argument.words)}" if argument.words else ""


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(text: str) -> str:
    """Return text in single quotes, for bash and zsh; for fish only if it holds none."""
    return "'" + text.replace("'", "'\\''") + "'"


_SCRIPTS: Final[Mapping[str, Callable[[list[_Command]], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
