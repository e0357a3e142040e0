"""Rounding, signs and bounds."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, NotConnectedError

from .engines import expect
from .test_elementary_functions import exactly

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu():
    with tp.use_backend("cpu"):
        yield


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc", "sign"])
def test_integers(name):
    x = np.int16([-3, 0, 7])
    result = tp.run_kernel(name.capitalize(), {"x": x})
    expect(result, "int16", (3,), np.sign(x) if name == "sign" else x)
    with pytest.raises(NotConnectedError):
        tp.grad(lambda x: tp.sum(getattr(tp, name)(x)))(np.float32([0.5]))


def test_large_odd_numbers_stay():
    x = np.float32([2**23 - 0.5, 2**23 + 1, -(2.0**24) - 2])
    expect(tp.round(x), "float32", (3,), [2**23, 2**23 + 1, -(2**24) - 2])


def test_signs_of_complex_numbers():
    signs = tp.sign(np.array([3 + 4j, 0, -2j, complex(nan, 1)]))
    exactly(signs, "complex128", [0.6 + 0.8j, 0, -1j, complex(nan, nan)])


def test_signs_of_zeros_and_nan():
    x = np.array([1, -1, 0.0, -0.0, inf, -inf, nan, np.copysign(nan, -1)], np.float32)
    negative = [False, True, False, True, False, True, False, True]
    expect(tp.signbit(x), "bool", (8,), negative)
    expect(tp.signbit(np.int8([-128, 0, 1])), "bool", (3,), [True, False, False])
    exactly(tp.copysign(np.float32(2), x), "float32", np.where(negative, -2, 2))
    exactly(tp.copysign(x[:6], -0.0), "float32", [-1, -1, -0.0, -0.0, -inf, -inf])
    expect(tp.copysign(np.int32([3]), np.int32([-1])), "float32", (1,), [-3])


# Bounds -----------------------------------------------------------------------------------

F = np.float32([-3, -0.5, 0.5, 3, nan, inf])
I = np.array([-3, 0, 5], np.int8)  # noqa: E741  # integers, beside F

CLIPPED = [  # x, min, max, values
    (F, -1, 1, [-1, -0.5, 0.5, 1, nan, 1]),
    (F, 0, None, [0, 0, 0.5, 3, nan, inf]),
    (F, None, 0.25, [-3, -0.5, 0.25, 0.25, nan, 0.25]),
    (F, None, None, F),
    (F, nan, 1, [nan] * 6),
    (F, np.float32([0, 0, 1, 1, 1, 1]), 2, [0, 0, 1, 2, nan, 2]),
    (F, np.float64(0), np.float32(1), [0, 0, 0.5, 1, nan, 1]),
    (F, -inf, np.int32(1), [-3, -0.5, 0.5, 1, nan, 1]),
    (np.float32([-inf, inf]), None, 1, [-inf, 1]),
    (np.float32([-inf, inf]), -1, None, [-1, inf]),
    (I, -1, 4, [-1, 0, 4]),
    (I, 1, None, [1, 1, 5]),
    (I, -1000, 1000, [-3, 0, 5]),
    (I, np.int32(-1000), np.int64(300), [-3, 0, 5]),
    (I, np.int32([[1], [-1]]), None, [[1, 1, 5], [-1, 0, 5]]),
]


@pytest.mark.parametrize(("x", "low", "high", "values"), CLIPPED)
def test_clip(x, low, high, values):
    expect(tp.clip(x, low, high), str(x.dtype), np.shape(values), values)
    expect(tp.asarray(x).clip(max=high, min=low), str(x.dtype), np.shape(values), values)


def test_clip_by_value_as_in_tensorflow_js():
    expect(tp.clip_by_value(F, -1, 1.5), "float32", (6,), [-1, -0.5, 0.5, 1.5, nan, 1.5])
    bounds = {"clip_value_min": 0.5, "clip_value_max": 2.75}  # kept as int32: 0 and 2
    x = tp.asarray([-1, 0, 1, 2, 3])
    expect(tp.run_kernel("ClipByValue", {"x": x}, bounds), "int32", (5,), [0, 0, 1, 2, 2])
    expect(tp.clip_by_value(np.uint8([0, 255]), -5, 300), "uint8", (2,), [0, 255])
    with pytest.raises(ArgumentError, match="'clip_value_max' is missing"):
        tp.run_kernel("ClipByValue", {"x": x}, {"clip_value_min": 0})


def test_gradients_of_bounds():
    x = np.float32([-2, -1, 0, 1, 2])
    for clip in (
        lambda x: tp.clip(x, -1, 1),
        lambda x: tp.clip_by_value(x, -1, 1),
    ):
        expect(tp.grad(lambda x, clip=clip: tp.sum(clip(x)))(x), "float32", (5,), [0, 1, 1, 1, 0])
    expect(tp.grad(lambda x: tp.sum(tp.clip(x, min=0)))(x), "float32", (5,), [0, 0, 1, 1, 1])
    low = tp.grad(lambda low: tp.sum(tp.clip(x, low)))(np.float32(0.5))
    expect(low, "float32", (), 3)
