"""Gradients of sorting: each picked value goes back to where it was picked."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug import dtypes as dt
from tensorplug.ops import sorting as ops
from tensorplug.ops.creation import arange
from tensorplug.ops.indexing import scatter_nd
from tensorplug.ops.movement import reshape
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.spec import TensorType
    from tensorplug.tensor import Tensor

gradients = GradientTable()


@gradients.wrt(ops.TOP_K, "x")
def top_k(dy_values: Tensor, indices: Tensor, x_type: TensorType, k: int) -> Tensor:
    rows, length = prod(x_type.shape[:-1]), x_type.shape[-1]
    starts = reshape(arange(rows, dtype=dt.int32) * length, (rows, 1))
    places = reshape(indices, (rows, k)) + starts
    flat = scatter_nd(
        reshape(places, (rows * k, 1)), reshape(dy_values, (rows * k,)), (rows * length,)
    )
    return reshape(flat, x_type.shape)
