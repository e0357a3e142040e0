"""Bitwise ops on booleans and on integers in two's complement.

Binary ops broadcast by NumPy's rules and promote their operands to a common dtype; Python
integers are weak. The source is the array API standard 2025.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import chained, dispatch_binary, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

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
def bitwise_and(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a & b`` elementwise: the bits set in both.

    Integers or booleans; their shapes broadcast and their dtypes are promoted.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: floats, complex numbers or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.bitwise_and([0b1100, 0b1010], 0b0110)
        Tensor([4, 2], dtype=int32, device='cpu')
        >>> tp.bitwise_and([True, True], [True, False])
        Tensor([ True, False], dtype=bool, device='cpu')

    """
    return dispatch_binary(BITWISE_AND, a, b)


@chained
def bitwise_or(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a | b`` elementwise: the bits set in either.

    Integers or booleans; their shapes broadcast and their dtypes are promoted.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: floats, complex numbers or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.bitwise_or([0b1100, 0b1010], 0b0110)
        Tensor([14, 14], dtype=int32, device='cpu')

    """
    return dispatch_binary(BITWISE_OR, a, b)


@chained
def bitwise_xor(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a ^ b`` elementwise: the bits set in exactly one.

    Integers or booleans; their shapes broadcast and their dtypes are promoted.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: floats, complex numbers or strings, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.bitwise_xor([0b1100, 0b1010], 0b0110)
        Tensor([10, 12], dtype=int32, device='cpu')
        >>> tp.bitwise_xor([True, True], [True, False])
        Tensor([False,  True], dtype=bool, device='cpu')

    """
    return dispatch_binary(BITWISE_XOR, a, b)


@chained
def bitwise_invert(x: ArrayLike, /) -> Tensor:
    """Return ``~x`` elementwise: ``-1 - x`` of signed integers, ``not x`` of booleans.

    Raises:
        DTypeError: floats, complex numbers or strings.

    Source: the array API standard.

    Examples:
        >>> tp.bitwise_invert([0, 5, -1])
        Tensor([-1, -6,  0], dtype=int32, device='cpu')
        >>> tp.bitwise_invert(tp.asarray([5], dtype="uint8"))
        Tensor([250], dtype=uint8, device='cpu')
        >>> tp.bitwise_invert([True, False])
        Tensor([False,  True], dtype=bool, device='cpu')

    """
    return dispatch_unary(INVERT, x)


@chained
def bitwise_left_shift(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a << b`` elementwise: ``a * 2**b`` without the upper bits.

    A shift by the number of bits or more gives 0. So does a negative shift, as in NumPy.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: anything but integers, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.bitwise_left_shift([1, 3, -1], 2)
        Tensor([ 4, 12, -4], dtype=int32, device='cpu')
        >>> tp.bitwise_left_shift(1, [30, 31, 32])
        Tensor([ 1073741824, -2147483648,           0], dtype=int32, device='cpu')

    """
    return dispatch_binary(LEFT_SHIFT, a, b)


@chained
def bitwise_right_shift(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return ``a >> b`` elementwise: ``floor(a / 2**b)``, which keeps the sign.

    A shift by the number of bits or more gives 0, or -1 if ``a`` is negative. So does a negative
    shift, as in NumPy.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: anything but integers, or dtypes that do not promote.

    Source: the array API standard.

    Examples:
        >>> tp.bitwise_right_shift([12, 13, -13], 2)
        Tensor([ 3,  3, -4], dtype=int32, device='cpu')
        >>> tp.bitwise_right_shift([5, -5], 40)
        Tensor([ 0, -1], dtype=int32, device='cpu')

    """
    return dispatch_binary(RIGHT_SHIFT, a, b)
