"""Tangents of updates combined by place: sums are linear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.creation import zeros_like
from tensorplug.ops.indexing import scattering as ops

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()


@tangents.wrt(ops.TENSOR_SCATTER_REDUCE, "tensor", "updates")
def scatter_reduce(
    tensor_dot: Tensor | None,
    updates_dot: Tensor | None,
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    reduction: str,
    attributes: dict[str, Any],
) -> Any:
    if reduction != "add":
        return NotImplemented
    return dispatch(
        ops.TENSOR_SCATTER_REDUCE,
        zeros_like(tensor) if tensor_dot is None else tensor_dot,
        indices,
        zeros_like(updates) if updates_dot is None else updates_dot,
        **attributes,
    )
