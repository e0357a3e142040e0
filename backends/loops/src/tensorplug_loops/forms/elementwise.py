"""Kernels whose specs give an expression, and powers of integers."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import (
    Expression,
    Group,
    GroupInput,
    GroupOutput,
    KernelRefusedError,
    KernelSpec,
    TensorType,
    expressions,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.forms.table import Form, FormTable, Operand
from tensorplug_loops.recording import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Shape

forms = FormTable()

_KEPT: Final = 256
_OF_BITS: Final = {specs.CAST: "cast", specs.SELECT: "where"}  # also of dtypes for storage


def _by_expression(spec: KernelSpec) -> Callable[..., Form]:
    """Return a function whose parameters are the spec's inputs, ``attributes`` and ``out``."""
    rule = spec.expression_rule

    @lru_cache(_KEPT)
    def expression(
        dtypes: tuple[DType, ...],
        attributes: tuple[tuple[str, Any], ...],
        _exact: str,  # -0.0 is no 0.0
        out: TensorType,
    ) -> Expression | None:
        values = [expressions.parameter(number, dtype) for number, dtype in enumerate(dtypes)]
        if dt.STORAGE.intersection((*dtypes, out.dtype)):  # rules do not know their bits
            op = _OF_BITS.get(spec)
            return None if op is None else Expression(op, out.dtype, tuple(values))
        return None if rule is None else rule(values, dict(attributes), out)

    def form(*operands: Operand, attributes: dict[str, Any], out: TensorType) -> Form:
        # Calls of other sizes have the same object, by which schedules know it.
        sizes = tuple(map(plain, out.shape)) if rule and rule.reads_output else ()
        type_ = TensorType(out.dtype, sizes)
        items, dtypes = tuple(attributes.items()), tuple([x.dtype for x in operands])
        value = expression(dtypes, items, repr(items), type_)
        if value is None:
            raise KernelRefusedError("it has no expression for these dtypes")
        return _form(spec, operands, value, out)

    kinds = inspect.Parameter
    parameters = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in spec.input_names]
    parameters += [kinds(name, kinds.KEYWORD_ONLY) for name in ("attributes", "out")]
    form.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return form


def _form(
    spec: KernelSpec, operands: Sequence[Operand], value: Expression, out: TensorType
) -> Form:
    inputs = tuple([GroupInput(x.type, _spans(x.shape, out.shape)) for x in operands])
    outputs = (GroupOutput(value, out, (True,) * out.rank),)
    group = Group(spec.name, out.shape, inputs, (), outputs)
    return Form(group, tuple([x.number for x in operands]))


def _spans(shape: Shape, target: Shape) -> tuple[bool, ...]:
    """Return along which axes of the target an array varies that broadcasts to it."""
    if shape == target:
        return (True,) * len(target)
    lead = len(target) - len(shape)
    own = zip(shape, target[lead:], strict=True)
    return (False,) * lead + tuple([length == whole for length, whole in own])


for _spec in specs:
    if _spec.expression_rule is not None and _spec not in (specs.POW, specs.BROADCAST_TO):
        forms.form(_spec)(_by_expression(_spec))


@forms.form(specs.POW)
def power(a: Operand, b: Operand, *, out: TensorType) -> Form:
    """Multiply integers by squaring; 1 / a**-b is rounded towards 0."""
    if out.dtype in dt.FLOATING:
        return _of_floats(a, b, attributes={}, out=out)
    if out.dtype not in dt.INTEGER:
        raise KernelRefusedError("powers are of real numbers")
    return _form(specs.POW, (a, b), _power(out.dtype), out)


_of_floats = _by_expression(specs.POW)


@lru_cache
def _power(dtype: DType) -> Expression:
    x, y = (expressions.parameter(number, dtype) for number in (0, 1))
    value, square = expressions.constant(1, dtype), x
    for bit in range(dtype.bits - (dtype in dt.SIGNED)):
        is_factor = _equal(y & (1 << bit), 1 << bit)
        value = expressions.where(is_factor, value * square, value)
        square = square * square
    if dtype in dt.SIGNED:
        odd = expressions.where(_equal(y & 1, 1), x, 1)
        of_one = expressions.apply("logical_or", _equal(x, 1), _equal(x, -1))
        value = expressions.where(y < 0, expressions.where(of_one, odd, 0), value)
    return value


def _equal(x: Expression, number: int) -> Expression:
    return expressions.apply("equal", x, number)
