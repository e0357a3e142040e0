"""Exact order reversal, so that a maximum can compute a minimum; limits and range checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.ops.elementwise.comparison import logical_and, logical_not

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.dispatch.tensor import Tensor


def reverse_order(x: Tensor) -> Tensor:
    """Return ``x`` mapped one to one so that its order is reversed; the map is its own inverse.

    For floats it is negation. The most negative integer has no negation, so integers are
    subtracted from -1, or from the largest value if they are unsigned.
    """
    if x.dtype is dt.bool_:
        return logical_not(x)
    if x.dtype in dt.FLOATING:
        return -x
    if x.dtype in dt.SIGNED:
        return -1 - x
    return (1 << 8 * x.dtype.itemsize) - 1 - x


def lowest(dtype: DType) -> Scalar:
    """Return the smallest value of a real ``dtype``: -inf for floats."""
    if dtype in dt.FLOATING:
        return float("-inf")
    bits = 8 * dtype.itemsize
    return 0 if dtype in dt.UNSIGNED else -(1 << (bits - 1))


def highest(dtype: DType) -> Scalar:
    """Return the largest value of a real ``dtype``: inf for floats."""
    if dtype in dt.FLOATING:
        return float("inf")
    bits = 8 * dtype.itemsize
    return (1 << (bits if dtype in dt.UNSIGNED else bits - 1)) - 1


def in_range(numbers: Tensor, size: int) -> Tensor:
    """Return whether each of ``numbers``, a tensor of integers, lies in [0, size): a bool each."""
    within = numbers >= 0
    if size <= numbers.dtype.max:  # otherwise all numbers are below it
        within = logical_and(within, numbers < size)
    return within
