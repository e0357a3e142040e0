"""Indexing from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug import dtypes as dt
from tensorplug.ops import indexing as ops
from tensorplug.ops.creation import arange, full
from tensorplug.ops.elementwise import where
from tensorplug.ops.movement import expand_dims
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.dtypes import DType, Scalar
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.ONE_HOT)
def one_hot(
    indices: Tensor, *, depth: int, on_value: Scalar, off_value: Scalar, dtype: DType
) -> Tensor:
    # The classes are counted in the indices' own dtype where they fit, so that uint64 needs
    # no common type with a signed one.
    bits = 8 * indices.dtype.itemsize - (indices.dtype in dt.SIGNED)
    counted = indices.dtype if depth <= 1 << bits else dt.int32
    hit = expand_dims(indices, axis=-1) == arange(depth, dtype=counted)
    return where(hit, full((), on_value, dtype=dtype), full((), off_value, dtype=dtype))
