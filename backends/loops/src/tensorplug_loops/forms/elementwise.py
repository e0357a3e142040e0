"""Kernels whose specs give an expression, and powers of integers."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import (
    Expression,
    KernelRefusedError,
    KernelSpec,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.loops import Loops
from tensorplug_loops.forms.table import Form, FormTable, Operand

if TYPE_CHECKING:
    from collections.abc import Callable

forms = FormTable()


def _by_expression(spec: KernelSpec) -> Callable[..., Form]:
    """Return a function whose parameters are the spec's inputs, ``attributes`` and ``out``."""

    def form(*operands: Operand, attributes: dict[str, Any], out: TensorType) -> Form:
        values = [expressions.parameter(at, x.dtype) for at, x in enumerate(operands)]
        rule = spec.expression_rule
        value = None if rule is None else rule(values, attributes, out)
        if value is None:
            raise KernelRefusedError("it has no expression for these dtypes")
        loops = Loops(out.shape)
        for x in operands:
            loops.read_broadcast(x)
        return loops.write(out, value)

    kinds = inspect.Parameter
    parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in spec.input_names]
    parameters += [kinds(name, kinds.KEYWORD_ONLY) for name in ("attributes", "out")]
    form.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return form


for _spec in specs:
    if _spec.expression_rule is not None and _spec is not specs.POW:
        forms.form(_spec)(_by_expression(_spec))


@forms.form(specs.POW)
def power(a: Operand, b: Operand, *, out: TensorType) -> Form:
    """Multiply integers by squaring; 1 / a**-b is rounded towards 0."""
    loops = Loops(out.shape)
    x, y = loops.read_broadcast(a), loops.read_broadcast(b)
    if out.dtype in dt.FLOATING:
        return loops.write(out, expressions.function("pow", x, y))
    if out.dtype not in dt.INTEGER:
        raise KernelRefusedError("powers are of real numbers")
    value, square = expressions.constant(1, out.dtype), x
    for bit in range(out.dtype.bits - (out.dtype in dt.SIGNED)):
        is_factor = _equal(y & (1 << bit), 1 << bit)
        value = expressions.where(is_factor, value * square, value)
        square = square * square
    if out.dtype in dt.SIGNED:
        odd = expressions.where(_equal(y & 1, 1), x, 1)
        of_one = expressions.apply("logical_or", _equal(x, 1), _equal(x, -1))
        value = expressions.where(y < 0, expressions.where(of_one, odd, 0), value)
    return loops.write(out, value)


def _equal(x: Expression, number: int) -> Expression:
    return expressions.apply("equal", x, number)
