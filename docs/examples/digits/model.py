"""The network, what it minimizes and how: the same on every backend."""

from __future__ import annotations

from typing import Any

import tensorplug as tp

CLASSES = 10
OPTIMIZER = tp.train.momentum(learning_rate=0.05, momentum=0.9)
layers = tp.train.layers
loss = tp.losses.sparse_softmax_cross_entropy


def network(key: tp.Tensor) -> tp.train.layers.Sequential:
    """Return the network for images [n, 8, 8, 1]; its weights depend on the key alone."""
    first, second, last = tp.random.split(key, 3)
    draw = tp.train.initializers.he_normal
    return layers.Sequential.of(
        layers.Conv.init(first, 1, 16, (3, 3), padding="same", weight_init=draw),
        tp.nn.relu,
        halved,
        layers.Conv.init(second, 16, 32, (3, 3), padding="same", weight_init=draw),
        tp.nn.relu,
        flat,
        layers.Linear.init(last, 4 * 4 * 32, CLASSES, weight_init=draw),
    )


def halved(x: tp.Tensor) -> tp.Tensor:
    """Return images of half the height and width: the maxima of 2x2 pixels."""
    return tp.nn.max_pool(x, 2, 2)


def flat(x: tp.Tensor) -> tp.Tensor:
    """Return images as rows [n, pixels * channels]."""
    return tp.reshape(x, (x.shape[0], -1))


class EachLoss(tp.train.metrics.Metric):
    """The losses of all steps of an epoch; the history of ``fit`` has their mean otherwise."""

    collects = True

    def of(self, labels: Any, predictions: Any, _weights: Any = None) -> list[tp.Tensor]:
        """Return the loss of one batch."""
        return [loss(labels, predictions)]

    def merge(self, a: list[tp.Tensor], b: list[tp.Tensor]) -> list[tp.Tensor]:
        """Return the losses of two parts of an epoch."""
        return a + b

    def result(self, sums: list[tp.Tensor]) -> list[float]:
        """Return the losses as numbers."""
        return [each.item() for each in sums]
