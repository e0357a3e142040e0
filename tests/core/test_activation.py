"""Activation functions against NumPy formulas, far out and at their corners."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

X = np.array([-1000.0, -30.0, -2.0, -1e-6, 0.0, 1e-6, 0.5, 6.0, 7.0, 30.0, 1000.0])
SCALE, ALPHA = 1.0507009873554804934, 1.6732632423543772848


@pytest.fixture(autouse=True)
def on_the_cpu():
    with tp.use_backend("cpu"):
        yield


def _erf(x):
    return np.array([math.erf(item) for item in x])


CURVES = {
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "softplus": lambda x: np.logaddexp(x, 0),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "step": lambda x: np.where(x > 0, 1.0, 0.0),
    "silu": lambda x: x * np.exp(-np.logaddexp(-x, 0)),
    "gelu": lambda x: x / 2 * (1 + _erf(x / np.sqrt(2))),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_curves(name, dtype):
    x = X.astype(dtype)
    y = getattr(tp.nn, name)(tp.asarray(x))
    assert (y.shape, y.dtype.name) == (x.shape, dtype)
    rtol = 2e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(y.numpy(), CURVES[name](x.astype(float)), rtol=rtol, atol=1e-30)


@pytest.mark.parametrize("name", ["elu", "selu", "softplus", "leaky_relu", "log_sigmoid", "silu"])
def test_integers_become_floats(name):
    y = getattr(tp.nn, name)([-1, 0, 2])
    assert y.dtype is tp.float32
    np.testing.assert_allclose(y.numpy(), CURVES[name](np.array([-1.0, 0, 2])), rtol=1e-6)


@pytest.mark.parametrize("name", ["relu6", "step"])
def test_integers_stay_integers(name):
    y = getattr(tp.nn, name)(tp.asarray([-1, 0, 9], dtype="int16"))
    assert y.dtype is tp.int16
    assert y.tolist() == {"relu6": [0, 0, 6], "step": [0, 0, 1]}[name]


def test_gelu_by_the_hyperbolic_tangent():
    inner = math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)
    y = tp.nn.gelu(tp.asarray(X, dtype="float64"), approximate=True)
    np.testing.assert_allclose(y.numpy(), X / 2 * (1 + np.tanh(inner)), rtol=1e-12, atol=1e-15)


def test_levels_and_slopes():
    assert tp.nn.step([-1.0, 0.0, 2.0], 0.25).tolist() == [0.25, 0.25, 1.0]
    assert np.isnan(tp.nn.step(math.nan).item())
    assert tp.nn.leaky_relu([-2.0, 4.0], 1.5).tolist() == [-3.0, 4.0]
    assert tp.nn.prelu([[-2.0], [4.0]], [0.5, 3.0]).tolist() == [[-1.0, -6.0], [4.0, 4.0]]
    assert tp.asarray([-2.0, 4.0]).prelu(0.5).tolist() == [-1.0, 4.0]


# The derivative of each, where the branch that is not taken overflows.
FAR = np.array([-1000.0, -90.0, 90.0, 1000.0])
SLOPES = {
    "elu": [0, np.exp(-90.0), 1, 1],
    "selu": [0, SCALE * ALPHA * np.exp(-90.0), SCALE, SCALE],
    "softplus": [0, np.exp(-90.0), 1, 1],
    "log_sigmoid": [1, 1, np.exp(-90.0), 0],
    "leaky_relu": [0.2, 0.2, 1, 1],
    "relu6": [0, 0, 0, 0],
    "gelu": [0, 0, 1, 1],
    "silu": [0, -89 * np.exp(-90.0), 1, 1],
}


def test_silu_at_its_ends():
    ends = tp.asarray([-math.inf, math.inf, math.nan])
    slope = tp.grad(lambda x: tp.sum(tp.nn.silu(x)))
    np.testing.assert_array_equal(tp.nn.silu(ends).numpy(), [0, math.inf, math.nan])
    np.testing.assert_array_equal(slope(ends).numpy(), [0, 1, math.nan])
    bend = tp.grad(lambda x: tp.sum(slope(x)))
    np.testing.assert_array_equal(bend(ends).numpy(), [0, 0, math.nan])


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_far_out_are_no_nan(name):
    f = getattr(tp.nn, name)
    x = tp.asarray(FAR, dtype="float64")
    slope = tp.grad(lambda x: tp.sum(f(x)))
    np.testing.assert_allclose(slope(x).numpy(), SLOPES[name], rtol=1e-9, atol=1e-16)
    bend = tp.grad(lambda x: tp.sum(slope(x) * x), unconnected="zeros")
    assert np.isfinite(bend(x).numpy()).all()


def test_prelu_sums_its_gradient_over_what_was_broadcast():
    x = tp.asarray([[-2.0, 1.0], [-3.0, -1.0]])
    slope = tp.asarray([0.5, 2.0])
    wrt_x, wrt_alpha = tp.grad(lambda x, a: tp.sum(tp.nn.prelu(x, a)), (0, 1))(x, slope)
    assert wrt_x.tolist() == [[0.5, 1.0], [0.5, 2.0]]
    assert wrt_alpha.tolist() == [-5.0, -1.0]
    one = tp.asarray([-2.0])  # x is the smaller one: TensorFlow.js raises
    wrt_x = tp.grad(lambda x: tp.sum(tp.nn.prelu(x, slope)))(one)
    assert wrt_x.tolist() == [2.5]


def test_kernels_take_tensorflow_js_defaults():
    assert tp.run_kernel("LeakyRelu", {"x": [-1.0]}).tolist() == pytest.approx([-0.2])
    assert tp.run_kernel("Step", {"x": [-1.0]}).tolist() == [0.0]
    y = tp.run_kernel("EluGrad", {"dy": [2.0, 2.0], "y": [-0.5, 3.0]})
    assert y.tolist() == [1.0, 2.0]


REFUSED = {
    "a fraction in integers": (
        lambda: tp.nn.step([1], 0.5),
        DTypeError,
        r"Step\(x=int32\[1\]\): 0.5 is not an integer",
    ),
    "a complex slope": (
        lambda: tp.nn.leaky_relu([1.0], 1j),
        DTypeError,
        r"LeakyRelu\(x=float32\[1\]\): 1j cannot become float32",
    ),
    "no slope": (lambda: tp.nn.leaky_relu([1.0], "a"), ArgumentError, "'alpha': must be a number"),
    "shapes": (
        lambda: tp.run_kernel("EluGrad", {"dy": [1.0], "y": [1.0, 2.0]}),
        ShapeError,
        "dy and y must have one shape",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        call()
