"""Batching of attention: examples are further sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.batching import BatchingTable
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.mapping.derived import align, in_front
from tensorplug.ops.nn import attention as ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()


@batching.of(ops.ATTENTION)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: tuple[TensorType, ...],
) -> Sequence[Tensor]:
    whole = [in_front(x, name in batched, size) for name, x in (("q", q), ("k", k), ("v", v))]
    added = _fitting(bias, mask, out[0].rank, batched)
    return dispatch_multiple(ops.ATTENTION, *whole, *added, **attributes)


@batching.of(ops.ATTENTION_GRAD)
def attention_grad(
    dy: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    log_sum_exp: Tensor,
    delta: Tensor,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: tuple[TensorType, ...],
) -> Sequence[Tensor]:
    given = {"dy": dy, "q": q, "k": k, "v": v, "log_sum_exp": log_sum_exp, "delta": delta}
    *first, rows, last = [in_front(x, name in batched, size) for name, x in given.items()]
    added = _fitting(bias, mask, out[0].rank, batched)
    return dispatch_multiple(ops.ATTENTION_GRAD, *first, *added, rows, last, **attributes)


def _fitting(
    bias: Tensor | None, mask: Tensor | None, rank: int, batched: frozenset[str]
) -> list[Tensor | None]:
    """Return what broadcasts to the scores, which have one axis per axis of q."""
    return [
        align(x, rank) if x is not None and name in batched else x
        for name, x in (("bias", bias), ("mask", mask))
    ]
