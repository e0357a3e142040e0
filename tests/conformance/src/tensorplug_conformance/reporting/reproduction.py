"""Repeats one failure: writes a script that describes it, and runs the case again."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import MARK, Presentation
from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.floats import kind_of
from tensorplug_conformance.reporting.quoting import printable
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.rows import planned, run_case
from tensorplug_conformance.trying.variations import example

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry


_SHOWN = 64  # elements of a result that a script prints; larger ones are shown short
_LONGEST = 100  # characters of a script's name; an example's tells how the case was varied


class UnknownCaseError(Exception):
    """This suite has no such case; another version of it or of an extension may have."""


def script(report: Mapping[str, Any], row: Mapping[str, Any], failure: Mapping[str, Any]) -> str:
    """Return a Python program that shows the call and runs the case again.

    Its exit code is 1 while the case fails. Text from the report enters it only as comments and
    literals, so that a stranger's report cannot add code.
    """
    suite, backend, seed = report["suite"], report["backend"]["name"], int(report["suite"]["seed"])
    head = [
        f"{row['kernel']} {row['dtype']} {row['mode']}, case {failure['case']!r}",
        failure["message"],
        f"suite {suite['version']}, seed {seed}",
    ]
    comment = [
        line for text in head for line in printable("\n".join(text.splitlines())).split("\n")
    ]
    lines = [f"# {line}".rstrip() for line in comment]
    lines += _call(backend, row, failure) if row["mode"] == "native" else []
    lines += [
        "from tensorplug_conformance.reporting.reproduction import reproduce",
        "",
        f"WHICH = {(backend, row['kernel'], row['dtype'], row['mode'], failure['case'])!r}",
        f"raise SystemExit(reproduce(*WHICH, seed={seed}))",
    ]
    return "\n".join(lines) + "\n"


def _call(backend: str, row: Mapping[str, Any], failure: Mapping[str, Any]) -> list[str]:
    """Return the lines that make the call itself, where all of it can be written."""
    try:
        inputs = _inputs(failure["inputs"])
        values = {name: _literal(text) for name, text in failure["attributes"].items()}
    except _NotWrittenError:
        return []
    pairs = ", ".join(f"{name!r}: {value}" for name, value in values.items())
    return [
        "import numpy as np",
        "from numpy import inf, nan",
        "",
        "import tensorplug as tp",
        "",
        f"np.set_printoptions(threshold={_SHOWN})",
        f"inputs = {inputs}",
        f"with tp.use_backend({backend!r}):",
        "    try:",
        f"        print(tp.run_kernel({row['kernel']!r}, inputs, {{{pairs}}}))",
        "    except Exception as error:",
        "        print(repr(error))",
        "",
    ]


class _NotWrittenError(Exception):
    """A call cannot be written: an input is too large for the report, or a value no literal."""


def _inputs(inputs: list[Any]) -> str:
    written = []
    for operand in inputs:
        if operand is None:
            written.append("None")
        else:
            written.append(_inputs(operand) if isinstance(operand, list) else _array(operand))
    return f"[{', '.join(written)}]"


def _array(described: Mapping[str, Any]) -> str:
    name, elements = described["dtype"], described.get("elements")
    if elements is None:
        raise _NotWrittenError
    text = name.startswith("StringDType")
    known = np.dtypes.StringDType() if text else dt.of(name).numpy
    write = _ELEMENT[kind_of(known)]
    try:
        written = ", ".join(write(element) for element in elements)
    except (KeyError, ValueError):  # not as Python writes an element of the dtype
        raise _NotWrittenError from None
    dtype = "np.dtypes.StringDType()" if text else repr(name)
    if known.kind == "V":  # NumPy knows no such name
        dtype = f"tp.{name}.numpy"
    return f"np.array([{written}], {dtype}).reshape({tuple(map(int, described['shape']))})"


def _complex(element: str) -> str:
    number = complex(element)  # written in two parts: nothing else keeps the signs of zeros
    return f"complex({number.real!r}, {number.imag!r})"


_ELEMENT: Final[dict[str, Callable[[str], str]]] = {
    "b": lambda element: str({"True": True, "False": False}[element]),
    "i": lambda element: repr(int(element)),
    "u": lambda element: repr(int(element)),
    "f": lambda element: repr(float(element)),
    "c": _complex,
    "T": repr,
}
"""By the dtype's kind: reads an element and writes it as a literal."""

_LITERALS: Final = (
    ast.Expression, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Load,
    ast.UnaryOp, ast.UAdd, ast.USub,
)  # fmt: skip


def _literal(text: str) -> str:
    """Return ``text`` if it is a literal of Python, or ``inf`` and ``nan`` among such."""
    try:
        tree = ast.parse(text, mode="eval")
        if all(_is_literal(node) for node in ast.walk(tree)):
            return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise _NotWrittenError


def _is_literal(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name):
            return name in ("inf", "nan")
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=complex())):
            return isinstance(left, ast.Constant | ast.UnaryOp)
        case ast.Add() | ast.Sub():
            return True  # of a complex number
        case _:
            return isinstance(node, _LITERALS)


def write_scripts(report: Mapping[str, Any], folder: Path) -> int:
    """Write a script for every described failure into ``folder``; return how many."""
    count = 0
    for row in report["rows"]:
        for failure in row["failures"]:
            parts = (row["kernel"], row["dtype"], row["mode"], failure["case"])
            name = re.sub(r"[^A-Za-z0-9]+", "-", " ".join(parts)).strip("-")[:_LONGEST]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.py").write_text(script(report, row, failure), "utf-8")
            count += 1
    return count


def reproduce(
    backend: str,
    kernel: str,
    dtype: str,
    mode: Any,
    case: str,
    *,
    seed: int = 0,
    factory: str | None = None,
) -> int:
    """Run one case again; print what is wrong, then the verdict; return 0 if it passes, else 1.

    ``factory``: "module:function" that builds the engine; None for the installed plugins.

    Raises:
        UnknownCaseError: this suite has no such kernel or case.

    """
    row = Row(kernel, dtype, mode)
    entry = entries(extension_tables()).get(kernel)
    if entry is None:
        raise UnknownCaseError(f"this suite has no cases for a kernel {kernel!r}")
    try:
        example_case = example(entry, row, seed, case) or case_named(entry, row, seed, case)
    except (LookupError, TypeError, ValueError):  # not the id of a variation
        example_case = None
    if example_case is None:
        raise UnknownCaseError(f"this suite has no case {case!r} of {kernel} in {dtype}")
    session = Session(
        engine_factory(factory),
        backend,
        primitives_only=mode == "decomposed",
        falls_back=mode == "native",  # layouts may need kernels that a partial backend lacks
    )
    failure = run_case(session, entry, row, example_case)
    what = f"{backend}: {kernel} {dtype} {mode}, case {case!r}"
    lines = [] if failure is None else [failure.message]
    outcome = "passes" if failure is None else "fails"
    if failure is not None and failure.tolerated:
        outcome = "fails strictly, and passes within a vendor's bounds"
    print(*lines, f"{what}: {outcome}", sep="\n", flush=True)  # noqa: T201  # the answer
    return 0 if failure is None else 1


def case_named(entry: CaseEntry, row: Row, seed: int, name: str) -> Case | None:
    """Return the case of that name: with all its presentations, or the one that the name tells."""
    base, _, presentation_id = name.partition(MARK)
    cases = planned(entry, row, cases_of(entry, row, seed)).cases
    first = next((case for case in cases if case.id == base), None)
    if first is None or not presentation_id:
        return first
    return replace(first, presentations=(Presentation.of(presentation_id),))
