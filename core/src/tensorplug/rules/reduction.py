"""Gradients of reductions."""

from __future__ import annotations

from math import prod as product
from typing import TYPE_CHECKING

from tensorplug.contract import shapes
from tensorplug.contract.rules import RuleTable
from tensorplug.ops import extents, joining, movement
from tensorplug.ops import extremes as extremes_ops
from tensorplug.ops import reduction as ops
from tensorplug.ops.creation import ones
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import equal

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor


rules: RuleTable = RuleTable()
rules.stop(extremes_ops.ARG_MAX, because="gives indices")
rules.stop(extremes_ops.ARG_MIN, because="gives indices")
rules.stop(ops.ANY, because="truth values")
rules.stop(ops.ALL, because="truth values")

Axes = tuple[int, ...]


rules.formulas(
    ops.SUM,
    x=lambda dy, x_type, axis: movement.broadcast_to(restore_axes(dy, x_type, axis), x_type.sizes),
)


@rules.vjp(ops.MEAN, "x")
def mean(dy: Tensor, x_type: TensorType, axis: Axes) -> Tensor:
    count = product(x_type.sizes[reduced_axis] for reduced_axis in axis)
    kept = restore_axes(dy, x_type, axis)
    share = kept / count if count else kept  # no division if there are no elements
    return movement.broadcast_to(share, x_type.sizes)


rules.formulas(
    ops.MAX, x=lambda dy, x, out, reduction_indices: _share(dy, x, out, reduction_indices)
)
rules.formulas(ops.MIN, x=lambda dy, x, out, axis: _share(dy, x, out, axis))
rules.formulas(
    ops.PROD, x=lambda dy, x, axis: restore_axes(dy, x.type, axis) * multiply_others(x, axis)
)


def restore_axes(dy: Tensor, x: TensorType, axis: Axes) -> Tensor:
    """Return dy with the reduced axes restored, of length 1."""
    shape = shapes.reduce(x.sizes, axis, keep_dims=True)
    return dy if dy.type.sizes == shape else movement.reshape(dy, shape)


def _share(dy: Tensor, x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    """Share dy equally among the elements that equal the extremum."""
    extreme = extremes(x, out, axis)
    ties = ops.sum(extreme, axis=axis, keepdims=True)
    return restore_axes(dy, x.type, axis) * extreme / ties


def extremes(x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    """Return 1 for each element that equals the extremum, and 0 for the others."""
    return astype(equal(x, restore_axes(out, x.type, axis)), x.dtype)


def multiply_others(x: Tensor, axis: Axes) -> Tensor:
    """Return for each element the product of all others along ``axis``.

    out / x would fail at zeros. This computes a tree of products of pairs, of pairs of pairs and
    so on. On the way down, each child gets its parent's result times its sibling. The result is a
    polynomial in x, so its own gradient is correct at zeros too.
    """
    kept = tuple(index for index in range(x.ndim) if index not in axis)
    rows, count = (
        product(x.shape[dimension] for dimension in kept),
        product(x.shape[dimension] for dimension in axis),
    )
    moved = movement.permute_dims(x, (*kept, *axis))
    level = movement.reshape(moved, (rows, count))
    levels = []
    while level.shape[1] > 1:
        if level.shape[1] % 2:
            level = extents.pad(level, ((0, 0), (0, 1)), 1)
        levels.append(level)
        level = level[:, 0::2] * level[:, 1::2]
    others = ones((rows, min(count, 1)), dtype=x.dtype)
    for below in reversed(levels):
        width = below.shape[1]
        siblings = joining.stack((below[:, 1::2], below[:, 0::2]), axis=2)
        pairs = movement.expand_dims(others[:, : width // 2], axis=2) * siblings
        others = movement.reshape(pairs, (rows, width))
    back = movement.reshape(others[:, :count], moved.shape)
    order = (*kept, *axis)
    return movement.permute_dims(back, [order.index(index) for index in range(x.ndim)])


rules.jvp(ops.MAX, "x")(
    lambda x_dot, x, out, reduction_indices: _average(x_dot, x, out, reduction_indices)
)
rules.jvp(ops.MIN, "x")(lambda x_dot, x, out, axis: _average(x_dot, x, out, axis))


def _average(x_dot: Tensor, x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    """Return the mean tangent of the elements that equal the extremum."""
    extreme = extremes(x, out, axis)
    keep_dims = out.ndim == x.ndim
    ties = ops.sum(extreme, axis=axis, keepdims=keep_dims)
    return ops.sum(x_dot * extreme, axis=axis, keepdims=keep_dims) / ties


@rules.jvp(ops.PROD, "x")
def prod_jvp(x_dot: Tensor, x: Tensor, out: Tensor, axis: Axes) -> Tensor:
    return ops.sum(x_dot * multiply_others(x, axis), axis=axis, keepdims=out.ndim == x.ndim)
