"""Python's operators on tensors. Each calls one op; they do not handle foreign operands."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tensorplug.contract.dtypes import string
from tensorplug.dispatch.tensor import Tensor
from tensorplug.ops import comparison, elementwise, matrix_products, movement
from tensorplug.ops.bitwise import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)

__all__ = ["Operators"]


class Operators:
    """Methods of Tensor. ``&``, ``|``, ``^`` and ``~`` are logical on booleans."""

    __slots__ = ()

    def __hash__(self) -> NoReturn:
        raise TypeError("tensors compare elementwise and cannot be hashed")

    def __neg__(self) -> Tensor:
        return elementwise.negative(self)

    def __pos__(self) -> Tensor:
        return movement.identity(self)

    def __abs__(self) -> Tensor:
        return elementwise.abs(self)

    def __invert__(self) -> Tensor:
        return bitwise_invert(self)

    def __add__(self, other: Any) -> Tensor:
        return elementwise.add(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __radd__(self, other: Any) -> Tensor:
        return elementwise.add(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __sub__(self, other: Any) -> Tensor:
        return elementwise.subtract(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rsub__(self, other: Any) -> Tensor:
        return elementwise.subtract(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __mul__(self, other: Any) -> Tensor:
        return elementwise.multiply(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rmul__(self, other: Any) -> Tensor:
        return elementwise.multiply(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __truediv__(self, other: Any) -> Tensor:
        return elementwise.divide(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rtruediv__(self, other: Any) -> Tensor:
        return elementwise.divide(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __floordiv__(self, other: Any) -> Tensor:
        return (
            elementwise.floor_divide(self, other) if isinstance(other, KNOWN) else NotImplemented
        )

    def __rfloordiv__(self, other: Any) -> Tensor:
        return (
            elementwise.floor_divide(other, self) if isinstance(other, KNOWN) else NotImplemented
        )

    def __mod__(self, other: Any) -> Tensor:
        return elementwise.remainder(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rmod__(self, other: Any) -> Tensor:
        return elementwise.remainder(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __pow__(self, other: Any) -> Tensor:
        return elementwise.pow(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rpow__(self, other: Any) -> Tensor:
        return elementwise.pow(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __matmul__(self, other: Any) -> Tensor:
        return matrix_products.matmul(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rmatmul__(self, other: Any) -> Tensor:
        return matrix_products.matmul(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __and__(self, other: Any) -> Tensor:
        return bitwise_and(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rand__(self, other: Any) -> Tensor:
        return bitwise_and(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __or__(self, other: Any) -> Tensor:
        return bitwise_or(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __ror__(self, other: Any) -> Tensor:
        return bitwise_or(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __xor__(self, other: Any) -> Tensor:
        return bitwise_xor(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rxor__(self, other: Any) -> Tensor:
        return bitwise_xor(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __lshift__(self, other: Any) -> Tensor:
        return bitwise_left_shift(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rlshift__(self, other: Any) -> Tensor:
        return bitwise_left_shift(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __rshift__(self, other: Any) -> Tensor:
        return bitwise_right_shift(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rrshift__(self, other: Any) -> Tensor:
        return bitwise_right_shift(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]  # elementwise
        if isinstance(other, KNOWN) or _are_texts(self, other):
            return comparison.equal(self, other)
        return NotImplemented

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]  # elementwise
        if isinstance(other, KNOWN) or _are_texts(self, other):
            return comparison.not_equal(self, other)
        return NotImplemented

    def __lt__(self, other: Any) -> Tensor:
        if isinstance(other, KNOWN) or _are_texts(self, other):
            return comparison.less(self, other)
        return NotImplemented

    def __le__(self, other: Any) -> Tensor:
        if isinstance(other, KNOWN) or _are_texts(self, other):
            return comparison.less_equal(self, other)
        return NotImplemented

    def __gt__(self, other: Any) -> Tensor:
        if isinstance(other, KNOWN) or _are_texts(self, other):
            return comparison.greater(self, other)
        return NotImplemented

    def __ge__(self, other: Any) -> Tensor:
        if isinstance(other, KNOWN) or _are_texts(self, other):
            return comparison.greater_equal(self, other)
        return NotImplemented


KNOWN = (Tensor, bool, int, float, complex, np.ndarray, np.generic)


def _are_texts(tensor: Any, other: object) -> bool:
    """Return whether ``other`` is a ``str`` and the tensor holds strings."""
    return isinstance(other, str) and tensor.dtype is string
