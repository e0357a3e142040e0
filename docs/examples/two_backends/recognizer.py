"""Distorted digits, and a network that learns to read them: functions of tensors."""

from __future__ import annotations

import math
from typing import Any

import tensorplug as tp

Weights = dict[str, tp.Tensor]

SIZE, SOURCE = 24, 8  # pixels along a side, of a distorted image and of the original
OPTIMIZER = tp.train.adam(5e-3)


def prepare(
    images: tp.Tensor, labels: tp.Tensor, key: tp.Tensor, count: int
) -> tuple[tp.Tensor, tp.Tensor]:
    """Draw images, turn, stretch, enlarge and move them, and add noise.

    Returns:
        Images [count, SIZE, SIZE, 1] and their labels [count]. They depend on the key alone, so
        they are the same on every backend, up to rounding.

    """
    which, turn, stretch, move, noise = tp.random.split(key, 5)
    chosen = tp.random.integers(which, (count,), high=images.shape[0])
    angle = tp.random.uniform(turn, (count,), low=-math.pi / 8, high=math.pi / 8)
    # Source pixels per pixel, along each axis.
    across, down = tp.unstack(
        SOURCE / SIZE * tp.random.uniform(stretch, (2, count), low=0.9, high=1.3)
    )
    right, below = tp.unstack(tp.random.uniform(move, (2, count), low=-1.0, high=1.0))
    a = [tp.cos(angle) * across, -tp.sin(angle) * across]
    b = [tp.sin(angle) * down, tp.cos(angle) * down]
    middle, target = (SOURCE - 1) / 2, (SIZE - 1) / 2
    a.append(middle + right - (a[0] + a[1]) * target)
    b.append(middle + below - (b[0] + b[1]) * target)
    transforms = tp.stack([*a, *b, tp.zeros_like(angle), tp.zeros_like(angle)], axis=1)
    distorted = tp.image.transform(
        tp.take(images, chosen, axis=0), transforms, "bilinear", output_shape=(SIZE, SIZE)
    )
    ink = distorted + 0.1 * tp.random.normal(noise, distorted.shape)
    return tp.clip(ink, 0.0, 1.0), tp.take(labels, chosen)


def initial_weights(key: tp.Tensor) -> Weights:
    """Draw weights with variance 2 / fan-in (He et al., 2015); biases are zero."""
    shapes = {"conv1": (5, 5, 1, 12), "conv2": (3, 3, 12, 24), "dense": (36 * 24, 10)}
    weights: Weights = {}
    for part, (name, shape) in zip(tp.random.split(key, 3), shapes.items(), strict=True):
        deviation = math.sqrt(2 / math.prod(shape[:-1]))
        weights[name] = tp.random.normal(part, shape, scale=deviation)
        weights[f"{name}_bias"] = tp.zeros(shape[-1])
    return weights


def scores(weights: Weights, images: tp.Tensor) -> tp.Tensor:
    """Return the logits [n, 10]."""
    x = tp.nn.relu(tp.nn.conv2d(images, weights["conv1"], 1, "same") + weights["conv1_bias"])
    x = tp.nn.max_pool(x, 2, 2)
    x = tp.nn.relu(tp.nn.conv2d(x, weights["conv2"], 1, "same") + weights["conv2_bias"])
    x = tp.reshape(tp.nn.max_pool(x, 2, 2), (images.shape[0], -1))
    return tp.matmul(x, weights["dense"]) + weights["dense_bias"]


def loss(weights: Weights, images: tp.Tensor, labels: tp.Tensor) -> tp.Tensor:
    """Return the mean cross-entropy, in nats."""
    return tp.losses.sparse_softmax_cross_entropy(labels, scores(weights, images))


def train_step(
    weights: Weights, state: Any, images: tp.Tensor, labels: tp.Tensor
) -> tuple[Weights, Any, tp.Tensor]:
    """Return weights and state after one step of Adam, and the loss before it."""
    value, gradients = tp.value_and_grad(loss)(weights, images, labels)
    weights, state = OPTIMIZER.step(gradients, state, weights)
    return weights, state, value


def accuracy(weights: Weights, images: tp.Tensor, labels: tp.Tensor) -> tp.Tensor:
    """Return the share of images that get their own digit as the best."""
    found = tp.argmax(scores(weights, images), axis=-1)
    return tp.mean(tp.equal(found, labels.astype(found.dtype)).astype("float32"))
