"""The Gaussian error linear unit and its slope against math.erfc, digit by digit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops.nn import gaussian_error as ops

X = np.concatenate([np.linspace(-7, 7, 70_001), [-1e30, -40, 0.0, 40, 1e30]])


def below(x):
    return math.erfc(-x * math.sqrt(0.5)) / 2


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_unit_is_within_three_roundings_of_x(call, dtype):
    x = X.astype(dtype)
    y = call(ops.GELU, x)
    expected = np.array([number * below(number) if number > -40 else 0.0 for number in x.tolist()])
    assert y.dtype == dtype
    assert np.all(np.abs(y - expected) <= 3 * np.finfo(dtype).eps * np.abs(np.clip(x, -40, None)))


def test_in_float64_small_results_have_their_digits():
    x = np.linspace(-30, -1, 3001)
    expected = np.array([number * below(number) for number in x.tolist()])
    wrong = np.abs(call_double(x) / expected - 1)
    assert np.all(wrong <= 2e-16 * (8 + 2 * x * x))  # a rounding of x changes as much


def call_double(x):
    from tensorplug.plugin import TensorType
    from tensorplug.plugin import dtypes as dt
    from tensorplug_cpu.kernels.nn.gaussian_error import gelu

    type_ = TensorType(dt.float64, x.shape)
    return gelu(type_, approximate=False, out=type_)(x)


def test_in_float32_small_results_and_slopes_have_their_digits(call):
    x = np.linspace(-13, -1, 3001, dtype=np.float32)
    allowed = np.finfo(np.float32).eps * (8 + 2 * np.square(x, dtype=np.float64))
    expected = np.array([number * below(number) for number in x.tolist()])
    assert np.all(np.abs(call(ops.GELU, x) / expected - 1) <= allowed)
    slopes = np.array([below(number) + number * density(number) for number in x.tolist()])
    larger = np.array([abs(number) * density(number) for number in x.tolist()])
    slope = call(ops.GELU_GRAD, np.ones_like(x), x)
    assert np.all(np.abs(slope - slopes) <= allowed * larger)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_is_within_four_roundings_of_1(call, dtype):
    x = X.astype(dtype)
    slope = call(ops.GELU_GRAD, np.ones_like(x), x)
    cut = np.clip(x, -40, 40).tolist()
    expected = np.array([below(number) + number * density(number) for number in cut])
    assert np.all(np.abs(slope - expected) <= 4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("approximate", [False, True])
def test_large_arguments_are_exact(call, dtype, approximate):
    x = np.array([-math.inf, -1000, -50, 50, 1000, math.inf], dtype)
    more = {"approximate": approximate}
    np.testing.assert_array_equal(call(ops.GELU, x, **more), np.maximum(x, 0))
    slope = call(ops.GELU_GRAD, np.full_like(x, 3), x, **more)
    np.testing.assert_array_equal(slope, [0, 0, 0, 3, 3, 3])
