"""Creation from Fill and Range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops import creation as ops
from tensorplug.ops import diagonals, ranges
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import equal
from tensorplug.ops.movement import expand_dims

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()
decompositions.of(ops.ZEROS_LIKE)(lambda x: ops.zeros(x.shape, dtype=x.dtype))
decompositions.of(ops.ONES_LIKE)(lambda x: ops.ones(x.shape, dtype=x.dtype))


@decompositions.of(ranges.LIN_SPACE)
def linspace(*, start: Scalar, stop: Scalar, num: int, endpoint: bool, dtype: DType) -> Tensor:
    steps = num - 1 if endpoint else num
    if start == stop or steps < 1:
        return ops.full((num,), start, dtype=dtype)
    # A mean weighted by i / steps is exact at both ends and never overflows.
    working = dt.real_part(dtype.compute)
    share = ranges.arange(num, dtype=working) / steps
    if dtype in dt.COMPLEX:
        share = astype(share, dtype)
    return astype((1 - share) * start + share * stop, dtype)


@decompositions.of(diagonals.EYE)
def eye(*, k: int, dtype: DType, out: TensorType) -> Tensor:
    rows, columns = (ranges.arange(size, dtype=dt.int32) for size in out.shape)
    by = max(-out.shape[0], min(k, out.shape[1]))  # fits into int32
    return astype(equal(columns - expand_dims(rows, axis=1), by), dtype)
