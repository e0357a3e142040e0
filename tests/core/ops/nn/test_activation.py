"""Activation functions: dtypes, defaults, refusals, and gradients far out."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

SCALE, ALPHA = 1.0507009873554804934, 1.6732632423543772848


pytestmark = pytest.mark.usefixtures("on_the_cpu")


CURVES = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "softplus": lambda x: np.logaddexp(x, 0),
    "log_sigmoid": lambda x: -np.logaddexp(-x, 0),
    "silu": lambda x: x * np.exp(-np.logaddexp(-x, 0)),
}


@pytest.mark.parametrize("name", CURVES)
def test_integers_become_floats(name):
    y = getattr(tp.nn, name)([-1, 0, 2])
    assert y.dtype is tp.float32
    np.testing.assert_allclose(y.numpy(), CURVES[name](np.array([-1.0, 0, 2])), rtol=1e-6)


@pytest.mark.parametrize("name", ["relu6", "step"])
def test_integers_stay_integers(name):
    y = getattr(tp.nn, name)(tp.asarray([-1, 0, 9], dtype="int16"))
    assert y.dtype is tp.int16
    assert y.tolist() == {"relu6": [0, 0, 6], "step": [0, 0, 1]}[name]


def test_log_sigmoid():
    x = np.array([-1000.0, -30.0, -1e-6, 0.0, 6.0, 1000.0])
    expected = CURVES["log_sigmoid"](x)
    np.testing.assert_allclose(tp.nn.log_sigmoid(x).numpy(), expected, rtol=1e-14, atol=1e-30)


def test_levels_and_slopes():
    assert tp.nn.step([-1.0, 0.0, 2.0], 0.25).tolist() == [0.25, 0.25, 1.0]
    assert tp.nn.gelu([1.0]).tolist() == pytest.approx([0.8413447])
    assert tp.nn.gelu([1.0], approximate=True).tolist() == pytest.approx([0.8411920])
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


def test_kernels_take_tensorflow_js_defaults():
    assert tp.run_kernel("LeakyRelu", {"x": [-1.0]}).tolist() == pytest.approx([-0.2])
    assert tp.run_kernel("Step", {"x": [-1.0]}).tolist() == [0.0]


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
        "dy and y must have the same shape",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        call()
