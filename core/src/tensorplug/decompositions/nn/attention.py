"""Scaled dot-product attention and its gradient kernel, with the whole scores in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import shapes
from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.creation import full, zeros
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.unary import log
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import squeeze
from tensorplug.ops.nn import attention as ops
from tensorplug.ops.nn.attention_scores import (
    column,
    exponentials,
    probabilities,
    scores,
    times_transposed,
    transposed_times,
    wide,
)
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(alone=True)


@decompositions.of(ops.ATTENTION)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, TensorType],
) -> list[Tensor]:
    of_y, of_rows = out
    if not k.shape[-2]:  # without keys there is no largest score
        rows = full(of_rows.shape, -float("inf"), dtype=of_rows.dtype)
        return [zeros(of_y.shape, dtype=of_y.dtype), rows]
    parts, top = exponentials(scores(q, k, bias, mask, lengths, causal=causal, scale=scale))
    total = sum_(parts, axis=-1, keepdims=True)
    y = matmul(parts, wide(v)) / where(total == 0.0, 1.0, total)
    return [astype(y, of_y.dtype), squeeze(top + log(total), axis=-1)]


@decompositions.of(ops.ATTENTION_GRAD)
def attention_grad(
    dy: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
    log_sum_exp: Tensor,
    delta: Tensor,
    *,
    causal: bool,
    scale: float,
    out: tuple[TensorType, ...],
) -> list[Tensor]:
    # With dS = P (dy v^T - delta): dq = scale dS k, dk = scale dS^T q, dv = P^T dy.
    q, k, v, dy = map(wide, (q, k, v, dy))
    p = probabilities(scores(q, k, bias, mask, lengths, causal=causal, scale=scale), log_sum_exp)
    ds = p * (times_transposed(dy, v) - column(delta)) * scale
    cotangents = matmul(ds, k), transposed_times(ds, q), transposed_times(p, dy)
    return [_fit(cotangent, type_) for cotangent, type_ in zip(cotangents, out, strict=True)]


def _fit(x: Tensor, type_: TensorType) -> Tensor:
    """Return a gradient of a type, summed over the leading axes that shared the operand."""
    axes = shapes.broadcast_axes(type_.shape, x.shape)
    return astype(sum_(x, axis=axes, keepdims=True) if axes else x, type_.dtype)
