"""Normalizations, activations and embeddings of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_onnx.operators.microsoft.domain import microsoft_rule

if TYPE_CHECKING:
    from tensorplug_onnx.graph import Node


@microsoft_rule("Gelu")
def gelu(x: Any) -> Any:
    return tp.nn.gelu(x)


@microsoft_rule("BiasGelu")
def gelu_of_sum(x: Any, bias: Any) -> Any:
    return tp.nn.gelu(x + bias)


@microsoft_rule("FastGelu")
def fast_gelu(x: Any, bias: Any = None) -> Any:
    return tp.nn.gelu(x if bias is None else x + bias, approximate=True)


@microsoft_rule("QuickGelu")
def quick_gelu(x: Any, *, alpha: float = 1.702) -> Any:
    return x * tp.nn.sigmoid(alpha * x)


@microsoft_rule("BiasSplitGelu")
def split_gelu(x: Any, bias: Any) -> Any:
    left, right = tp.split(x + bias, 2, axis=-1)
    return left * tp.nn.gelu(right)


@microsoft_rule("BiasAdd")
def add_bias(x: Any, bias: Any, skip: Any) -> Any:
    return x + bias + skip


@microsoft_rule("BiasSoftmax")
def softmax_of_sum(x: Any, bias: Any, *, axis: int = 1, is_inner_broadcast: int) -> Any:
    """All axes from ``axis`` on are one; the bias lacks the first ones, or those before it."""
    first = axis % x.ndim
    if is_inner_broadcast:
        lead = bias.ndim - (x.ndim - first)
        missing = first - lead
        shape = (*bias.shape[:lead], *(1,) * missing, *bias.shape[lead:])
        bias = tp.reshape(bias, shape) if missing > 0 else bias
    total = x + bias
    return tp.reshape(tp.nn.softmax(tp.reshape(total, (*x.shape[:first], -1))), x.shape)


def _wide(x: Any) -> Any:
    """Return floats in which statistics are computed."""
    return tp.astype(x, tp.float32) if tp.finfo(x.dtype).bits < 32 else x


def _rms(x: Any, scale: Any, epsilon: float, axes: tuple[int, ...] = (-1,)) -> tuple[Any, Any]:
    """Return x over the root of its mean square, scaled; and one over the root."""
    wide = _wide(x)
    inverse = tp.rsqrt(tp.mean(wide * wide, axis=axes, keepdims=True) + epsilon)
    return tp.astype(wide * inverse, x.dtype) * scale, inverse


@microsoft_rule("SimplifiedLayerNormalization")
def rms_norm(
    x: Any,
    scale: Any,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,  # noqa: ARG001  # statistics have at least 32 bits
) -> Any:
    return _rms(x, scale, epsilon, tuple(range(axis % x.ndim, x.ndim)))


def _sum(x: Any, skip: Any, bias: Any) -> Any:
    total = x + skip
    return total if bias is None else total + bias


@microsoft_rule("SkipSimplifiedLayerNormalization")
def skip_rms_norm(
    x: Any, skip: Any, gamma: Any, bias: Any = None, *, epsilon: float = 1e-12
) -> Any:
    total = _sum(x, skip, bias)
    y, inverse = _rms(total, gamma, epsilon)
    return y, None, inverse, total


@microsoft_rule("SkipLayerNormalization")
def skip_layer_norm(
    x: Any,
    skip: Any,
    gamma: Any,
    beta: Any = None,
    bias: Any = None,
    *,
    node: Node,
    epsilon: float = 1e-12,
) -> Any:
    total = _sum(x, skip, bias)
    mean = inverse = None
    if any(node.outputs[1:3]):
        wide = _wide(total)
        mean, variance = tp.nn.moments(wide, axis=-1, keepdims=True)
        inverse = tp.rsqrt(variance + epsilon)
    return _layer_norm(total, gamma, beta, epsilon), mean, inverse, total


@microsoft_rule("LayerNormalization")
def layer_norm(
    x: Any,
    scale: Any,
    b: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,  # noqa: ARG001  # statistics have at least 32 bits
) -> Any:
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean, variance = tp.nn.moments(_wide(x), axis=axes, keepdims=True)
    inverse = tp.rsqrt(variance + epsilon)
    y = tp.astype((x - mean) * inverse, x.dtype) * scale
    return y if b is None else y + b, mean, inverse


def _layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    return tp.astype(tp.nn.layer_norm(x, offset=beta, scale=gamma, epsilon=epsilon), x.dtype)


@microsoft_rule("EmbedLayerNormalization")
def embed_layer_norm(
    ids: Any,
    segments: Any,
    words: Any,
    positions: Any,
    segment_table: Any,
    gamma: Any,
    beta: Any,
    mask: Any = None,
    position_ids: Any = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,  # noqa: ARG001  # of shape inference
) -> Any:
    """The second output counts the tokens of each text: how often the mask is 1."""
    rows = positions[: ids.shape[1]]
    total = tp.take(words, ids, axis=0)
    total = total + (rows if position_ids is None else tp.take(positions, position_ids, axis=0))
    if segment_table is not None:
        total = total + tp.take(segment_table, segments, axis=0)
    counts = (
        tp.zeros((ids.shape[0],), dtype=tp.int32)
        if mask is None
        else tp.astype(tp.sum(mask, axis=1), tp.int32)
    )
    return _layer_norm(total, gamma, beta, epsilon), counts, total


@microsoft_rule("RotaryEmbedding")
def rotary_embedding(
    x: Any,
    positions: Any,
    cos: Any,
    sin: Any,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,  # noqa: ARG001  # positions say all
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Any:
    """Positions are those of all tokens, [batch, places], or that of the first one, [1]."""
    places = x.shape[-2]
    if x.ndim == 3:
        size = rotary_embedding_dim and x.shape[2] // num_heads
        heads = num_heads if size else x.shape[2] // (2 * cos.shape[-1])
        parts = tp.reshape(x, (*x.shape[:2], heads, -1))
        parts = tp.permute_dims(parts, (0, 2, 1, 3))
    else:
        parts = x
    if positions.ndim == 1:
        positions = positions + tp.arange(places, dtype=positions.dtype)
    y = rotated(
        parts * scale if scale != 1 else parts, positions, cos, sin, interleaved=bool(interleaved)
    )
    return y if x.ndim == 4 else tp.reshape(tp.permute_dims(y, (0, 2, 1, 3)), x.shape)


def rotated(x: Any, positions: Any, cos: Any, sin: Any, *, interleaved: bool) -> Any:
    """Return heads [batch, heads, places, features], pairs of features turned.

    Args:
        x: the heads.
        positions: [batch, places] or [places]: rows of the tables.
        cos: of the angle of each position and pair.
        sin: likewise. Features beyond their pairs stay.
        interleaved: whether neighbours are pairs, not both halves.

    """
    pairs = cos.shape[-1]
    c, s = (tp.expand_dims(tp.take(one, positions, axis=0), axis=-3) for one in (cos, sin))
    turned, rest = x[..., : 2 * pairs], x[..., 2 * pairs :]
    if interleaved:
        a, b = turned[..., ::2], turned[..., 1::2]
        y = tp.reshape(tp.stack([a * c - b * s, a * s + b * c], axis=-1), turned.shape)
    else:
        a, b = turned[..., :pairs], turned[..., pairs:]
        y = tp.concat([a * c - b * s, a * s + b * c], axis=-1)
    return tp.concat([y, rest], axis=-1) if rest.shape[-1] else y
