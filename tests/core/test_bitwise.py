"""Bits of integers and booleans."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import DTypeError

from .engines import expect

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu():
    with tp.use_backend("cpu"):
        yield


A = np.array([-128, -5, -1, 0, 1, 6, 127], np.int8)
B = np.array([3, -128, 85], np.int8)


@pytest.mark.parametrize(
    ("name", "by"),
    [("bitwise_and", operator.and_), ("bitwise_or", operator.or_), ("bitwise_xor", operator.xor)],
)
def test_of_two(name, by):
    function = getattr(tp, name)
    right = [[by(int(a), int(b)) for b in B] for a in A]
    expect(function(A[:, None], B), "int8", (7, 3), right)
    expect(by(tp.asarray(A[:, None]), tp.asarray(B)), "int8", (7, 3), right)
    expect(function(A, 3), "int8", (7,), [by(int(a), 3) for a in A])
    expect(function(3, A), "int8", (7,), [by(3, int(a)) for a in A])
    truth = np.array([True, False])
    expect(function(truth[:, None], truth), "bool", (2, 2), by(truth[:, None], truth))
    expect(function(A, np.int32([1] * 7)), "int32", (7,), [by(int(a), 1) for a in A])
    kernel = "".join(part.capitalize() for part in name.split("_"))
    expect(tp.run_kernel(kernel, {"a": A, "b": A[::-1]}), "int8", (7,), by(A, A[::-1]))
    with pytest.raises(DTypeError, match="is float32"):
        function(A, np.float32(1))


def test_invert():
    expect(tp.bitwise_invert(A), "int8", (7,), [-1 - int(a) for a in A])
    expect(~tp.asarray(np.uint16([0, 65535])), "uint16", (2,), [65535, 0])
    expect(tp.bitwise_invert(np.array([True, False])), "bool", (2,), [False, True])


def test_shifts():
    counts = np.int8([0, 1, 6, 7, 8, 100, -1])
    expect(tp.bitwise_left_shift(np.int8(3), counts), "int8", (7,), [3, 6, -64, -128, 0, 0, 0])
    right = [-100, -50, -2, -1, -1, -1, -1]
    expect(tp.bitwise_right_shift(np.int8(-100), counts), "int8", (7,), right)
    expect(tp.asarray(np.uint8([255])) >> 7, "uint8", (1,), [1])
    expect(1 << tp.asarray([0, 5, 31, 32]), "int32", (4,), [1, 32, -(2**31), 0])
    with pytest.raises(DTypeError, match="is bool"):
        tp.bitwise_left_shift(np.array([True]), np.array([True]))
