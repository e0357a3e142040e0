"""What groups mean: an interpreter on NumPy, one operation on whole arrays after another.

It defines the language of loops (``tensorplug.plugin.groups``), and is the oracle of whoever
compiles groups. It evaluates each expression on all elements of the loops at once, so its memory
grows with their number.

Narrow floats are computed in ``DType.compute``. Casts, elementary functions and the ends of
expressions round them.
"""

from __future__ import annotations

from math import erf, erfc, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions, narrowing
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import (
        DType,
        Expression,
        Group,
        GroupInput,
        GroupOutput,
        Reduction,
        Shape,
        groups,
    )
    from tensorplug_conformance.case import Array


_INT64_END: Final = 2.0**63


def _in_float64(reduce: Callable[..., Any]) -> Callable[..., Array]:
    def reduced(x: Array, **axes: Any) -> Array:
        wide = np.float64 if kind_of(x.dtype) == "f" else x.dtype
        return _held(np.asarray(reduce(x, dtype=wide, **axes)), dt.of(x.dtype))

    return reduced


def _on_float64(function: Callable[[float], float]) -> Callable[[Array], Array]:
    vectorized = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(vectorized(x.astype(np.float64))).astype(x.dtype)


def _floor_divide(a: Array, b: Array) -> Array:
    whole = np.floor_divide(a, b)
    if kind_of(a.dtype) != "f":
        return whole
    return np.where(np.isinf(a) & np.isfinite(b), a / b, whole)  # NumPy: NaN


def _divide(a: Array, b: Array) -> Array:
    """Divide; complex numbers in wider ones, as the terms of NumPy's formula may overflow."""
    if a.dtype.kind != "c":
        return np.divide(a, b)
    return np.divide(wide(a), wide(b)).astype(a.dtype)


_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": _in_float64(np.sum),
    "prod": _in_float64(np.prod),
    "max": np.max,
    "min": np.min,
}

_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(np, name) for name in expressions.OPERATIONS if hasattr(np, name)},
    **{name: getattr(np, name) for name in expressions.FUNCTIONS if hasattr(np, name)},
    "divide": _divide,
    "floor_divide": _floor_divide,
    "round": np.rint,
    "fma": lambda a, b, c: a * b + c,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "pow": np.power,
    "erf": _on_float64(erf),
    "erfc": _on_float64(erfc),
}


def _computed(x: Array) -> Array:
    """Return numbers as they are computed with."""
    return x.astype(np.float32) if kind_of(x.dtype) == "f" and x.itemsize == 2 else x


def _held(x: Array, dtype: DType) -> Array:
    """Return numbers rounded to ``dtype``, in which they were computed or which is narrower."""
    return narrowing.convert(x, dtype) if x.dtype != dtype.numpy else x


def _cast(x: Array, dtype: DType) -> Array:
    """Convert as the kernel Cast does: to integers by rounding towards 0, and wrapping."""
    if x.dtype.kind == "c" and dtype not in dt.COMPLEX:
        x = x != 0 if dtype is dt.bool_ else x.real
    if kind_of(x.dtype) == "f" and dtype in dt.INTEGER:
        whole = np.where(np.isfinite(x), np.trunc(x), 0).astype(np.float64)
        if np.all(np.abs(whole) < _INT64_END):
            return whole.astype(np.int64).astype(dtype.numpy)
        wrapped = [int(number) % 2**64 for number in whole.reshape(-1)]
        return np.array(wrapped, np.uint64).reshape(x.shape).astype(dtype.numpy)
    if x.dtype.kind == "c" or x.dtype == bool:
        return x.astype(dtype.numpy)
    return narrowing.convert(x, dtype)


