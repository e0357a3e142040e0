"""Gradients of diagonals and bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops import diagonals as ops
from tensorplug.ops.extents import pad
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.MATRIX_BAND_PART, "num_lower", "num_upper", because="whole numbers")


@rules.vjp(ops.DIAG, "x")
def diag(dy: Tensor, x_type: TensorType) -> Tensor:
    # With n zeros after its n * n elements, a matrix has rows of n + 1 that begin on the diagonal.
    n = x_type.size
    rows = reshape(pad(reshape(dy, (n * n,)), [(0, n)]), (n, n + 1))
    return reshape(slice_(rows, (0, 0), (n, 1)), x_type.shape)


rules.formulas(
    ops.MATRIX_BAND_PART,
    input=lambda dy, num_lower, num_upper: ops.band_part(dy, num_lower, num_upper),
)
rules.formulas(ops.TRIANGLE, x=lambda dy, upper, k: dispatch(ops.TRIANGLE, dy, upper=upper, k=k))
