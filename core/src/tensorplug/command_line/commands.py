"""The commands: each asks for data, prints it, and returns the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from tensorplug.command_line import completion, doctor, listings, new
from tensorplug.command_line.output import Column, Printer
from tensorplug.command_line.parser import parse
from tensorplug.errors import (
    ArgumentError,
    BackendNotInstalledError,
    DTypeError,
    SettingsError,
    TensorplugError,
)
from tensorplug.system.distributions import backend_cure
from tensorplug.system.foreign_text import message_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence


DONE: Final = 0
NO: Final = 1  # the answer is no, or something failed
WRONG_CALL: Final = 2
# What is wrong with arguments, or with the variables that stand in for them.
_WRONG: Final = (ArgumentError, BackendNotInstalledError, DTypeError, SettingsError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command in this process, and return its exit code.

    Raises:
        SystemExit: 0 after help, 2 if the arguments are wrong.

    """
    options = parse(arguments, "tensorplug")
    return perform(options, Printer(sys.stdout, options.json))


def perform(options: argparse.Namespace, printer: Printer) -> int:
    """Run a command, and return its exit code; errors go to standard error.

    Raises:
        OutputError: the answer cannot be written.

    """
    try:
        return _COMMANDS[options.command](options, printer)
    except TensorplugError as error:
        print(f"error: {message_of(error)}", file=sys.stderr)
        return WRONG_CALL if isinstance(error, _WRONG) else NO


def _version(options: argparse.Namespace, printer: Printer) -> int:
    versions = listings.versions()
    if printer.json:
        printer.data(versions)
        return DONE
    printer.text(f"tensorplug {versions['tensorplug']}")
    if options.verbose:
        printer.text(
            f"Python {versions['python']}, NumPy {versions['numpy']}, {versions['platform']}"
        )
        for line in versions["plugins"]:
            text = "{kind} {name}: {distribution} {version}, {state}".format_map(line)
            printer.text(f"{text}: {line['detail']}" if line["detail"] else text)
    return DONE


def _backends(_options: argparse.Namespace, printer: Printer) -> int:
    lines = listings.installed()
    if not lines and not printer.json:
        printer.text(f"nothing is installed. {backend_cure('cpu')}")
        return DONE
    titles = ("kind", "name", "distribution", "version", "state", "detail")
    _show(printer, lines, [Column(title) for title in titles])
    return DONE


def _devices(options: argparse.Namespace, printer: Printer) -> int:
    lines = listings.devices(options.backend)
    if not lines and not printer.json:
        printer.text(f"no backend is installed. {backend_cure('cpu')}")
    else:
        texts = [
            {**line, "memory": _size(line["memory"]), "hardware": _hardware(line)}
            for line in lines
        ]
        columns = [Column(title) for title in ("device", "state", "memory", "hardware")]
        _show(printer, lines, columns, texts)
    return DONE if any(line["state"] == "ok" for line in lines) else NO


def _hardware(line: Mapping[str, Any]) -> str:
    """Return what there is to say of a device: hardware and driver, and why it is not ok."""
    named = ", ".join(filter(None, (line["hardware"], line["driver"])))
    return "\n".join(filter(None, (named, line["detail"])))


def _kernels(options: argparse.Namespace, printer: Printer) -> int:
    lines = listings.kernels(options.kernels, options.backend, options.dtype, options.how)
    texts = [
        {**line, "how": line["how"] or "not possible", "inputs": _signature(line)}
        for line in lines
    ]
    columns = [Column("kernel"), Column("how"), Column("owner", cut=True)]
    columns += [Column("inputs", cut=True), Column("detail", cut=True)]
    if lines or printer.json:
        _show(printer, lines, columns, texts)
    if not lines:
        print(f"no such kernel runs {' or '.join(options.how)} there", file=sys.stderr)
    return DONE if lines else NO


def _signature(line: Mapping[str, Any]) -> str:
    """Return the inputs of a kernel as text, and its outputs if they have names of their own."""
    outputs = "" if line["outputs"] == ["out"] else f" -> {', '.join(line['outputs'])}"
    return f"{', '.join(line['inputs'])}{outputs}"


def _explain(options: argparse.Namespace, printer: Printer) -> int:
    explanation = listings.explained(
        options.kernel, options.backend, options.inputs, options.set, source=options.source
    )
    if printer.json:
        printer.data(listings.explanation(explanation))
    else:
        printer.text(str(explanation))
    return DONE if explanation.how else NO


def _doctor(options: argparse.Namespace, printer: Printer) -> int:
    lines = doctor.examine(options.backend, options.timeout)
    texts = [
        {**line, "finding": "\n".join(filter(None, (line["finding"], line["advice"])))}
        for line in lines
    ]
    columns = [Column(title) for title in ("backend", "device", "state", "finding")]
    _show(printer, lines, columns, texts)
    return NO if any(line["state"] == "failed" for line in lines) else DONE


def _new(options: argparse.Namespace, printer: Printer) -> int:
    project = new.create(
        options.name, options.kind, options.directory, options.author, options.license
    )
    printer.text(new.advice(project))
    return DONE


def _completion(options: argparse.Namespace, printer: Printer) -> int:
    printer.text(completion.script(options.shell))
    return DONE


def _show(
    printer: Printer,
    lines: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    texts: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Print lines as JSON, or as a table, where ``texts`` take their place."""
    if printer.json:
        printer.data(lines)
    else:
        shown = lines if texts is None else texts
        printer.table(columns, [[line[column.title] for column in columns] for line in shown])


def _size(count: int | None) -> str:
    return "" if count is None else f"{count / 2**30:.1f} GiB"


_COMMANDS: Final[Mapping[str | None, Callable[[argparse.Namespace, Printer], int]]] = {
    None: _version,
    "backends": _backends,
    "devices": _devices,
    "kernels": _kernels,
    "explain": _explain,
    "doctor": _doctor,
    "new": _new,
    "completion": _completion,
}
