"""Attention, with the masks and caches of onnxruntime."""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_onnx.errors import UnsupportedError
from tensorplug_onnx.operators.microsoft.domain import microsoft_rule
from tensorplug_onnx.operators.microsoft.quantized import product_of_integers
from tensorplug_onnx.operators.microsoft.transformers import rotated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_onnx.graph import Node
    from tensorplug_onnx.values import Host

Ints = tuple[int, ...]


def _heads(x: Any, count: int) -> Any:
    """Return [batch, heads, places, features] of [batch, places, heads * features]."""
    if x.shape[2] % count:
        raise ValueError(f"{x.shape[2]} features for {count} heads")
    return tp.permute_dims(tp.reshape(x, (*x.shape[:2], count, -1)), (0, 2, 1, 3))


def _joined(y: Any) -> Any:
    """Return [batch, places, heads * features] of [batch, heads, places, features]."""
    return tp.reshape(tp.permute_dims(y, (0, 2, 1, 3)), (y.shape[0], y.shape[2], -1))


def _of_mask(mask: Any, queries: int, keys: int, batch: int, filter_value: float) -> Any:
    """Return what is added to scores because of a mask.

    Args:
        mask: 1 where there is a key, [batch, keys] or [batch, queries, keys] or, for all places,
            [batch, 1, most, most]; or the lengths [batch]; or ends and beginnings [2 * batch].
        queries: their number, which are the last of the places.
        keys: their number.
        batch: number of texts.
        filter_value: what is added for a key that is hidden.

    """
    if mask.ndim == 1:
        if mask.shape[0] not in (batch, 2 * batch):
            raise UnsupportedError(f"a mask of {mask.shape[0]} numbers for {batch} texts")
        place = tp.arange(keys)
        seen = place < mask[:batch, None]
        if mask.shape[0] == 2 * batch:
            seen = tp.logical_and(seen, place >= mask[batch:, None])
    elif mask.ndim == 4:
        seen = mask[:, :, keys - queries : keys, :keys] != 0
    else:
        seen = mask != 0
    if seen.ndim == 2:
        seen = seen[:, None, None, :]
    elif seen.ndim == 3:
        seen = seen[:, None]
    return tp.where(seen, 0.0, filter_value)


def _causal(queries: int, keys: int) -> Any:
    place = np.arange(queries)[:, None] + keys - queries
    return np.arange(keys) <= place


def _attended(
    q: Any, k: Any, v: Any, added: Sequence[Any], *, causal: int, scale: float | None
) -> Any:
    """Return the attention of heads, with terms that are added to the scores."""
    terms = [one for one in added if one is not None]
    bias = None
    for one in terms:
        bias = one if bias is None else bias + one
    if causal and (bias is not None or q.shape[2] != k.shape[2]):
        seen = tp.asarray(_causal(q.shape[2], k.shape[2]))
        bias = seen if bias is None else tp.where(seen, bias, -tp.inf)
        causal = 0
    return tp.nn.scaled_dot_product_attention(
        q,
        k,
        v,
        bias if bias is None or bias.dtype == tp.bool else tp.astype(bias, q.dtype),
        is_causal=bool(causal),
        scale=1 / sqrt(q.shape[3]) if scale is None else scale,
    )


def _self_attention(
    projected: Any,
    sizes: Sequence[int],
    mask: Any,
    past: Any,
    bias: Any,
    *,
    num_heads: int,
    unidirectional: int,
    mask_filter_value: float,
    scale: float | None,
) -> tuple[Any, Any]:
    """Return the attention of projections side by side, and keys and values with the past's."""
    q, k, v = (_heads(one, num_heads) for one in tp.split(projected, list(sizes), axis=2))
    if past is not None:
        k, v = tp.concat([past[0], k], axis=2), tp.concat([past[1], v], axis=2)
    queries, keys = q.shape[2], k.shape[2]
    hidden = None
    if mask is not None:
        hidden = _of_mask(mask, queries, keys, q.shape[0], mask_filter_value)
    y = _attended(q, k, v, (hidden, bias), causal=unidirectional, scale=scale)
    return _joined(y), None if k.shape != v.shape else tp.stack([k, v])


def _refuse(**used: Any) -> None:
    names = [name for name, value in used.items() if value is not None and value is not False]
    if names:
        raise UnsupportedError(f"{', '.join(names)}: there is no rule for it")


