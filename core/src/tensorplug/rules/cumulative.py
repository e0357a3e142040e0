"""Gradients of running sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import cumulative as ops
from tensorplug.ops.scans import shift

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.CUMSUM, "x")
def cumsum(dy: Tensor, axis: int, *, exclusive: bool, reverse: bool) -> Tensor:
    return ops.cumsum(dy, axis=axis, exclusive=exclusive, reverse=not reverse)


@rules.vjp(ops.CUMPROD, "x")
def cumprod(dy: Tensor, x: Tensor, axis: int, *, exclusive: bool, reverse: bool) -> Tensor:
    """Return the gradient of a running product.

    It is ``before[k] * q[k]``, where q[k] is the sum over i >= k of dy[i] times the product of
    x[k + 1] ... x[i]. From the end, q[k] = dy[k] + x[k + 1] * q[k + 1], which is solved in steps
    of 1, 2, 4 ... elements. Nothing is divided by x, so zeros are safe, in second gradients too.
    """
    back = 1 if reverse else -1
    before = ops.cumprod(x, axis=axis, exclusive=True, reverse=reverse)
    # Exclusive products do not hold the last x, and x[k] enters from y[k + 1] on.
    passed = shift(dy, axis, back, 0) if exclusive else dy
    factor = shift(x, axis, back, 0)
    step = 1
    while step < x.shape[axis]:
        passed = passed + factor * shift(passed, axis, back * step, 0)
        factor = factor * shift(factor, axis, back * step, 0)
        step *= 2
    return before * passed
