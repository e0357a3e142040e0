"""Expressions computed by NumPy, operation by operation, each rounded in its own dtype."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract.expressions import Expression, linearize, unify

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array = np.ndarray[Any, np.dtype[Any]]


def fma_twice(a: Array, b: Array, c: Array) -> Array:
    """Round the product, then the sum."""
    return a * b + c


def fma_once(a: Array, b: Array, c: Array) -> Array:
    """Round the exact sum (to odd in the wider type, so that the second rounding is harmless)."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    if a.dtype == np.float64:
        return _fma_double(a, b, c)
    product = a.astype(wide) * b.astype(wide)  # exact
    addend = c.astype(wide)
    total = product + addend
    # Knuth's error of the sum: where it is not 0 and the last bit of the sum is even, the
    # neighbour towards the exact sum has an odd last bit.
    part = total - product
    off = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    move = np.isfinite(total) & (off != 0) & (bits & 1 == 0)
    away = (off > 0) == (total > 0)
    bits = np.where(move, bits + np.where(away, 1, -1), bits)
    return bits.view(np.float64).astype(a.dtype)


def _fma_double(a: Array, b: Array, c: Array) -> Array:
    """Round once but for ties in float80: the product is exact as a sum of two numbers."""
    wide = np.longdouble
    a_head, b_head = _head(a), _head(b)
    a_tail, b_tail = a - a_head, b - b_head
    parts = [
        a_head.astype(wide) * b_head,
        a_head.astype(wide) * b_tail + a_tail.astype(wide) * b_head,
        a_tail.astype(wide) * b_tail,
    ]
    total = parts[0] + c
    part = total - parts[0]
    off = (parts[0] - (total - part)) + (c - part)
    exact = total + (off + (parts[1] + parts[2]))
    plain = a * b + c
    known = np.isfinite(plain) & np.isfinite(exact) & (exact != 0)  # zeros keep their signs
    return np.where(known, exact, plain).astype(np.float64)


def _head(x: Array) -> Array:
    bits = x.view(np.uint64) & np.uint64(0xFFFF_FFFF_F800_0000)
    return bits.view(np.float64)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "abs": np.abs,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "copysign": np.copysign,
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "where": np.where,
}


def interpret(
    expression: Expression,
    operands: Sequence[Array],
    fma: Callable[[Array, Array, Array], Array] = fma_twice,
) -> Array:
    """Return the value of an expression for arrays in the place of its parameters.

    Functions of ``FUNCTIONS`` must have been expanded.
    """
    (root,) = unify([expression])
    values: dict[int, Array] = {}
    with np.errstate(all="ignore"):
        for node in linearize([root]):
            given = [values[id(operand)] for operand in node.operands]
            value = _compute(node, given, operands, fma)
            assert value.dtype == node.dtype.numpy, (node.op, value.dtype, node.dtype)
            values[id(node)] = value
    return values[id(root)]


def _compute(
    node: Expression,
    given: list[Array],
    operands: Sequence[Array],
    fma: Callable[[Array, Array, Array], Array],
) -> Array:
    dtype = node.dtype.numpy
    if node.op == "parameter":
        return operands[int(node.value)]
    if node.op == "constant":
        return np.asarray(node.value).astype(dtype)
    if node.op == "cast":
        return given[0].astype(dtype)
    if node.op == "bitcast":
        return np.asarray(given[0]).view(dtype)
    if node.op == "fma":
        return fma(*np.broadcast_arrays(*given))
    return np.asarray(_OPERATIONS[node.op](*given))
