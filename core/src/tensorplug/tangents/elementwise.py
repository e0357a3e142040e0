"""Tangents of elementwise arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import elementwise as ops

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()
tangents.elementwise(ops.SQUARE, ops.SQUARED_DIFFERENCE, ops.DIV_NO_NAN)
tangents.linear(ops.CAST, "x")
tangents.linear(ops.SELECT, "t", "e")


@tangents.wrt(ops.ADD_N, "xs")
def add_n(xs_dot: list[Tensor | None]) -> Tensor:
    given = [tangent for tangent in xs_dot if tangent is not None]
    return ops.add_n(given) if len(given) > 1 else given[0]
