"""Bitwise ops on booleans and on integers in two's complement.

Binary ops broadcast by NumPy's rules and promote their operands to a common dtype; Python
integers are weak. The source is the array API standard 2025.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
]


def _define_binary(name: str, expression: str, accepts: frozenset[DType]) -> KernelSpec:
    return KernelSpec(
        name,
        ("a", "b"),
        inference.broadcast,
        accepts=accepts,
        promote=("a", "b"),
        expression=expression,
    )


BITWISE_AND = _define_binary("BitwiseAnd", "bitwise_and", dt.INTEGER | dt.BOOL)
BITWISE_OR = _define_binary("BitwiseOr", "bitwise_or", dt.INTEGER | dt.BOOL)
BITWISE_XOR = _define_binary("BitwiseXor", "bitwise_xor", dt.INTEGER | dt.BOOL)
INVERT = KernelSpec(
    "Invert", ("x",), inference.same, accepts=dt.INTEGER | dt.BOOL, expression="bitwise_not"
)
LEFT_SHIFT = _define_binary("LeftShift", "bitwise_left_shift", dt.INTEGER)
RIGHT_SHIFT = _define_binary("RightShift", "bitwise_right_shift", dt.INTEGER)


@chained
def bitwise_and(a: Any, b: Any, /) -> Tensor:
    """Return ``a & b`` elementwise: the bits set in both."""
    return dispatch_binary(BITWISE_AND, a, b)


@chained
def bitwise_or(a: Any, b: Any, /) -> Tensor:
    """Return ``a | b`` elementwise: the bits set in either."""
    return dispatch_binary(BITWISE_OR, a, b)


@chained
def bitwise_xor(a: Any, b: Any, /) -> Tensor:
    """Return ``a ^ b`` elementwise: the bits set in exactly one."""
    return dispatch_binary(BITWISE_XOR, a, b)


@chained
def bitwise_invert(x: Any, /) -> Tensor:
    """Return ``~x`` elementwise: ``-1 - x`` of signed integers, ``not x`` of booleans."""
    return dispatch_unary(INVERT, x)


@chained
def bitwise_left_shift(a: Any, b: Any, /) -> Tensor:
    """Return ``a << b`` elementwise: ``a * 2**b`` without the upper bits.

    A shift by the number of bits or more gives 0. So does a negative shift, as in NumPy.
    """
    return dispatch_binary(LEFT_SHIFT, a, b)


@chained
def bitwise_right_shift(a: Any, b: Any, /) -> Tensor:
    """Return ``a >> b`` elementwise: ``floor(a / 2**b)``, which keeps the sign.

    A shift by the number of bits or more gives 0, or -1 if ``a`` is negative. So does a negative
    shift, as in NumPy.
    """
    return dispatch_binary(RIGHT_SHIFT, a, b)
