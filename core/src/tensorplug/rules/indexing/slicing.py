"""Gradients of slices and splits: the cotangents go back to the parts' places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.indexing import slicing as ops
from tensorplug.ops.joining import concat, stack

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(ops.UNPACK, value=lambda dy, axis: stack(dy, axis=axis))
rules.formulas(ops.SPLIT_V, x=lambda dy, axis: concat(dy, axis=axis))


rules.formulas(
    ops.STRIDED_SLICE,
    x=lambda dy, x_type, attributes: dispatch(
        ops.STRIDED_SLICE_GRAD, dy, shape=x_type.shape, **attributes
    ),
)


@rules.vjp(ops.STRIDED_SLICE_GRAD, "dy")
def strided_slice_grad(ddy: Tensor, attributes: dict[str, Any]) -> Tensor:
    selected = {name: attributes[name] for name in ops.SLICE_ATTRIBUTES}
    return dispatch(ops.STRIDED_SLICE, ddy, **selected)
