"""Attention. RotaryEmbedding, LinearAttention and SwiGLU are computed by their bodies in ONNX."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from tensorplug_onnx.executing import Scope
    from tensorplug_onnx.graph import Graph, Node

_PRECISIONS: Final = {1: tp.float32, 10: tp.float16, 11: tp.float64, 16: tp.bfloat16}


@rule("Attention", since=23)
def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    lengths: Any = None,
    *,
    node: Node,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> Any:
    """With ``lengths``, the keys of each example that are not padding are counted there."""
    if (past_key is None) != (past_value is None):
        raise ValueError("past_key and past_value must be given together")
    if lengths is not None and past_key is not None:
        raise ValueError("nonpad_kv_seqlen excludes past_key and past_value")
    joined = q.ndim == 3
    if joined:
        q, k, v = (
            _heads(x, count)
            for x, count in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads))
        )
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"Q, K and V must have rank 3 or 4, not {q.ndim}, {k.ndim}, {v.ndim}")
    offset: Any = 0
    if past_key is not None:
        offset = past_key.shape[2]
        k, v = tp.concat([past_key, k], axis=2), tp.concat([past_value, v], axis=2)
    elif lengths is not None:
        lengths = tp.reshape(lengths, (-1, 1, 1, 1))
        offset = lengths - q.shape[2]
    factor = 1 / sqrt(q.shape[3]) if scale is None else scale
    scores_wanted = len(node.outputs) > 3 and bool(node.outputs[3])
    fused = not scores_wanted and not softcap and _is_usual(softmax_precision, q)
    bounds = (0 if is_causal else -1, left_window_size, right_window_size)
    from_start = fused and bounds == (0, -1, -1) and isinstance(offset, int) and offset == 0
    if from_start:
        bounds = (-1, -1, -1)
    bias = _combined(mask, _visible(q.shape[2], k.shape[2], offset, bounds, lengths), k.shape[2])
    scores = None
    if fused:
        y = tp.nn.scaled_dot_product_attention(
            q,
            k,
            v,
            bias,
            is_causal=from_start,
            scale=factor,
            grouped_query=q.shape[1] != k.shape[1],
        )
    else:
        y, scores = _step_by_step(
            q, k, v, bias, factor, softcap, softmax_precision, qk_matmul_output_mode
        )
    if joined:
        y = tp.reshape(tp.permute_dims(y, (0, 2, 1, 3)), (y.shape[0], y.shape[2], -1))
    return (y, k, v) if scores is None else (y, k, v, scores)


def _heads(x: Any, count: int | None) -> Any:
    """Return [batch, heads, places, features] of [batch, places, heads * features]."""
    if x.ndim != 3 or not count or x.shape[2] % count:
        raise ValueError(f"{list(x.shape)} cannot be split into {count} heads")
    parts = tp.reshape(x, (*x.shape[:2], count, x.shape[2] // count))
    return tp.permute_dims(parts, (0, 2, 1, 3))


def _is_usual(softmax_precision: int | None, q: Any) -> bool:
    """Return whether the fused operator, which uses at least float32, is as precise."""
    wide = tp.float64 if str(q.dtype) == "float64" else tp.float32
    return softmax_precision is None or _PRECISIONS.get(softmax_precision) == wide


def _visible(
    queries: int, keys: int, offset: Any, bounds: tuple[int, int, int], lengths: Any
) -> Any:
    """Return which keys each query sees; None for all.

    Query i has the place ``i + offset`` among the keys. ``bounds``: how far it sees to the right
    because of causality, to the left, to the right; -1 for any distance.
    """
    causal, left, right = bounds
    place = np.arange(queries)[:, None]
    place = place + offset if isinstance(offset, int) else offset + place
    key = np.arange(keys)
    limits = [place >= key - reach for reach in (causal, right) if reach >= 0]
    if left >= 0:
        limits.append(place <= key + left)
    if lengths is not None:
        limits.append(lengths > key)
    if not limits:
        return None
    seen = limits[0]
    for limit in limits[1:]:
        seen = seen & limit
    return None if isinstance(seen, np.ndarray) and seen.all() else tp.asarray(seen)


def _combined(mask: Any, visible: Any, keys: int) -> Any:
    """Return a mask, extended to all keys, that also hides what is not visible."""
    if mask is None:
        return visible
    boolean = mask.dtype == tp.bool
    if mask.shape[-1] < keys:  # even from 1 on: it does not broadcast
        more = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
        mask = tp.pad(mask, more, False if boolean else -np.inf)  # what is added
    if visible is None:
        return mask
    return tp.logical_and(mask, visible) if boolean else tp.where(visible, mask, -tp.inf)


def _step_by_step(
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    scale: float,
    softcap: float,
    softmax_precision: int | None,
    mode: int,
) -> tuple[Any, Any]:
    """Return the result, and the scores after the step of ``mode``."""
    if mode not in (0, 1, 2, 3):
        raise ValueError(f"qk_matmul_output_mode is {mode}")
    stages = [_scores(q, k, scale)]
    stages.append(softcap * tp.tanh(stages[0] / softcap) if softcap else stages[0])
    if bias is None:
        stages.append(stages[1])
    elif bias.dtype == tp.bool:
        stages.append(tp.where(bias, stages[1], -tp.inf))
    else:
        stages.append(stages[1] + bias)
    wide = stages[2] if softmax_precision is None else _cast(stages[2], softmax_precision)
    weights = tp.astype(tp.nn.softmax(wide), q.dtype)
    if bias is not None:
        seen = bias if bias.dtype == tp.bool else bias > -tp.inf
        weights = tp.where(tp.any(seen, axis=-1, keepdims=True), weights, 0)
    stages.append(weights)
    return weights @ _repeated(v, q), stages[mode]


def _scores(q: Any, k: Any, scale: float) -> Any:
    """Return products of queries and keys; both are scaled, so that products do not overflow."""
    if scale < 0:
        return q @ tp.matrix_transpose(_repeated(k, q)) * scale
    return (q * sqrt(scale)) @ tp.matrix_transpose(_repeated(k, q) * sqrt(scale))


def _repeated(x: Any, q: Any) -> Any:
    """Return keys or values, one head for each head of the queries."""
    times, rest = divmod(q.shape[1], x.shape[1])
    if rest:
        raise ValueError(f"{q.shape[1]} heads of Q for {x.shape[1]} of K and V")
    return x if times == 1 else tp.repeat(x, times, axis=1)


def _cast(x: Any, precision: int) -> Any:
    if precision not in _PRECISIONS:
        raise ValueError(f"softmax_precision is {precision}, must be in {list(_PRECISIONS)}")
    return tp.astype(x, _PRECISIONS[precision])


@rule("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scope: Scope,
    prob_mod: Graph | None = None,
    scale: float | None = None,
    score_mod: Graph | None = None,
    softmax_precision: int | None = None,
) -> Any:
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"Q, K and V must have rank 4, not {q.ndim}, {k.ndim}, {v.ndim}")
    scores = _scores(q, k, 1 / sqrt(q.shape[3]) if scale is None else scale)
    default = 11 if str(q.dtype) == "float64" else 1
    scores = _cast(scores, default if softmax_precision is None else softmax_precision)
    weights = tp.nn.softmax(_modified(scores, score_mod, scope))
    weights = _modified(weights, prob_mod, scope)
    return tp.astype(weights @ tp.astype(_repeated(v, q), weights.dtype), v.dtype)


def _modified(x: Any, graph: Graph | None, scope: Scope) -> Any:
    if graph is None:
        return x
    y: Any
    (y,) = scope.run(graph, [x])
    if y.shape != x.shape or y.dtype != x.dtype:
        raise ValueError(f"graph {graph.name!r} made {y.dtype}{y.shape} of {x.dtype}{x.shape}")
    return tp.asarray(y)
