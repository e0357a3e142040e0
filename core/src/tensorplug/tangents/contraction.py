"""The tangent of an Einstein sum: the sum over its operands of the same, with one tangent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.ops import contraction as ops
from tensorplug.ops.elementwise import add_n

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()


@tangents.wrt(ops.EINSUM, "xs")
def einsum(xs_dot: list[Tensor | None], xs: list[Tensor], equation: str) -> Tensor:
    parts = [
        ops.einsum(equation, *xs[:at], tangent, *xs[at + 1 :])
        for at, tangent in enumerate(xs_dot)
        if tangent is not None
    ]
    return add_n(parts) if len(parts) > 1 else parts[0]
