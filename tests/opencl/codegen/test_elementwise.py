"""Elementwise kernels: signs of zeros, and the digits of log-softmax."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops.elementwise import powers, rounding, trigonometry
from tensorplug.ops.elementwise import unary as ops
from tensorplug.ops.nn import activation

FLOATS = ["float32", "float64"]


ODD_FUNCTIONS = [
    *(ops.NEG, ops.FLOOR, ops.SQRT, ops.SIN, ops.ATAN, ops.TANH, ops.ERF),
    *(rounding.CEIL, rounding.ROUND, rounding.TRUNC, powers.EXPM1, powers.LOG1P),
    *(trigonometry.TAN, trigonometry.SINH, trigonometry.ASINH, trigonometry.ATANH),
]


def name(value):
    return getattr(value, "name", None)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("spec", ODD_FUNCTIONS, ids=name)
def test_zero_keeps_its_sign(call, spec, dtype):
    zeros = np.array([0.0, -0.0], dtype)
    flipped = spec is ops.NEG
    assert np.signbit(call(spec, zeros)).tolist() == [flipped, not flipped]


def test_log_softmax_keeps_the_digits_of_a_sure_guess(call, near):
    """log(1 + e**-20) is 2e-9, which a float32 sum of 1 and e**-20 cannot hold."""
    actual = call(activation.LOG_SOFTMAX, np.array([20.0, 0.0], np.float32))
    near(actual, [-math.log1p(math.exp(-20)), -20 - math.log1p(math.exp(-20))], "float32", ulp=4)
