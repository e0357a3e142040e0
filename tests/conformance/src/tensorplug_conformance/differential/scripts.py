"""A script that shows in which call two backends part, and what it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance import SUITE_VERSION
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.differential.caller import answer
from tensorplug_conformance.differential.judging import judge_call, plain_attributes
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.floats import kind_of
from tensorplug_conformance.reporting.quoting import printable
from tensorplug_conformance.session import Session, engine_factory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.differential.comparison import Finding


_MOST: Final = 4096  # elements of an array that are written one by one


def script(ours: str, theirs: str, finding: Finding) -> str:
    """Return a Python program that makes the call on both backends and judges the outputs.

    Its exit code is 1 while they part. Empty if the call cannot be written: an array is large
    and not constant, or one call alone does not show it.
    """
    values = plain_attributes(finding.attributes)
    inputs = literal(finding.operands)
    if not finding.shrunk or not all(map(_is_literal, values.values())) or inputs is None:
        return ""
    comment = [
        f"{ours} and {theirs} part in {finding.text}",
        f"called at {finding.place}" if finding.place else "",
        *(f"{name}: {fault}" for name, fault in zip((ours, theirs), finding.faults, strict=True)
          if fault),
        f"suite {SUITE_VERSION}",
    ]  # fmt: skip
    lines = [f"# {line}" for text in comment if text for line in printable(text).splitlines()]
    lines += [
        "import numpy as np",
        "from numpy import inf, nan",
        "",
        "import tensorplug as tp",
        "from tensorplug_conformance.differential.scripts import repeat",
        "",
        f"inputs = {inputs}",
        f"attributes = {values!r}",
        f"for backend in ({ours!r}, {theirs!r}):",
        "    with tp.use_backend(backend):",
        f"        print(backend, tp.run_kernel({finding.kernel!r}, inputs, attributes))",
        f"raise SystemExit(repeat({ours!r}, {theirs!r}, {finding.kernel!r}, inputs, attributes))",
    ]
    return "\n".join(lines) + "\n"


def repeat(
    ours: str,
    theirs: str,
    kernel: str,
    operands: Sequence[Any],
    attributes: dict[str, Any],
    *,
    factory: str | None = None,
) -> int:
    """Make one call on two backends and print the verdict; return 1 if they part, else 0.

    ``factory``: "module:function" that builds the second engine; None for the installed plugins.
    """
    sessions = Session(engine_factory(None), ours), Session(engine_factory(factory), theirs)
    one, other = (answer(session, kernel, operands, attributes) for session in sessions)
    if one.outputs is None or other.outputs is None:
        faults = one.error, other.error
    else:
        entry = entries(extension_tables()).get(kernel)
        faults = judge_call(entry, operands, attributes, one.outputs, other.outputs).faults
    for name, fault in zip((ours, theirs), faults, strict=True):
        print(f"{name}: {fault or 'right'}")  # noqa: T201  # the answer
    return int(any(faults))


def written(array: Array) -> str | None:
    """Return an array as an expression of Python; None if it is large and not constant."""
    kind = kind_of(array.dtype)
    shape = tuple(map(int, array.shape))
    if kind == "T":
        dtype = "np.dtypes.StringDType()"
    elif array.dtype.kind == "V":  # NumPy knows no such name
        dtype = f"tp.{dt.of(array.dtype).name}.numpy"
    else:
        dtype = repr(str(array.dtype))
    elements = [_element(value) for value in np.ravel(array).tolist()]
    if len(elements) > 1 and len(set(elements)) == 1:
        return f"np.full({shape}, {elements[0]}, {dtype})"
    if len(elements) > _MOST:
        return None
    text = f"np.array([{', '.join(elements)}], {dtype})"
    return text if len(shape) == 1 else f"{text}.reshape({shape})"


def _element(value: Any) -> str:
    if isinstance(value, complex):  # written in two parts: nothing else keeps the signs of zeros
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)


def literal(operands: Sequence[Any]) -> str | None:
    """Return the inputs of a call as an expression; None if they cannot be written."""
    parts = [_operand(operand) for operand in operands]
    return None if None in parts else f"[{', '.join(map(str, parts))}]"


def _operand(operand: Any) -> str | None:
    if operand is None:
        return "None"
    return literal(operand) if isinstance(operand, list) else written(operand)


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_literal, value))
    return value is None or type(value) in (bool, int, float, complex, str)


def described(kernel: str, attributes: Mapping[str, Any], operands: Sequence[Any]) -> str:
    """Return a call as one line, with its inputs where they are short."""
    parts = [_operand(operand) or "..." for operand in operands]
    parts += [f"{name}={value!r}" for name, value in plain_attributes(attributes).items()]
    return f"{kernel}({', '.join(parts)})"
