"""Groups computed by NumPy, one operation after another: a compiler that is easy to get wrong."""

from __future__ import annotations

from math import erf, erfc
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions
from tensorplug_conformance.corpus import wide
from tensorplug_conformance.floats import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import DType, Expression, Group
    from tensorplug_conformance.case import Array


_INT64_END: Final = 2.0**63


def _wide_sum(x: Array, **axes: Any) -> Array:
    wide = np.float64 if kind_of(x.dtype) == "f" else x.dtype
    total: Array = np.sum(x, dtype=wide, **axes).astype(x.dtype)
    return total


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
    "sum": _wide_sum,
    "prod": lambda x, **axes: np.prod(x, dtype=x.dtype, **axes),
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
    return x.astype(dtype.numpy)


def evaluate(
    roots: Sequence[Expression],
    parameters: Sequence[Array],
    between: Callable[[Array], Array] | None = None,
) -> list[Array]:
    """Return the values of expressions. ``between`` changes the result of each operation."""
    unified = expressions.unify(roots)
    values: dict[int, Array] = {}
    for node in expressions.linearize(unified):
        operands = [values[id(operand)] for operand in node.operands]
        if node.op == "parameter":
            values[id(node)] = parameters[int(node.value)]  # type: ignore[arg-type]  # a number
            continue
        if node.op == "constant":
            result = np.asarray(node.value).astype(node.dtype.numpy)
        elif node.op == "cast":
            result = _cast(operands[0], node.dtype)
        elif node.op == "bitcast":
            result = (
                np.ascontiguousarray(operands[0]).view(node.dtype.numpy).reshape(operands[0].shape)
            )
        else:
            result = np.asarray(_OPERATIONS[node.op](*operands)).astype(
                node.dtype.numpy, copy=False
            )
        values[id(node)] = result if between is None else between(result)
    return [values[id(root)] for root in unified]


def interpreter(group: Group, between: Callable[[Array], Array] | None = None) -> Any:
    """Return a function that computes ``group``."""
    rank = len(group.shape)
    axes = [
        tuple(axis for axis in range(rank) if reduction.axes[axis])
        for reduction in group.reductions
    ]

    def lengths(spans: Sequence[bool]) -> list[int]:
        return [size if spanned else 1 for size, spanned in zip(group.shape, spans, strict=True)]

    def run(*buffers: Array) -> list[Array]:
        parameters = [
            np.asarray(buffer).reshape(lengths(operand.spans))
            for buffer, operand in zip(buffers, group.inputs, strict=True)
        ]
        with np.errstate(all="ignore"):
            for reduction, along in zip(group.reductions, axes, strict=True):
                (value,) = evaluate([reduction.expression], parameters, between)
                value = np.broadcast_to(value, group.shape)
                reduced = _REDUCTIONS[reduction.op](value, axis=along, keepdims=True)
                parameters.append(np.asarray(reduced))
            results = evaluate(
                [output.expression for output in group.outputs], parameters, between
            )
        return [
            np.array(np.broadcast_to(result, lengths(output.spans))).reshape(output.type.shape)
            for result, output in zip(results, group.outputs, strict=True)
        ]

    return run