class _Values:
    """The values of a group's parameters, one after another, as arrays that broadcast.

    ``between`` changes the result of each operation: for compilers that are wrong on purpose.
    """

    def __init__(self, shape: Shape, between: Callable[[Array], Array] | None = None) -> None:
        self.shape, self._between = shape, between
        self.parameters: list[Array] = []

    def of(self, roots: Sequence[Expression]) -> list[Array]:
        """Return the values of expressions."""
        return evaluate(roots, self.parameters, self._between, self._axis)

    def over(self, roots: Sequence[Expression], lengths: Sequence[int]) -> list[Array]:
        """Return them for each element along the axes whose length is not 1."""
        return [np.broadcast_to(value, lengths) for value in self.of(roots)]

    def _axis(self, number: int) -> Array:
        lengths = [1] * len(self.shape)
        lengths[number] = self.shape[number]
        return np.arange(self.shape[number]).reshape(lengths)

    def lengths(self, spans: Sequence[bool]) -> list[int]:
        """Return the shape with 1 for the axes that are not spanned."""
        return [size if spanned else 1 for size, spanned in zip(self.shape, spans, strict=True)]

    def positions(
        self, index: Sequence[Expression], spans: groups.Span, shape: Shape
    ) -> _Positions:
        """Return where an index points in an array of ``shape``, in row-major order."""
        flat, inside = np.zeros((), np.int64), np.ones((), np.bool_)
        for at, size in zip(self.over(index, self.lengths(spans)), shape, strict=True):
            inside = inside & (at >= 0) & (at < size)
            flat = flat * size + at
        return _Positions(np.where(inside, flat, 0), inside)

    def read(self, operand: GroupInput, buffer: Array) -> Array:
        """Return the value of an input."""
        if operand.index is None:
            if buffer.size != 1 and not any(operand.spans):  # what an output holds at first
                return buffer
            return buffer.reshape(self.lengths(operand.spans))
        at = self.positions(operand.index, operand.spans, operand.type.shape)
        if operand.outside is None:
            if not np.all(at.inside):
                raise IndexError(f"an index of {operand.type} lies outside, and no value is given")
            return buffer.reshape(-1)[at.flat]
        outside = np.asarray(operand.outside).astype(buffer.dtype)
        flat = buffer.reshape(-1) if buffer.size else outside.reshape(1)
        return np.where(at.inside, flat[at.flat], outside)

    def reduce(self, reduction: Reduction) -> Array:
        """Return the result of a reduction."""
        (value,) = self.over([reduction.expression], self.shape)
        along = tuple(axis for axis, is_reduced in enumerate(reduction.axes) if is_reduced)
        if not reduction.running:
            return np.asarray(_REDUCTIONS[reduction.op](value, axis=along, keepdims=True))
        (axis,) = along
        with_accumulator = _MEETING[reduction.op].accumulate
        wide = _widened(value, reduction.op)
        return np.asarray(with_accumulator(wide, axis=axis)).astype(value.dtype)

    def fold(self, fold: groups.Fold) -> list[Array]:
        """Return the numbers of a fold's state."""
        along = [axis for axis, is_reduced in enumerate(fold.axes) if is_reduced]
        rest = [axis for axis in range(len(self.shape)) if axis not in along]
        size = prod(self.shape[axis] for axis in along)
        kept = [self.shape[axis] for axis in rest]
        elements = [
            value.transpose(*along, *rest).reshape(size, *kept)
            for value in self.over(fold.elements, self.shape)
        ]
        first = [np.broadcast_to(value, (1, *kept)) for value in evaluate(fold.initial, [])]
        state = [np.concatenate(both) for both in zip(first, elements, strict=True)]

        def joined(former: list[Array], latter: list[Array]) -> list[Array]:
            results = evaluate(fold.combine, [*former, *latter], self._between)
            return [np.broadcast_to(each, former[0].shape) for each in results]

        if fold.running:  # each joins what ends before it, of twice the length in each step
            (axis,), step = along, 1
            while step <= size:
                later = joined([each[:-step] for each in state], [each[step:] for each in state])
                state = [np.concatenate([a[:step], b]) for a, b in zip(state, later, strict=True)]
                step *= 2
            return [np.moveaxis(each[1:], 0, axis) for each in state]
        while len(state[0]) > 1:  # neighbours in pairs; of an odd number, the last stays
            count = len(state[0]) // 2 * 2
            pairs = joined([each[:count:2] for each in state], [each[1:count:2] for each in state])
            state = [np.concatenate([a, b[count:]]) for a, b in zip(pairs, state, strict=True)]
        lengths = self.lengths([not is_reduced for is_reduced in fold.axes])
        return [each.reshape(lengths) for each in state]

    def write(self, output: GroupOutput) -> Array:
        """Return an output."""
        lengths = self.lengths(output.spans)
        (value,) = self.over([output.expression], lengths)
        if output.index is None:
            return np.array(value).reshape(output.type.shape)
        at = self.positions(output.index, output.spans, output.type.shape)
        if output.initial is None or output.combine is None:
            raise ValueError("an output at an index has no initial value, or no way to combine")
        if output.initial.op == "parameter":
            held = self.parameters[int(output.initial.value)]  # type: ignore[arg-type]
            initial = held.reshape(output.type.shape)
        else:
            (initial,) = self.of([output.initial])
        result = _widened(np.array(np.broadcast_to(initial, output.type.shape)), output.combine)
        inside = np.broadcast_to(at.inside, value.shape)
        where, values = np.broadcast_to(at.flat, value.shape)[inside], value[inside]
        flat = result.reshape(-1)
        if output.combine == "last":  # NumPy assigns one after another
            flat[where] = values
        else:
            _MEETING[output.combine].at(flat, where, values.astype(flat.dtype))
        return result.astype(output.type.dtype.numpy)


