"""Elementwise kernels: signs of zeros, and the digits of softmax."""

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


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(call, near, axis, dtype):
    x = (np.random.default_rng(8).normal(size=(3, 70, 5)) * 20).astype(dtype)
    wide = x.astype(np.longdouble)
    below = wide - wide.max(axis=axis, keepdims=True)
    others = np.where(below == 0, 0, np.exp(below)).sum(axis=axis, keepdims=True)
    shares = np.exp(below) / (1 + others)
    logs, step = below - np.log1p(others), np.finfo(dtype).eps
    # The distances to the largest are rounded, by half their own last place.
    off = step * (3 - below / 2)
    of_sum = (np.where(below == 0, 0, shares) * off).sum(axis=axis, keepdims=True)
    bound = shares * (off + of_sum)
    near(call(activation.SOFTMAX, x, dim=axis), shares, dtype, ulp=1, bound=bound)
    near(call(activation.LOG_SOFTMAX, x, axis=axis), logs, dtype, bound=of_sum - logs * step * 3)


def test_log_softmax_keeps_the_digits_of_a_sure_guess(call, near):
    """log(1 + e**-20) is 2e-9, which a float32 sum of 1 and e**-20 cannot hold."""
    actual = call(activation.LOG_SOFTMAX, np.array([20.0, 0.0], np.float32))
    near(actual, [-math.log1p(math.exp(-20)), -20 - math.log1p(math.exp(-20))], "float32", ulp=4)
