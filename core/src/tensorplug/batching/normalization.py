"""Batching of softmax, losses of classes, and normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.batching import BatchingTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import align, in_front
from tensorplug.ops.nn import activation, cross_entropy, normalization
from tensorplug.ops.nn import layer_normalization as ops

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()

batching.leading(activation.SOFTMAX, "dim")
batching.leading(activation.LOG_SOFTMAX, "axis")
batching.leading(cross_entropy.SOFTMAX_GRAD, "dim")
batching.leading(cross_entropy.SOFTMAX_CROSS_ENTROPY)
batching.leading(cross_entropy.SOFTMAX_CROSS_ENTROPY_GRAD)
batching.leading(cross_entropy.SPARSE_SOFTMAX_CROSS_ENTROPY)
batching.leading(cross_entropy.SPARSE_SOFTMAX_CROSS_ENTROPY_GRAD)
batching.leading(normalization.LRN)
batching.leading(normalization.LRN_GRAD)
batching.leading(ops.LAYER_NORM_GRAD, "axis")


@batching.of(ops.LAYER_NORM)
def layer_norm(
    x: Tensor,
    scale: Tensor | None,
    offset: Tensor | None,
    *,
    axis: tuple[int, ...],
    epsilon: float,
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    return dispatch(
        ops.LAYER_NORM,
        in_front(x, "x" in batched, size),
        align(scale, out.rank) if scale is not None and "scale" in batched else scale,
        align(offset, out.rank) if offset is not None and "offset" in batched else offset,
        axis=tuple(place + 1 for place in axis),
        epsilon=epsilon,
    )


@batching.of(normalization.FUSED_BATCH_NORM)
def fused_batch_norm(
    x: Tensor,
    scale: Tensor | None,
    offset: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    given = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    parameters = [
        align(value, out.rank) if value is not None and name in batched else value
        for name, value in given.items()
    ]
    whole = in_front(x, "x" in batched, size)
    return dispatch(normalization.FUSED_BATCH_NORM, whole, *parameters, **attributes)
