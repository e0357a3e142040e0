"""The decoder: a pure function of parameters, tokens and a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug_llm.configuration import Matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tensorplug_llm.configuration import Configuration


def empty_cache(configuration: Configuration, batch: int, slots: int) -> list[tp.Tensor]:
    """Return keys and values of no token: two for each block, [batch, heads, slots, size]."""
    shape = (batch, configuration.key_heads, slots, configuration.head_size)
    return [tp.zeros(shape) for _ in range(2 * configuration.layers)]


def step(
    configuration: Configuration,
    parameters: Mapping[str, Any],
    tokens: tp.Tensor,
    cache: Sequence[tp.Tensor],
    positions: tp.Tensor,
) -> tuple[tp.Tensor, list[tp.Tensor]]:
    """Read n further tokens of each text: many of a prompt, or the one that was chosen last.

    Args:
        configuration: of the model.
        parameters: the tree that ``assemble`` returns, of tensors.
        tokens: [batch, n] of int32.
        cache: keys and values of the tokens before.
        positions: [batch] of int32, how many tokens each text has in the cache.

    Returns:
        Features of the tokens, [batch, n, width], of which ``logits`` makes scores; and the cache
        with their keys and values.

    """
    x = rows(parameters["embedding"], tokens)
    places = positions[:, None] + tp.arange(tokens.shape[1], dtype="int32")
    if not configuration.llama:
        within = tp.minimum(places, configuration.context - 1)  # padding may lie beyond
        x = x + tp.take(parameters["positions"], within, axis=0)
    starts = windows(positions)
    frequencies = tp.asarray(configuration.frequencies)  # one constant: blocks share the angles
    written: list[tp.Tensor] = []
    for block in parameters["blocks"]:
        inputs = products(
            normalize(configuration, block["attention_norm"], x), block["attention_in"]
        )
        q, k, v = heads(configuration, inputs, places, frequencies)
        keys, values = (
            write(cache[len(written) + which], new, starts) for which, new in enumerate((k, v))
        )
        written += [keys, values]
        x = x + product(attend(q, keys, values, positions), block["attention_out"])
        inputs = products(normalize(configuration, block["feed_norm"], x), block["feed_in"])
        if configuration.llama:
            gate, up = tp.split(inputs, 2, axis=-1)
            inputs = tp.nn.silu(gate) * up
        else:
            inputs = tp.nn.gelu(inputs, approximate=True)
        x = x + product(inputs, block["feed_out"])
    return x, written


def logits(
    configuration: Configuration, parameters: Mapping[str, Any], features: tp.Tensor
) -> tp.Tensor:
    """Return a score for each token of the vocabulary, [..., vocabulary]."""
    features = normalize(configuration, parameters["norm"], features)
    return product(features, parameters.get("output", parameters["embedding"]))


def normalize(configuration: Configuration, norm: Mapping[str, Any], x: tp.Tensor) -> tp.Tensor:
    """Return RMSNorm of the last axis, or LayerNorm."""
    if configuration.llama:
        return tp.nn.rms_norm(x, norm["scale"], epsilon=configuration.epsilon)
    return tp.nn.layer_norm(x, norm["bias"], norm["scale"], epsilon=configuration.epsilon)


def product(x: tp.Tensor, weight: Matrix) -> tp.Tensor:
    """Return ``x @ weight.T + bias``, without the weight in floats where it is quantized."""
    if weight.scale is None:
        narrow = tp.astype(x, weight.values.dtype, copy=False)
        result = tp.astype(narrow @ weight.values.T, x.dtype, copy=False)
    else:
        result = tp.quantized_matmul(
            x,
            weight.values,
            None,
            weight.scale,
            b_offset=weight.offset,
            transpose_b=True,
            b_packed=weight.packed,
        )
    return result if weight.bias is None else result + weight.bias


def products(x: tp.Tensor, weights: Sequence[Matrix]) -> tp.Tensor:
    """Return the products of x and each of the weights, side by side."""
    results = [product(x, weight) for weight in weights]
    return results[0] if len(results) == 1 else tp.concat(results, axis=-1)


def rows(table: Matrix, indices: tp.Tensor) -> tp.Tensor:
    """Return the rows of a weight, in float32."""
    values, scale, offset = (
        None if part is None else tp.take(part, indices, axis=0)
        for part in (table.values, table.scale, table.offset)
    )
    return floats(Matrix(values, scale, offset, packed=table.packed))


def floats(weight: Matrix) -> tp.Tensor:
    """Return what a weight stands for, without its bias, in float32."""
    values = weight.values
    if weight.packed is not None:
        values = tp.reshape(tp.bitcast(values, weight.packed), (*values.shape[:-1], -1))
    if weight.scale is None:
        return tp.astype(values, "float32", copy=False)
    return tp.dequantize(values, weight.scale, offset=weight.offset, dtype="float32")


def heads(
    configuration: Configuration, joined: tp.Tensor, places: tp.Tensor, frequencies: tp.Tensor
) -> tuple[tp.Tensor, tp.Tensor, tp.Tensor]:
    """Return queries, keys and values, each [batch, heads, n, size], turned by their places."""
    h, k = configuration.heads, configuration.key_heads
    batch, n, _ = joined.shape
    total, size = h + 2 * k, configuration.head_size
    if n == 1:  # nothing moves
        apart = tp.reshape(joined, (batch, total, n, size))
    else:
        apart = tp.swapaxes(tp.reshape(joined, (batch, n, total, size)), 1, 2)
    turned = apart[:, : h + k]
    if configuration.llama:
        turned = tp.nn.rotary(turned, places[:, None], frequencies=frequencies)
    return turned[:, :h], turned[:, h:], apart[:, h + k :]


def windows(positions: tp.Tensor) -> tp.Tensor:
    """Return where each text writes into its cache: [4] for one text, else [batch, 3]."""
    zero = tp.zeros_like(positions)
    if positions.shape == (1,):
        return tp.concat([zero, zero, positions, zero])
    return tp.stack([zero, positions, zero], axis=-1)


def write(cache: tp.Tensor, new: tp.Tensor, starts: tp.Tensor) -> tp.Tensor:
    """Return the cache with n new slots of each text, where ``windows`` says."""
    if starts.ndim == 1:
        return tp.dynamic_update_slice(cache, new, starts)
    return tp.vmap(tp.dynamic_update_slice)(cache, new, starts)


def attend(q: tp.Tensor, keys: tp.Tensor, values: tp.Tensor, positions: tp.Tensor) -> tp.Tensor:
    """Return what the queries read from the cache, [batch, n, width].

    A query sees the slots up to its own place: those beyond hold nothing, or what came of a
    prompt's padding.
    """
    batch, _, n, _ = q.shape
    mixed = tp.nn.scaled_dot_product_attention(
        q, keys, values, is_causal=True, lengths=positions + n, grouped_query=True
    )
    return tp.reshape(mixed if n == 1 else tp.swapaxes(mixed, 1, 2), (batch, n, -1))
