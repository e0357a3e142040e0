"""Running sums and products by scans in doubling steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import cumulative as ops
from tensorplug.ops.elementwise import add, astype, multiply
from tensorplug.ops.scans import scan

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions = DecompositionTable()


def _choose_dtype(x: Tensor, out: TensorType) -> Tensor:
    # A narrow float is rounded once, at the end. Booleans are counted.
    return astype(x, out.dtype.compute)


@decompositions.of(ops.CUMSUM)
def cumsum(x: Tensor, *, axis: int, exclusive: bool, reverse: bool, out: TensorType) -> Tensor:
    wide = _choose_dtype(x, out)
    total = scan(wide, add, 0, axis=axis, exclusive=exclusive, reverse=reverse)
    return astype(total, out.dtype)


@decompositions.of(ops.CUMPROD)
def cumprod(x: Tensor, *, axis: int, exclusive: bool, reverse: bool, out: TensorType) -> Tensor:
    wide = _choose_dtype(x, out)
    total = scan(wide, multiply, 1, axis=axis, exclusive=exclusive, reverse=reverse)
    return astype(total, out.dtype)
