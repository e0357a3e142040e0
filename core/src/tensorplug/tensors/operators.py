"""Python's operators on tensors. Each calls one op; they do not handle foreign operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn, SupportsIndex, TypeGuard

import numpy as np

from tensorplug.contract.dtypes import string
from tensorplug.contract.extents import Extent
from tensorplug.dispatch.tensor import Tensor
from tensorplug.ops import matrix_products, movement
from tensorplug.ops.elementwise import arithmetic, comparison, rounding, unary
from tensorplug.ops.elementwise.bitwise import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)

if TYPE_CHECKING:
    from tensorplug.typing import Operand


class Operators:
    """Methods of Tensor. ``&``, ``|``, ``^`` and ``~`` are logical on booleans."""

    __slots__ = ()

    def __hash__(self) -> NoReturn:
        raise TypeError("tensors compare elementwise and cannot be hashed")

    def __neg__(self: Any) -> Tensor:
        return unary.negative(self)

    def __pos__(self: Any) -> Tensor:
        return movement.identity(self)

    def __abs__(self: Any) -> Tensor:
        return unary.abs(self)

    def __round__(self: Any, ndigits: SupportsIndex | None = None) -> Tensor:
        return rounding.round(self, 0 if ndigits is None else ndigits)

    def __invert__(self: Any) -> Tensor:
        return bitwise_invert(self)

    def __add__(self: Any, other: Operand) -> Tensor:
        return arithmetic.add(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __radd__(self: Any, other: Operand) -> Tensor:
        return arithmetic.add(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __sub__(self: Any, other: Operand) -> Tensor:
        return arithmetic.subtract(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rsub__(self: Any, other: Operand) -> Tensor:
        return arithmetic.subtract(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __mul__(self: Any, other: Operand) -> Tensor:
        return arithmetic.multiply(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rmul__(self: Any, other: Operand) -> Tensor:
        return arithmetic.multiply(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __truediv__(self: Any, other: Operand) -> Tensor:
        return arithmetic.divide(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rtruediv__(self: Any, other: Operand) -> Tensor:
        return arithmetic.divide(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __floordiv__(self: Any, other: Operand) -> Tensor:
        return arithmetic.floor_divide(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rfloordiv__(self: Any, other: Operand) -> Tensor:
        return arithmetic.floor_divide(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __mod__(self: Any, other: Operand) -> Tensor:
        return arithmetic.remainder(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rmod__(self: Any, other: Operand) -> Tensor:
        return arithmetic.remainder(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __divmod__(self: Any, other: Operand) -> tuple[Tensor, Tensor]:
        return (self // other, self % other) if isinstance(other, KNOWN) else NotImplemented

    def __rdivmod__(self: Any, other: Operand) -> tuple[Tensor, Tensor]:
        return (other // self, other % self) if isinstance(other, KNOWN) else NotImplemented

    def __pow__(self: Any, other: Operand) -> Tensor:
        return arithmetic.pow(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rpow__(self: Any, other: Operand) -> Tensor:
        return arithmetic.pow(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __matmul__(self: Any, other: Operand) -> Tensor:
        return matrix_products.matmul(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rmatmul__(self: Any, other: Operand) -> Tensor:
        return matrix_products.matmul(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __and__(self: Any, other: Operand) -> Tensor:
        return bitwise_and(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rand__(self: Any, other: Operand) -> Tensor:
        return bitwise_and(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __or__(self: Any, other: Operand) -> Tensor:
        return bitwise_or(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __ror__(self: Any, other: Operand) -> Tensor:
        return bitwise_or(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __xor__(self: Any, other: Operand) -> Tensor:
        return bitwise_xor(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rxor__(self: Any, other: Operand) -> Tensor:
        return bitwise_xor(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __lshift__(self: Any, other: Operand) -> Tensor:
        return bitwise_left_shift(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rlshift__(self: Any, other: Operand) -> Tensor:
        return bitwise_left_shift(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __rshift__(self: Any, other: Operand) -> Tensor:
        return bitwise_right_shift(self, other) if isinstance(other, KNOWN) else NotImplemented

    def __rrshift__(self: Any, other: Operand) -> Tensor:
        return bitwise_right_shift(other, self) if isinstance(other, KNOWN) else NotImplemented

    def __eq__(self: Any, other: object) -> Tensor:  # type: ignore[override]  # elementwise
        if isinstance(other, KNOWN) or _is_text_beside(other, self):
            return comparison.equal(self, other)
        return NotImplemented

    def __ne__(self: Any, other: object) -> Tensor:  # type: ignore[override]  # elementwise
        if isinstance(other, KNOWN) or _is_text_beside(other, self):
            return comparison.not_equal(self, other)
        return NotImplemented

    def __lt__(self: Any, other: Operand | str) -> Tensor:
        if isinstance(other, KNOWN) or _is_text_beside(other, self):
            return comparison.less(self, other)
        return NotImplemented

    def __le__(self: Any, other: Operand | str) -> Tensor:
        if isinstance(other, KNOWN) or _is_text_beside(other, self):
            return comparison.less_equal(self, other)
        return NotImplemented

    def __gt__(self: Any, other: Operand | str) -> Tensor:
        if isinstance(other, KNOWN) or _is_text_beside(other, self):
            return comparison.greater(self, other)
        return NotImplemented

    def __ge__(self: Any, other: Operand | str) -> Tensor:
        if isinstance(other, KNOWN) or _is_text_beside(other, self):
            return comparison.greater_equal(self, other)
        return NotImplemented


# Other classes come here, too: they have reflected operators of their own.
KNOWN: Final[tuple[type[Any], ...]] = (
    *(Tensor, bool, int, float, complex, np.ndarray, np.generic),
    Extent,
)


def _is_text_beside(other: object, tensor: Any) -> TypeGuard[str]:
    """Return whether ``other`` is a ``str`` and the tensor holds strings."""
    return isinstance(other, str) and tensor.dtype is string
