"""Two small training runs with known results."""

from __future__ import annotations

import numpy as np
import pytest
import tensorplug as tp


def descend(loss, weights, rate, steps):
    """Gradient descent with momentum."""
    velocity = tp.zeros_like(weights)
    for _ in range(steps):
        velocity = 0.9 * velocity + tp.grad(loss)(weights)
        weights = weights - rate * velocity
    return weights


def test_linear_model_finds_the_least_squares_solution():
    random = np.random.default_rng(0)
    inputs, targets = random.normal(size=(50, 3)), random.normal(size=(50, 2))
    x, y = tp.asarray(inputs), tp.asarray(targets)
    start = tp.zeros((3, 2), dtype="float64")
    found = descend(lambda w: tp.mean(tp.squared_difference(x @ w, y)), start, 0.1, 300)
    solution, *_ = np.linalg.lstsq(inputs, targets)
    assert (found.dtype, found.shape) == (tp.float64, (3, 2))
    np.testing.assert_allclose(found.numpy(), solution, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_convolution_finds_the_filter_of_its_targets(dtype):
    random = np.random.default_rng(1)
    images = tp.asarray(random.normal(size=(4, 7, 7, 2)).astype(dtype))
    hidden = random.normal(size=(3, 3, 2, 2)).astype(dtype)
    wanted = tp.nn.conv2d(images, tp.asarray(hidden), 1, "same")
    found = descend(
        lambda w: tp.mean((tp.nn.conv2d(images, w, 1, "same") - wanted) ** 2),
        tp.zeros((3, 3, 2, 2), dtype=dtype),
        0.3,
        200,
    )
    assert (found.dtype.name, found.shape) == (dtype, (3, 3, 2, 2))
    np.testing.assert_allclose(found.numpy(), hidden, atol=1e-4)
