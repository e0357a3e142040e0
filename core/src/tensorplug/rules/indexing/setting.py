"""Gradients of assignments: each place's cotangent goes to the element that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import zeros
from tensorplug.ops.indexing import setting as ops
from tensorplug.ops.indexing.slicing import STRIDED_SLICE

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.STRIDED_SLICE_UPDATE, "tensor")
def wrt_tensor(dy: Tensor, value_type: TensorType, attributes: dict[str, Any]) -> Tensor:
    nothing = zeros(value_type.shape, dtype=dy.dtype)
    return dispatch(ops.STRIDED_SLICE_UPDATE, dy, nothing, **attributes)


rules.formulas(
    ops.STRIDED_SLICE_UPDATE,
    value=lambda dy, attributes: dispatch(STRIDED_SLICE, dy, **attributes),
)