class _Positions(NamedTuple):
    flat: Array
    inside: Array


_MEETING: Final[dict[str, np.ufunc]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _widened(x: Array, op: str) -> Array:
    """Return what is added up or multiplied: narrow floats as float64."""
    return x.astype(np.float64) if op in {"sum", "prod"} and kind_of(x.dtype) == "f" else x


def evaluate(
    roots: Sequence[Expression],
    parameters: Sequence[Array],
    between: Callable[[Array], Array] | None = None,
    index: Callable[[int], Array] | None = None,
) -> list[Array]:
    """Return the values of expressions.

    ``between`` changes the result of each operation; ``index`` gives the indices along an axis.
    """
    unified = expressions.unify(roots)
    values: dict[int, Array] = {}
    for node in expressions.linearize(unified):
        operands = [values[id(operand)] for operand in node.operands]
        if node.op == "parameter":
            values[id(node)] = parameters[int(node.value)]  # type: ignore[arg-type]  # a number
            continue
        if node.op == "axis":
            assert index is not None  # elsewhere than in loops
            values[id(node)] = index(int(node.value))  # type: ignore[arg-type]  # a number
            continue
        if node.op == "constant":
            result = np.asarray(node.value).astype(node.dtype.numpy)
        elif node.op == "cast":
            result = _cast(operands[0], node.dtype)
        elif node.op == "bitcast":
            held = _held(operands[0], node.operands[0].dtype)
            result = np.ascontiguousarray(held).view(node.dtype.numpy).reshape(held.shape)
        else:
            result = np.asarray(_OPERATIONS[node.op](*map(_computed, operands)))
            result = result.astype(node.dtype.compute.numpy, copy=False)
            if node.op in expressions.FUNCTIONS:
                result = _held(result, node.dtype)
        values[id(node)] = result if between is None else between(result)
    return [_held(values[id(root)], root.dtype) for root in unified]


def interpreter(
    group: Group, between: Callable[[Array], Array] | None = None
) -> Callable[..., list[Array]]:
    """Return a function that computes ``group``: of its inputs' arrays, returning its outputs'."""

    def run(*buffers: Array) -> list[Array]:
        values = _Values(group.shape, between)
        known = values.parameters
        starts = [output.initial for output in group.outputs if output.initial is not None]
        whole = {start.value for start in starts if start.op == "parameter"}
        with np.errstate(all="ignore"):
            for number, (operand, buffer) in enumerate(zip(group.inputs, buffers, strict=True)):
                array = np.asarray(buffer)
                known.append(array if number in whole else values.read(operand, array))
            for reduction in group.reductions:
                known.append(values.reduce(reduction))
            for fold in group.folds:
                known += values.fold(fold)
            return [values.write(output) for output in group.outputs]

    return run
