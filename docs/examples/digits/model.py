"""The network and its training step: plain functions of tensors, the same on every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from numpy.typing import NDArray


Weights = dict[str, tp.Tensor]

CHANNELS = (16, 32)  # of the two convolutions
CLASSES = 10
OPTIMIZER = tp.train.momentum(learning_rate=0.05, momentum=0.9)


def initial_weights(generator: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    """Draw weights with variance ``2 / fan-in`` (He et al., 2015); biases start at zero."""
    first, second = CHANNELS
    shapes = {
        "conv1": (3, 3, 1, first),
        "conv2": (3, 3, first, second),
        "dense": (4 * 4 * second, CLASSES),  # 8x8 pixels are 4x4 after the pooling
    }
    weights: dict[str, NDArray[np.float32]] = {}
    for name, shape in shapes.items():
        deviation = np.sqrt(2.0 / np.prod(shape[:-1]))
        weights[name] = generator.normal(0.0, deviation, shape).astype(np.float32)
        weights[f"{name}_bias"] = np.zeros(shape[-1], np.float32)
    return weights


def scores(weights: Weights, images: tp.Tensor) -> tp.Tensor:
    """Return the logits [n, 10] of images [n, 8, 8, 1]."""
    x = tp.nn.relu(tp.nn.conv2d(images, weights["conv1"], 1, "same") + weights["conv1_bias"])
    x = tp.nn.max_pool(x, 2, 2)
    x = tp.nn.relu(tp.nn.conv2d(x, weights["conv2"], 1, "same") + weights["conv2_bias"])
    x = tp.reshape(x, (x.shape[0], -1))
    return tp.matmul(x, weights["dense"]) + weights["dense_bias"]


def loss(weights: Weights, images: tp.Tensor, labels: tp.Tensor) -> tp.Tensor:
    """Return the mean cross-entropy, in nats, of images [n, 8, 8, 1] with labels int [n]."""
    return tp.losses.softmax_cross_entropy(tp.one_hot(labels, CLASSES), scores(weights, images))


def step(
    weights: Weights, state: dict[str, Any], images: tp.Tensor, labels: tp.Tensor
) -> tuple[tp.Tensor, Weights, dict[str, Any]]:
    """Take one step of gradient descent with momentum.

    Returns:
        The loss before the step, then the weights and the optimizer's state after it.

    """
    value, gradients = tp.value_and_grad(loss)(weights, images, labels)
    weights, state = OPTIMIZER.step(gradients, state, weights)
    return value, weights, state


def predict(weights: Weights, images: tp.Tensor) -> tp.Tensor:
    """Return the digit, int [n], that scores highest for each image."""
    return tp.argmax(scores(weights, images), axis=-1)
