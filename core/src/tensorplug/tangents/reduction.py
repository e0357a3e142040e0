"""Tangents of reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.gradients.reduction import extremes, multiply_others
from tensorplug.ops import reduction as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

    Axes = tuple[int, ...]

tangents: TangentTable = TangentTable()
tangents.linear(ops.SUM, "x")
tangents.linear(ops.MEAN, "x")


@tangents.wrt(ops.MAX, "x")
def max_(x_dot: Tensor, x: Tensor, out: Tensor, reduction_indices: Axes) -> Tensor:
    return _average(x_dot, x, out, reduction_indices)


@tangents.wrt(ops.MIN, "x")
def min_(x_dot: Tensor, x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    return _average(x_dot, x, out, axis)


def _average(x_dot: Tensor, x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    """Return the mean tangent of the elements that equal the extremum."""
    extreme = extremes(x, out, axis)
    keep_dims = out.ndim == x.ndim
    ties = ops.sum(extreme, axis=axis, keepdims=keep_dims)
    return ops.sum(x_dot * extreme, axis=axis, keepdims=keep_dims) / ties


@tangents.wrt(ops.PROD, "x")
def prod(x_dot: Tensor, x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    return ops.sum(x_dot * multiply_others(x, axis), axis=axis, keepdims=out.ndim == x.ndim)
