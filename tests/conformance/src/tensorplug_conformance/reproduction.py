"""Repeats one failure: writes a script that describes it, and runs the case again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tensorplug_conformance.denominator import Row, cases_of, entries
from tensorplug_conformance.examples import example
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.kernels import run_case
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tensorplug_conformance.case import Case
    from tensorplug_conformance.case_entry import CaseEntry

__all__ = ["UnknownCaseError", "reproduce", "script", "write_scripts"]


_LONGEST = 100  # characters of a script's name; an example's tells how the case was varied


class UnknownCaseError(Exception):
    """This suite has no such case; another version of it or of an extension may have."""


def script(report: Mapping[str, Any], row: Mapping[str, Any], failure: Mapping[str, Any]) -> str:
    """Return a Python program that shows the call and runs the case again.

    Its exit code is 1 while the case fails.
    """
    suite, backend = report["suite"], report["backend"]["name"]
    head = [
        f"{row['kernel']} {row['dtype']} {row['mode']}, case {failure['case']!r}",
        *failure["message"].splitlines(),
        f"suite {suite['version']}, seed {suite['seed']}",
    ]
    lines = [f"# {line}".rstrip() for line in head]
    lines += _call(backend, row, failure) if row["mode"] == "native" else []
    lines += [
        "from tensorplug_conformance.reproduction import reproduce",
        "",
        f"WHICH = {(backend, row['kernel'], row['dtype'], row['mode'], failure['case'])!r}",
        f"raise SystemExit(reproduce(*WHICH, seed={suite['seed']}))",
    ]
    return "\n".join(lines) + "\n"


def _call(backend: str, row: Mapping[str, Any], failure: Mapping[str, Any]) -> list[str]:
    """Return the lines that make the call itself, where its inputs are in the report."""
    inputs = _inputs(failure["inputs"])
    if inputs is None:
        return []
    pairs = ", ".join(f"{name!r}: {value}" for name, value in failure["attributes"].items())
    return [
        "import numpy as np",
        "from numpy import inf, nan",
        "",
        "import tensorplug as tp",
        "",
        f"inputs = {inputs}",
        f"with tp.use_backend({backend!r}):",
        f"    print(tp.run_kernel({row['kernel']!r}, inputs, {{{pairs}}}))",
        "",
    ]


def _inputs(inputs: list[Any]) -> str | None:
    """Return the inputs as Python; None where some are too large to be in the report."""
    written = []
    for operand in inputs:
        if operand is None:
            written.append("None")
            continue
        text = _inputs(operand) if isinstance(operand, list) else _array(operand)
        if text is None:
            return None
        written.append(text)
    return f"[{', '.join(written)}]"


def _array(described: Mapping[str, Any]) -> str | None:
    elements, shape = described.get("elements"), tuple(described["shape"])
    if elements is None:
        return None
    if described["dtype"].startswith("StringDType"):
        return f"np.array({elements!r}, np.dtypes.StringDType()).reshape({shape})"
    return f"np.array([{', '.join(elements)}], {described['dtype']!r}).reshape({shape})"


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
    """Run one case again and print the outcome; return 0 if it passes, else 1.

    ``factory``: "module:function" that builds the engine; None for the installed plugins.

    Raises:
        UnknownCaseError: this suite has no such kernel or case.

    """
    row = Row(kernel, dtype, mode)
    entry = entries(extension_tables()).get(kernel)
    if entry is None:
        raise UnknownCaseError(f"this suite has no cases for a kernel {kernel!r}")
    try:
        found = example(entry, row, seed, case) or _case(entry, row, seed, case)
    except (LookupError, TypeError, ValueError):  # not the id of a variation
        found = None
    if found is None:
        raise UnknownCaseError(f"this suite has no case {case!r} of {kernel} in {dtype}")
    session = Session(engine_factory(factory), backend, primitives_only=mode == "decomposed")
    failure = run_case(session, entry, row, found)
    outcome = "passes" if failure is None else failure.message
    print(f"{backend}: {kernel} {dtype} {mode}, case {case!r}: {outcome}")  # noqa: T201  # the answer
    return 0 if failure is None else 1


def _case(entry: CaseEntry, row: Row, seed: int, name: str) -> Case | None:
    return next((case for case in cases_of(entry, row, seed) if case.id == name), None)
