"""Gradients of multiply-add."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops import accumulation as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.MULTIPLY_ADD, "x")
def multiply_add_wrt_x(dy: Tensor, y: Tensor) -> Tensor:
    return dy * y


@rules.vjp(ops.MULTIPLY_ADD, "y")
def multiply_add_wrt_y(dy: Tensor, x: Tensor) -> Tensor:
    return dy * x


@rules.vjp(ops.MULTIPLY_ADD, "z")
def multiply_add_wrt_z(dy: Tensor) -> Tensor:
    return dy
