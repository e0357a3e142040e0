"""Tangents of scaled dot-product attention.

With S the scores and P = exp(S - log_sum_exp), and dots for tangents,

    S' = scale (q' k^T + q k'^T) + bias'      log_sum_exp' = rowsum(P S')
    y' = P (S' - log_sum_exp') v + P v'
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.ops.elementwise import add, astype
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.nn import attention as ops
from tensorplug.ops.nn.attention_scores import (
    column,
    probabilities,
    scores,
    times_transposed,
    wide,
)
from tensorplug.ops.reduction import sum as sum_

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()


@tangents.wrt(ops.ATTENTION, "q", "k", "v", "bias")
def attention(
    q_dot: Tensor | None,
    k_dot: Tensor | None,
    v_dot: Tensor | None,
    bias_dot: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    y: Tensor,
    log_sum_exp: Tensor,
    causal: Any,
    scale: float,
) -> list[Tensor | None]:
    p = probabilities(scores(q, k, bias, mask, causal=causal, scale=scale), log_sum_exp)
    found = None if v_dot is None else matmul(p, wide(v_dot))
    of_scores = [
        times_transposed(wide(a) * scale, wide(b))
        for a, b in ((q_dot, k), (q, k_dot))
        if a is not None and b is not None
    ]
    if bias_dot is not None:
        of_scores.append(wide(bias_dot))
    if not of_scores:
        return [None if found is None else astype(found, y.dtype), None]
    weighted = p * reduce(add, of_scores)
    of_rows = sum_(weighted, axis=-1)
    along = matmul(weighted - p * column(of_rows), wide(v))
    return [astype(along if found is None else along + found, y.dtype), of_rows]
