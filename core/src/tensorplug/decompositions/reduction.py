"""Reductions from Sum, Prod and Max."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import extremes
from tensorplug.ops import reduction as ops
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import logical_not
from tensorplug.ops.order import reverse_order

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=())

Axes = tuple[int, ...]


@decompositions.of(ops.MEAN, reads=("axis",))
def mean(x: Tensor, *, axis: Axes, keep_dims: bool) -> Tensor:
    count = float(prod(x.shape[reduced_axis] for reduced_axis in axis))
    return astype(ops.sum(x, axis=axis, keepdims=keep_dims) / count, x.dtype)


@decompositions.of(ops.MIN)
def min_(x: Tensor, *, axis: Axes, keep_dims: bool) -> Tensor:
    return reverse_order(ops.max(reverse_order(x), axis=axis, keepdims=keep_dims))


decompositions.of(extremes.ARG_MIN, alone=True)(
    lambda x, *, axis: extremes.argmax(reverse_order(x), axis=axis)
)


@decompositions.of(ops.ALL)
def all_(x: Tensor, *, axis: Axes, keep_dims: bool) -> Tensor:
    # A product of zeros and ones, unlike their sum, cannot overflow.
    return astype(ops.prod(astype(x, dt.int32), axis=axis, keepdims=keep_dims), dt.bool_)


@decompositions.of(ops.ANY)
def any_(x: Tensor, *, axis: Axes, keep_dims: bool) -> Tensor:
    return logical_not(ops.all(logical_not(x), axis=axis, keepdims=keep_dims))
