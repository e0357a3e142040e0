"""Tangents of sorting: they move with their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import sorting as ops
from tensorplug.ops.indexing.indexing import take_along_axis

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()


@tangents.wrt(ops.TOP_K, "x")
def top_k(x_dot: Tensor, indices: Tensor) -> list[Tensor | None]:
    return [take_along_axis(x_dot, indices, axis=-1), None]


@tangents.wrt(ops.SORT, "x")
def sort(x_dot: Tensor, x: Tensor, axis: int, *, descending: bool) -> Tensor:
    order = ops.argsort(x, axis=axis, descending=descending)
    return take_along_axis(x_dot, order, axis=axis)
