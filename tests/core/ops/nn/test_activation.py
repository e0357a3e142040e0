"""Activation functions: dtypes, defaults, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

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


def test_kernels_take_tensorflow_js_defaults():
    assert tp.run_kernel("LeakyRelu", {"x": [-1.0]}).tolist() == pytest.approx([-0.2])
    assert tp.run_kernel("Step", {"x": [-1.0]}).tolist() == [0.0]


REFUSED = {  # error: call, what the message says
    DTypeError: [
        (lambda: tp.nn.step([1], 0.5), r"Step\(x=int32\[1\]\): 0.5 is not an integer"),
        (
            lambda: tp.nn.leaky_relu([1.0], 1j),
            r"LeakyRelu\(x=float32\[1\]\): 1j cannot become float32",
        ),
    ],
    ArgumentError: [
        (lambda: tp.nn.leaky_relu([1.0], "a"), "'alpha': must be a number"),
    ],
    ShapeError: [
        (
            lambda: tp.run_kernel("EluGrad", {"dy": [1.0], "y": [1.0, 2.0]}),
            "dy and y must have the same shape",
        ),
    ],
}


test_refused = refused(REFUSED, regex=True)