@microsoft_rule("Attention")
def attention(
    x: Any,
    weights: Any,
    bias: Any = None,
    mask: Any = None,
    past: Any = None,
    attention_bias: Any = None,
    past_sequence_length: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Ints | None = None,
    rotary_embedding_dim: int = 0,  # noqa: ARG001  # of do_rotary
    scale: float | None = None,
    unidirectional: int = 0,
) -> Any:
    _refuse(
        do_rotary=bool(do_rotary),
        past_present_share_buffer=bool(past_present_share_buffer),
        past_sequence_length=past_sequence_length,
    )
    projected = tp.matmul(x, weights)
    return _self_attention(
        projected if bias is None else projected + bias,
        qkv_hidden_sizes or (weights.shape[1] // 3,) * 3,
        mask,
        past,
        attention_bias,
        num_heads=num_heads,
        unidirectional=unidirectional,
        mask_filter_value=mask_filter_value,
        scale=scale,
    )


@microsoft_rule("QAttention")
def quantized_attention(
    x: Any,
    weights: Any,
    bias: Any,
    x_scale: Any,
    w_scale: Any,
    mask: Any = None,
    x_zero: Any = None,
    w_zero: Any = None,
    past: Any = None,
    *,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Any:
    """The projections are products of integers; the rest is computed with floats."""
    _refuse(do_rotary=bool(do_rotary), past_present_share_buffer=bool(past_present_share_buffer))
    return _self_attention(
        product_of_integers(x, weights, x_scale, w_scale, x_zero, w_zero, bias),
        (weights.shape[1] // 3,) * 3,
        mask,
        past,
        None,
        num_heads=num_heads,
        unidirectional=unidirectional,
        mask_filter_value=mask_filter_value,
        scale=scale,
    )


@microsoft_rule("MultiHeadAttention")
def multi_head_attention(
    query: Any,
    key: Any = None,
    value: Any = None,
    bias: Any = None,
    mask: Any = None,
    attention_bias: Any = None,
    past_key: Any = None,
    past_value: Any = None,
    past_sequence_length: Any = None,
    cache_indirection: Any = None,
    *,
    node: Node,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Any:
    _refuse(
        past_sequence_length=past_sequence_length,
        cache_indirection=cache_indirection,
        qk=len(node.outputs) > 3 and bool(node.outputs[3]),
    )
    if query.ndim == 5:  # [batch, places, heads, 3, features]
        q, k, v = (tp.permute_dims(query[:, :, :, at], (0, 2, 1, 3)) for at in range(3))
    else:
        size = query.shape[2]
        offsets = None if bias is None else tp.split(bias, [size, size, bias.shape[0] - 2 * size])
        q = _heads(query if offsets is None else query + offsets[0], num_heads)
        if key is None:
            raise ValueError("key is missing, and query is not of rank 5")
        if key.ndim == 5:  # [batch, places, heads, 2, features]
            k, v = (tp.permute_dims(key[:, :, :, at], (0, 2, 1, 3)) for at in range(2))
        elif key.ndim == 4:  # heads of an encoder, computed before
            k, v = key, value
        else:
            both = (key, value) if offsets is None else (key + offsets[1], value + offsets[2])
            k, v = (_heads(one, num_heads) for one in both)
    if past_key is not None:
        k, v = tp.concat([past_key, k], axis=2), tp.concat([past_value, v], axis=2)
    hidden = None
    if mask is not None:
        hidden = _of_mask(mask, q.shape[2], k.shape[2], q.shape[0], mask_filter_value)
    y = _attended(q, k, v, (hidden, attention_bias), causal=unidirectional, scale=scale)
    return _joined(y), k, v


@microsoft_rule("GroupQueryAttention", host=[6])
def group_query_attention(
    query: Any,
    key: Any,
    value: Any,
    past_key: Any,
    past_value: Any,
    lengths: Any,
    total: Host,
    cos: Any = None,
    sin: Any = None,
    position_ids: Any = None,
    attention_bias: Any = None,
    head_sink: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    q_norm_weight: Any = None,
    k_norm_weight: Any = None,
    query_seqlens: Any = None,
    *,
    causal: int = 1,
    do_rotary: int = 0,
    k_norm_epsilon: float | None = None,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    q_norm_epsilon: float | None = None,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float | None = None,
    sliding_window_cache: int = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> Any:
    """The cache is as long as the longest text.

    ``lengths`` counts the tokens of each text after the call, less one; new ones are its last. In
    a first call, texts begin at 0, and what is beyond their lengths is padding.
    """
    _refuse(
        quantized_cache=(k_quant_type, v_quant_type, kv_cache_bit_width) != ("NONE", "NONE", 0),
        k_scale=k_scale,
        v_scale=v_scale,
        query_seqlens=query_seqlens,
        sliding_window_cache=bool(sliding_window_cache),
        qk_output=bool(qk_output),
        norm=None if (q_norm_epsilon or k_norm_epsilon) is None else True,
        q_norm_weight=q_norm_weight,
        k_norm_weight=k_norm_weight,
        causal=not causal,
    )
    del qk_norm_epsilon  # of the weights of norms
    if key is None:
        size = query.shape[2] // (num_heads + 2 * kv_num_heads)
        of_keys = kv_num_heads * size
        query, key, value = tp.split(query, [num_heads * size, of_keys, of_keys], axis=2)
    q, k, v = _heads(query, num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    batch, places = q.shape[0], q.shape[2]
    longest = int(total.reshape(()))
    first = (
        tp.zeros((batch,), dtype=tp.int32)
        if longest == places
        else tp.reshape(tp.astype(lengths, tp.int32), (batch,)) + 1 - places
    )
    place = first[:, None] + tp.arange(places, dtype=tp.int32)
    if do_rotary:
        at = place if position_ids is None else position_ids
        turned = partial(
            rotated, positions=at, cos=cos, sin=sin, interleaved=bool(rotary_interleaved)
        )
        q, k = turned(q), turned(k)
    k, v = (
        _continued(past, new, first, longest) for past, new in ((past_key, k), (past_value, v))
    )
    key_place = tp.arange(k.shape[2], dtype=tp.int32)
    seen = key_place <= place[:, None, :, None]
    if local_window_size >= 0:
        seen = tp.logical_and(seen, key_place > place[:, None, :, None] - local_window_size)
    bias = seen
    if attention_bias is not None:
        rest = k.shape[2] - attention_bias.shape[-1]
        if rest > 0:
            attention_bias = tp.pad(attention_bias, [(0, 0)] * 3 + [(0, rest)])
        bias = tp.where(seen, attention_bias[..., : k.shape[2]], -tp.inf)
    factor = 1 / sqrt(q.shape[3]) if scale is None else scale
    if not softcap and head_sink is None and smooth_softmax <= 0:
        y = tp.nn.scaled_dot_product_attention(
            q, k, v, bias, scale=factor, grouped_query=num_heads != kv_num_heads
        )
    else:
        sink = head_sink if head_sink is not None or smooth_softmax <= 0 else tp.zeros(num_heads)
        y = _with_sink(q, k, v, bias, factor, softcap, sink)
    return _joined(y), k, v


def _continued(past: Any, new: Any, first: Any, longest: int) -> Any:
    """Return a cache with new heads from each text's first new place on."""
    length = longest if past is None else max(longest, past.shape[2])
    shape = (new.shape[0], new.shape[1], length, new.shape[3])
    if past is None:
        cache = tp.zeros(shape, dtype=new.dtype)
    else:
        cache = tp.pad(past, [(0, 0), (0, 0), (0, length - past.shape[2]), (0, 0)])
    return tp.vmap(lambda one, rows, at: tp.dynamic_update_slice(one, rows, (0, at, 0)))(
        cache, new, first
    )


def _with_sink(q: Any, k: Any, v: Any, bias: Any, scale: float, softcap: float, sink: Any) -> Any:
    """Return attention whose scores are capped, or whose weights share with a sink by head."""
    times = q.shape[1] // k.shape[1]
    k, v = (tp.repeat(one, times, axis=1) for one in (k, v))
    scores = tp.matmul(q * scale, k, transpose_b=True)
    if softcap:
        scores = softcap * tp.tanh(scores / softcap)
    scores = tp.where(bias, scores, -tp.inf) if bias.dtype == tp.bool else scores + bias
    if sink is not None:
        column = tp.broadcast_to(
            tp.astype(tp.reshape(sink, (1, -1, 1, 1)), scores.dtype), (*scores.shape[:3], 1)
        )
        scores = tp.concat([scores, column], axis=-1)
    weights = tp.nn.softmax(scores)
    return tp.matmul(weights[..., : k.shape[2]], v)
