"""Normalization, moments and moving averages: arguments, values of composites, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

RNG = np.random.default_rng(3)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_arguments_in_their_order():
    assert tp.nn.batch_norm([3.0], [1.0], [4.0], [10.0], [2.0], 0.0).tolist() == [12]
    y = tp.nn.local_response_normalization([1.0, 2.0], 1, 2, 3, 1)
    np.testing.assert_allclose(y.numpy(), [1 / 17, 2 / 17], rtol=1e-6)
    y = tp.nn.layer_norm([[1.0, 3.0]], [5.0, 6.0], [2.0, 2.0], axis=1, epsilon=0.0)
    assert y.tolist() == [[3, 8]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: tp.nn.layer_norm(x, axis=2), OutOfRangeError, "LayerNorm.*axis 2"),
        (lambda x: tp.nn.layer_norm(x, scale=tp.ones(5)), ShapeError, "scale|broadcast"),
        (lambda x: tp.nn.layer_norm(x, tp.ones((2, 2, 3))), ShapeError, "offset must broadcast"),
        (lambda x: tp.nn.layer_norm(x, epsilon="small"), ArgumentError, "must be a number"),
        (lambda x: tp.nn.layer_norm(x * 1j), DTypeError, "LayerNorm.*complex"),
    ],
)
def test_layer_norm_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call(tp.ones((2, 3)))


@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_moments(axis, keepdims):
    x = RNG.normal(size=(2, 3, 4)) + 1000
    mean, variance = tp.nn.moments(x, axis, keepdims=keepdims)
    np.testing.assert_allclose(mean.numpy(), x.mean(axis, keepdims=keepdims), rtol=1e-12)
    np.testing.assert_allclose(variance.numpy(), x.var(axis, keepdims=keepdims), rtol=1e-9)
    assert mean.shape == variance.shape == x.mean(axis, keepdims=keepdims).shape
    assert tp.nn.moments([1, 2]).variance.dtype is tp.float32


def test_moving_average():
    v, x = [1.0, 2.0], [3.0, 0.0]
    step = tp.nn.moving_average(v, x, 0.75, zero_debias=False)
    assert step.tolist() == [1.5, 1.5]
    assert tp.nn.moving_average([0.0], [3.0], 0.75, 1).tolist() == [3.0]  # no trace of the 0
    debiased = tp.nn.moving_average(v, x, 0.75, 2)
    np.testing.assert_allclose(debiased.numpy(), [1 + 0.5 / 0.4375, 2 - 0.5 / 0.4375], rtol=1e-6)


REFUSED = {  # error: call, what the message says
    ShapeError: [
        (
            lambda: tp.nn.batch_norm(np.ones((2, 3)), [1.0, 2.0], [1.0]),
            r"FusedBatchNorm\(x=float64\[2,3\]",
        ),
        (
            lambda: tp.nn.batch_norm([1.0], np.ones((2, 1)), [1.0]),
            "mean must broadcast to the shape of x",
        ),
        (lambda: tp.nn.local_response_normalization(1.0), "x must have at least rank 1"),
        (
            lambda: tp.run_kernel("LRNGrad", {"x": [1.0], "y": [1.0], "dy": [[1.0]]}),
            "x, y and dy must have the same shape",
        ),
        (
            lambda: tp.nn.moving_average([0.0], [1.0, 2.0], 0.5, 1),
            r"the same shape, got \[1\] and \[2\]",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.nn.batch_norm([1.0], [1.0], [1.0], variance_epsilon=1j),
            "1j cannot become float32",
        ),
        (lambda: tp.nn.moments([1j]), "x must hold real numbers, got complex64"),
        (lambda: tp.nn.moments([True]), "must hold numbers"),
    ],
    ArgumentError: [
        (
            lambda: tp.nn.local_response_normalization([1.0], -1),
            "'depth_radius': must be at least 0, got -1",
        ),
        (lambda: tp.nn.moving_average([0.0], [1.0], 0.5), "requires step"),
    ],
}


test_refused = refused(REFUSED, regex=True)
