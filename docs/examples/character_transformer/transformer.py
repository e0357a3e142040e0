"""A transformer that predicts the next character: layers of ``tp.train``.

It is the decoder of "Attention is all you need" (Vaswani et al., 2017), with the normalization
before each part, as in GPT-2 (Radford et al., 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorplug as tp

layers = tp.train.layers


@dataclass(frozen=True)
class Sizes:
    """Sizes of the network; ``dropout``: the probability of dropping a feature in training."""

    context: int = 64
    features: int = 64
    heads: int = 4
    layers: int = 2
    dropout: float = 0.1


@dataclass(frozen=True)
class Placed:
    """What stands for each character of a text, plus what stands for its place."""

    characters: tp.train.layers.Embedding
    places: tp.Tensor

    def __call__(self, text: tp.Tensor) -> tp.Tensor:
        """Return [..., context, features] for integers [..., context]."""
        return tp.add(self.characters(text), self.places)


@dataclass(frozen=True)
class Residual:
    """Layers whose result is added to what they take."""

    inner: tp.train.layers.Sequential

    def apply(
        self, x: tp.Tensor, state: Any = None, *, key: Any = None, training: bool = False
    ) -> tuple[tp.Tensor, Any]:
        """Return the sum, and the state, of which there is none."""
        y, _ = layers.apply(self.inner, x, key=key, training=training)
        return x + y, state


def network(key: tp.Tensor, characters: int, sizes: Sizes) -> tp.train.layers.Sequential:
    """Return the network: from integers [..., context] to logits [..., context, characters]."""
    keys, wide = iter(tp.random.split(key, 3 + 3 * sizes.layers)), sizes.features
    drop = layers.Dropout(sizes.dropout)
    places = tp.train.initializers.uniform(next(keys), (sizes.context, wide))
    parts = [Placed(layers.Embedding.init(next(keys), characters, wide), places), drop]
    for _ in range(sizes.layers):
        attention = layers.MultiHeadAttention.init(
            next(keys), wide, heads=sizes.heads, causal=True
        )
        hidden = layers.Linear.init(next(keys), wide, 4 * wide)
        out = layers.Linear.init(next(keys), 4 * wide, wide)
        for inner in ([attention], [hidden, tp.nn.gelu, out]):
            norm = layers.LayerNorm.init(wide)
            parts.append(Residual(layers.Sequential.of(norm, *inner, drop)))
    last = layers.LayerNorm.init(wide), layers.Linear.init(next(keys), wide, characters)
    return layers.Sequential.of(*parts, *last)


def write(
    network: Any, key: tp.Tensor, begin: tp.Tensor, length: int, temperature: float
) -> tp.Tensor:
    """Return the ``length`` characters [length] that the network writes after ``begin`` [context].

    ``temperature``: divides the logits. Near 0 it writes what is most probable.
    """

    def step(seen: tp.Tensor, key: tp.Tensor) -> tuple[tp.Tensor, tp.Tensor]:
        found = tp.random.categorical(key, network(seen)[-1] / temperature)
        return tp.concat([seen[1:], found[None]]), found

    return tp.scan(step, begin, tp.random.split(key, length))[1]


def attention_maps(network: Any, text: tp.Tensor) -> list[tp.Tensor]:
    """Return, for each layer, how much each character of ``text`` [n] looks at which.

    Tensors [heads, n, n]; a row belongs to a character, and its sum is 1.
    """
    x, maps = text, []
    for layer in network.layers:
        norm, attention = layer.inner.layers[:2] if isinstance(layer, Residual) else (None, None)
        if isinstance(attention, layers.MultiHeadAttention):
            y = norm(x)
            q, k = (
                tp.swapaxes(part(y).reshape((*text.shape, attention.heads, -1)), 0, 1)
                for part in (attention.query, attention.key)
            )
            # The weights of values are what comes out where the values are 1 at one place each.
            each = tp.broadcast_to(tp.eye(len(text)), (attention.heads, len(text), len(text)))
            maps.append(tp.nn.scaled_dot_product_attention(q, k, each, is_causal=True))
        x, _ = layers.apply(layer, x)
    return maps
