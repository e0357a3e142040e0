"""A small residual network for images of 8x8 pixels (He et al., 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorplug as tp

layers = tp.train.layers
State = Any


def conv(
    key: tp.Tensor, inputs: int, outputs: int, stride: int = 1, size: int = 3
) -> tp.train.layers.Conv:
    """Return a convolution without bias: a normalization follows, which has an offset."""
    return layers.Conv.init(
        key,
        inputs,
        outputs,
        (size, size),
        stride=stride,
        padding="same",
        bias=False,
        weight_init=tp.train.initializers.he_normal,
    )


@dataclass(frozen=True)
class Block:
    """Two convolutions whose result is added to what they take.

    ``shortcut``: a 1x1 convolution where sizes differ; None where they do not.
    """

    first: tp.train.layers.Conv
    second: tp.train.layers.Conv
    first_norm: tp.train.layers.BatchNorm
    second_norm: tp.train.layers.BatchNorm
    shortcut: tp.train.layers.Conv | None

    @classmethod
    def init(cls, key: tp.Tensor, inputs: int, outputs: int, stride: int) -> Block:
        """Draw the weights."""
        keys = tp.random.split(key, 3)
        same = inputs == outputs and stride == 1
        return cls(
            conv(keys[0], inputs, outputs, stride),
            conv(keys[1], outputs, outputs),
            layers.BatchNorm.init(outputs),
            layers.BatchNorm.init(outputs),
            None if same else conv(keys[2], inputs, outputs, stride, 1),
        )

    def apply(
        self, x: tp.Tensor, state: State, *, key: tp.Tensor | None, training: bool
    ) -> tuple[tp.Tensor, State]:
        """Return the block's output and the state of its normalizations."""
        first, second = state["first_norm"], state["second_norm"]
        y, first = layers.apply(self.first_norm, self.first(x), first, key=key, training=training)
        y = self.second(tp.nn.relu(y))
        y, second = layers.apply(self.second_norm, y, second, training=training)
        x = x if self.shortcut is None else self.shortcut(x)
        return tp.nn.relu(x + y), {"first_norm": first, "second_norm": second}


def network(key: tp.Tensor, channels: tuple[int, ...] = (16, 32), classes: int = 10) -> Any:
    """Return a convolution, two blocks for each size of image, and a linear layer of the means."""
    keys = iter(tp.random.split(key, 2 + 2 * len(channels)))
    parts: list[Any] = [
        conv(next(keys), 1, channels[0]),
        layers.BatchNorm.init(channels[0]),
        tp.nn.relu,
    ]
    inputs = channels[0]
    for at, outputs in enumerate(channels):
        parts += [
            Block.init(next(keys), inputs, outputs, 1 if at == 0 else 2),
            Block.init(next(keys), outputs, outputs, 1),
        ]
        inputs = outputs
    return layers.Sequential.of(
        *parts, mean_of_pixels, layers.Linear.init(next(keys), inputs, classes)
    )


def mean_of_pixels(x: tp.Tensor) -> tp.Tensor:
    """Return the means [n, channels] of images [n, height, width, channels]."""
    return tp.mean(x, axis=(1, 2))


def objective(
    model: Any, batch: Any, state: State, *, key: Any, training: bool
) -> tuple[tp.Tensor, tp.train.Outcome]:
    """Return the cross-entropy of a batch, whose images move by a pixel at most in training."""
    images, labels = batch
    if training:  # paper comes in at the edges
        padded = tp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
        images = tp.image.random_crop(key, padded, images.shape[1:3])
    return supervised(model, (images, labels), state, training=training)


supervised = tp.train.supervised(tp.losses.sparse_softmax_cross_entropy)
