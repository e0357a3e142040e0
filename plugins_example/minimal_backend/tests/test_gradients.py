"""Gradients on this backend against central differences in float64, to second order."""

from __future__ import annotations

import numpy as np
import pytest
import tensorplug as tp
from tensorplug.testing import check_grads


def draw(*shape):
    return np.random.default_rng(3).uniform(-1.5, 1.5, shape)


def first_channel_sums(x):
    return tp.scatter_nd(tp.asarray([[1], [0], [1]]), tp.gather(x, [2, 0, 3], axis=0), (2, 3))


CASES = {
    "arithmetic": (lambda a, b: (a * b - a / (b * b + 1.0)) ** 2.0, [draw(3, 4), draw(4)]),
    "functions": (
        lambda x: (
            tp.exp(tp.sin(x)) + tp.log(x * x + 1.0) * tp.atan(x) + tp.erf(x) * tp.sqrt(x + 2)
        ),
        [draw(5)],
    ),
    "activations": (lambda x: tp.nn.sigmoid(x) * tp.tanh(x), [draw(5)]),
    "softmax": (lambda x: tp.nn.log_softmax(x, axis=0) * tp.nn.softmax(x), [draw(3, 4)]),
    "moved": (
        lambda x, y: tp.concat([tp.pad(x[:, 1:], ((0, 0), (1, 0))) * x, tp.permute_dims(y)]),
        [draw(2, 3), draw(3, 4)],
    ),
    "products": (lambda a, b: tp.matmul(a, b) @ a, [draw(2, 3, 4), draw(4, 3)]),
    "reductions": (lambda x: x.prod(axis=1) * x.mean(axis=1) + x.max(), [draw(3, 4)]),
    "gathered": (first_channel_sums, [draw(4, 3)]),
    "convolution": (
        lambda x, w: tp.nn.conv2d(x, w, 2, "same"),
        [draw(2, 5, 4, 2), draw(3, 3, 2, 3)],
    ),
    "pooling": (lambda x: tp.nn.max_pool(x, 2, 1) ** 2.0, [draw(1, 4, 3, 2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_order(name):
    function, arguments = CASES[name]
    check_grads(function, arguments, order=2, rtol=1e-5, atol=1e-5)
