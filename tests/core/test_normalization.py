"""Normalization and moments against NumPy formulas."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with tp.use_backend("cpu"):
        yield


def normalized(x, mean, variance, offset=0.0, scale=1.0, epsilon=1e-3):
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
@pytest.mark.parametrize("given", ["", "offset", "scale", "offset scale"])
def test_batch_norm(rank, given):
    x = RNG.normal(size=(2, 3, 4, 2, 5)[5 - rank :])
    mean, variance = RNG.normal(size=5), RNG.uniform(0.5, 2, 5)
    more = {name: RNG.normal(size=5) for name in given.split()}
    y = tp.nn.batch_norm(x, mean, variance, **more)
    assert (y.shape, y.dtype) == (x.shape, tp.float64)
    np.testing.assert_allclose(y.numpy(), normalized(x, mean, variance, **more), rtol=1e-12)


@pytest.mark.parametrize("given", ["", "offset", "scale"])
def test_batch_norm_has_gradients_without_scale_or_offset(given):
    """TensorFlow.js raises a TypeError without scale."""
    x, mean = RNG.normal(size=(4, 3)), RNG.normal(size=3)
    variance = RNG.uniform(0.5, 2, 3)
    more = {name: RNG.normal(size=3) for name in given.split()}

    def f(x, mean, variance):
        return tp.sum(tp.nn.batch_norm(x, mean, variance, **more) ** 2)

    found = tp.grad(f, (0, 1, 2))(*map(tp.asarray, (x, mean, variance)))
    scale, spread = more.get("scale", 1.0), variance + 1e-3
    dy = 2 * normalized(x, mean, variance, **more)
    by = scale / np.sqrt(spread)
    np.testing.assert_allclose(found[0].numpy(), dy * by, rtol=1e-9)
    np.testing.assert_allclose(found[1].numpy(), -(dy * by).sum(0), rtol=1e-9)
    wrt_variance = (dy * scale * (x - mean) * -0.5 * spread**-1.5).sum(0)
    np.testing.assert_allclose(found[2].numpy(), wrt_variance, rtol=1e-9)


@pytest.mark.parametrize("axis", [-1, 0, (1, 2), None])
@pytest.mark.parametrize("given", ["", "offset", "scale", "offset scale"])
def test_layer_norm(axis, given):
    x = RNG.normal(size=(2, 3, 4))
    more = {name: RNG.normal(size=4) for name in given.split()}
    y = tp.nn.layer_norm(x, **more, axis=axis, epsilon=1e-3)
    assert (y.shape, y.dtype) == (x.shape, tp.float64)
    mean, variance = x.mean(axis=axis, keepdims=True), x.var(axis=axis, keepdims=True)
    np.testing.assert_allclose(y.numpy(), normalized(x, mean, variance, **more), rtol=1e-12)


def test_layer_norm_of_whole_numbers_that_are_all_equal():
    y = tp.nn.layer_norm([[3, 3, 3]], offset=[1.0, 2.0, 3.0])
    assert y.numpy().tolist() == [[1, 2, 3]]


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


def responded(x, radius, bias, alpha, beta):
    out = np.empty_like(x)
    for c in range(x.shape[-1]):
        near = x[..., max(0, c - radius) : c + radius + 1]
        out[..., c] = x[..., c] * (bias + alpha * (near**2).sum(-1)) ** -beta
    return out


@pytest.mark.parametrize("options", [(5, 1, 1, 0.5), (1, 2, 0.5, 0.75), (0, 1, 1, 1.3)])
@pytest.mark.parametrize("shape", [(2, 3, 8), (1, 2, 3, 8), (8,)])
def test_local_response_normalization(shape, options):
    x = RNG.normal(size=shape)
    y = tp.nn.local_response_normalization(x, *options)
    assert (y.shape, y.dtype) == (shape, tp.float64)
    np.testing.assert_allclose(y.numpy(), responded(x, *options), rtol=1e-12)


def test_kernels_take_tensorflow_js_defaults():
    x = RNG.normal(size=(1, 1, 2, 7))
    y = tp.run_kernel("LRN", {"x": x})
    np.testing.assert_allclose(y.numpy(), responded(x, 5, 1, 1, 0.5), rtol=1e-12)
    y = tp.run_kernel("FusedBatchNorm", {"x": x, "mean": np.ones(7), "variance": np.ones(7)})
    np.testing.assert_allclose(y.numpy(), normalized(x, 1, 1), rtol=1e-12)


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


REFUSED = {
    "mean of another shape": (
        lambda: tp.nn.batch_norm(np.ones((2, 3)), [1.0, 2.0], [1.0]),
        ShapeError,
        r"FusedBatchNorm\(x=float64\[2,3\]",
    ),
    "mean larger than x": (
        lambda: tp.nn.batch_norm([1.0], np.ones((2, 1)), [1.0]),
        ShapeError,
        "mean must broadcast to the shape of x",
    ),
    "complex epsilon": (
        lambda: tp.nn.batch_norm([1.0], [1.0], [1.0], variance_epsilon=1j),
        DTypeError,
        "1j cannot become float32",
    ),
    "no channels": (
        lambda: tp.nn.local_response_normalization(1.0),
        ShapeError,
        "x must have channels",
    ),
    "radius": (
        lambda: tp.nn.local_response_normalization([1.0], -1),
        ArgumentError,
        "'depth_radius': must be at least 0, got -1",
    ),
    "shapes of the gradient": (
        lambda: tp.run_kernel("LRNGrad", {"x": [1.0], "y": [1.0], "dy": [[1.0]]}),
        ShapeError,
        "x, y and dy must have one shape",
    ),
    "complex moments": (lambda: tp.nn.moments([1j]), DTypeError, "x must be real, got complex64"),
    "moments of truths": (lambda: tp.nn.moments([True]), DTypeError, "must be of numbers"),
    "no step": (lambda: tp.nn.moving_average([0.0], [1.0], 0.5), ArgumentError, "step is needed"),
    "averages of two shapes": (
        lambda: tp.nn.moving_average([0.0], [1.0, 2.0], 0.5, 1),
        ShapeError,
        r"one shape, got \[1\] and \[2\]",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        call()
