"""A transformer that predicts the next character: functions of parameters and tensors.

It is the decoder of "Attention is all you need" (Vaswani et al., 2017), with the normalization
before each part, as in GPT-2 (Radford et al., 2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import tensorplug as tp

Parameters = dict[str, Any]
Noise = Iterator[tp.Tensor]  # keys for dropout


@dataclass(frozen=True)
class Sizes:
    """Sizes of the network; ``characters``: how many different ones there are."""

    characters: int
    context: int = 64
    features: int = 64
    heads: int = 4
    layers: int = 2


def initial_parameters(key: tp.Tensor, sizes: Sizes) -> Parameters:
    """Draw normally distributed weights; those that end a layer are smaller, as in GPT-2."""
    keys, wide = keys_of(key), sizes.features

    def weights(rows: int, columns: int, scale: float) -> tp.Tensor:
        return tp.random.normal(next(keys), (rows, columns), scale=scale)

    def norm() -> Parameters:
        return {"offset": tp.zeros((wide,)), "scale": tp.ones((wide,))}

    def layer() -> Parameters:
        inner, last = wide**-0.5, (wide * 2 * sizes.layers) ** -0.5
        return {
            "before_attention": norm(),
            "qkv": weights(wide, 3 * wide, inner),
            "joined": weights(wide, wide, last),
            "before_hidden": norm(),
            "hidden": weights(wide, 4 * wide, inner),
            "hidden_bias": tp.zeros((4 * wide,)),
            "out": weights(4 * wide, wide, last / 2),
        }

    return {
        "characters": weights(sizes.characters, wide, 0.1),
        "places": weights(sizes.context, wide, 0.1),
        "layers": [layer() for _ in range(sizes.layers)],
        "last": norm(),
    }


def keys_of(key: tp.Tensor) -> Noise:
    """Yield as many different keys as are asked for."""
    return (tp.random.fold_in(key, number) for number in count())


def queries_keys_values(p: Parameters, x: tp.Tensor, heads: int) -> tuple[tp.Tensor, ...]:
    """Return three tensors [batch, heads, context, features / heads]."""
    batch, context, _ = x.shape
    qkv = tp.nn.layer_norm(x, **p["before_attention"]) @ p["qkv"]
    return tp.unstack(
        tp.permute_dims(qkv.reshape((batch, context, 3, heads, -1)), (2, 0, 3, 1, 4))
    )


def attend(p: Parameters, x: tp.Tensor, heads: int) -> tp.Tensor:
    """Let each character look at those before it."""
    q, k, v = queries_keys_values(p, x, heads)
    seen = tp.nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    return tp.matmul(tp.permute_dims(seen, (0, 2, 1, 3)).reshape(x.shape), p["joined"])


def think(p: Parameters, x: tp.Tensor) -> tp.Tensor:
    """Let each character pass through a network with one hidden layer."""
    x = tp.nn.layer_norm(x, **p["before_hidden"])
    return tp.matmul(tp.nn.gelu(x @ p["hidden"] + p["hidden_bias"]), p["out"])


def embed(p: Parameters, text: tp.Tensor) -> tp.Tensor:
    """Return what stands for each character, and for its place: [batch, context, features]."""
    return tp.add(tp.nn.embedding(p["characters"], text), p["places"])


def logits(
    p: Parameters, text: tp.Tensor, heads: int, noise: Noise | None = None, rate: float = 0.0
) -> tp.Tensor:
    """Return logits [batch, context, characters] of what follows each character of ``text``.

    ``text``: integers [batch, context]. ``noise``: for dropout at ``rate``; None for none.
    """

    def drop(x: tp.Tensor) -> tp.Tensor:
        return x if noise is None else tp.nn.dropout(next(noise), x, rate)

    x = drop(embed(p, text))
    for layer in p["layers"]:
        x = x + drop(attend(layer, x, heads))
        x = x + drop(think(layer, x))
    # The table that turned characters into features turns features into characters.
    return tp.matmul(tp.nn.layer_norm(x, **p["last"]), p["characters"].T)


def loss(
    p: Parameters, text: tp.Tensor, heads: int, noise: Noise | None = None, rate: float = 0.0
) -> tp.Tensor:
    """Return the mean cross-entropy, in nats per character, of ``text`` [batch, context + 1]."""
    found = logits(p, text[:, :-1], heads, noise, rate)
    return tp.losses.sparse_softmax_cross_entropy(text[:, 1:], found)


def windows(key: tp.Tensor, text: tp.Tensor, number: int, length: int) -> tp.Tensor:
    """Return pieces [number, length] of ``text`` from random places."""
    starts = tp.random.integers(key, (number, 1), high=text.shape[0] - length + 1)
    return tp.take(text, starts + tp.arange(length), axis=0)


def train_step(
    p: Parameters, state: Any, key: tp.Tensor, text: tp.Tensor, setting: Any
) -> tuple[Parameters, Any, tp.Tensor]:
    """Take one step; return parameters and optimizer's state after it, and the loss before it."""
    noise = keys_of(key)
    batch = windows(next(noise), text, setting.batch, setting.sizes.context + 1)
    value, gradients = tp.value_and_grad(loss)(p, batch, setting.sizes.heads, noise, setting.rate)
    gradients, _norm = tp.train.clip_by_global_norm(gradients, 1.0)
    p, state = setting.optimizer.step(gradients, state, p)
    return p, state, value


def write(
    p: Parameters, key: tp.Tensor, begin: tp.Tensor, heads: int, length: int, temperature: float
) -> tp.Tensor:
    """Return the ``length`` characters [length] that the network writes after ``begin`` [context].

    ``temperature``: divides the logits. Near 0 it writes what is most probable.
    """

    def step(seen: tp.Tensor, key: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
        scores = logits(p, seen[None], heads)[0, -1]
        found = tp.random.categorical(key, scores / temperature)
        return tp.concat([seen[1:], found[None]]), found

    return tp.scan(step, begin, tp.random.split(key, length))[1]


def attention_maps(p: Parameters, text: tp.Tensor, heads: int) -> list[tp.Tensor]:
    """Return, for each layer, how much each character of ``text`` [n] looks at which.

    Tensors [heads, n, n]; a row belongs to a character, and its sum is 1.
    """
    x, maps = embed(p, text[None]), []
    visible = tp.tril(tp.ones((text.shape[0], text.shape[0]), dtype="bool"))
    for layer in p["layers"]:
        q, k, _ = queries_keys_values(layer, x, heads)
        scores = q @ tp.matrix_transpose(k) / q.shape[-1] ** 0.5
        maps.append(tp.nn.softmax(tp.where(visible, scores, -float("inf")))[0])
        x = x + attend(layer, x, heads)
        x = x + think(layer, x)
    return maps
