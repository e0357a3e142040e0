"""Both kernels written with other ops, for backends without a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.plugin import DecompositionTable, TensorType
from tensorplug_attention.op import ATTENTION, ATTENTION_GRAD
from tensorplug_attention.scores import (
    column,
    probabilities,
    scores,
    times_transposed,
    transposed_times,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug import Tensor

decompositions = DecompositionTable()


@decompositions.of(ATTENTION)
def attention(
    qkv: Sequence[Tensor],
    bias: Tensor | None,
    mask: Tensor | None,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, TensorType],
) -> list[Tensor]:
    """Subtract the largest score of each row, or 0 if there is none, so that nothing overflows."""
    of_y, of_rows = out
    if not qkv[1].shape[-2]:  # without keys there is no largest score
        rows = tp.full(of_rows.shape, -float("inf"), dtype=of_rows.dtype)
        return [tp.zeros(of_y.shape, dtype=of_y.dtype), rows]
    found = scores(qkv, bias, mask, causal=causal, scale=scale)
    top = tp.max(found, axis=-1, keepdims=True)
    top = tp.where(top == -float("inf"), 0.0, top)
    parts = tp.exp(found - top)
    total = tp.sum(parts, axis=-1, keepdims=True)
    y = tp.matmul(parts, wide(qkv[2])) / tp.where(total == 0.0, 1.0, total)
    return [tp.astype(y, of_y.dtype), tp.squeeze(top + tp.log(total), axis=-1)]


@decompositions.of(ATTENTION_GRAD)
def attention_grad(
    dy: Tensor,
    qkv: Sequence[Tensor],
    bias: Tensor | None,
    mask: Tensor | None,
    log_sum_exp: Tensor,
    delta: Tensor,
    *,
    causal: bool,
    scale: float,
) -> list[Tensor]:
    """With dS = P (dy v^T - delta): dq = scale dS k, dk = scale dS^T q, dv = P^T dy."""
    q, k, v = map(wide, qkv)
    dy = wide(dy)
    p = probabilities(scores(qkv, bias, mask, causal=causal, scale=scale), log_sum_exp)
    ds = p * (times_transposed(dy, v) - column(delta)) * scale
    cotangents = tp.matmul(ds, k), transposed_times(ds, q), transposed_times(p, dy)
    return [tp.astype(cotangent, qkv[0].dtype) for cotangent in cotangents]
