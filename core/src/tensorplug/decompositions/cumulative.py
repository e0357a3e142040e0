"""Running sums and products by scans in doubling steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import cumulative as ops
from tensorplug.ops.elementwise.arithmetic import add, multiply
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.scans import scan

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.CUMSUM)
def cumsum(x: Tensor, *, axis: int, exclusive: bool, reverse: bool, out: TensorType) -> Tensor:
    counted = astype(x, out.dtype, copy=False)  # booleans
    return scan(counted, add, 0, axis=axis, exclusive=exclusive, reverse=reverse)


@decompositions.of(ops.CUMPROD)
def cumprod(x: Tensor, *, axis: int, exclusive: bool, reverse: bool, out: TensorType) -> Tensor:
    counted = astype(x, out.dtype, copy=False)
    return scan(counted, multiply, 1, axis=axis, exclusive=exclusive, reverse=reverse)
