"""Tensors from attributes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops import creation as ops
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import uniform

FIXED = sorted(dtype.name for dtype in dt.FIXED)


@pytest.mark.parametrize("dtype", FIXED)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize(
    ("spec", "number"), [(ops.ZEROS_LIKE, 0), (ops.ONES_LIKE, 1)], ids=["0", "1"]
)
def test_like(call, near, spec, number, shape, dtype):
    near(call(spec, np.full(shape, 7).astype(dtype)), np.full(shape, number), dtype)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "int8", 3),
        (-128, "int8", -128),
        (2**64 - 1, "uint64", 2**64 - 1),
        (2.0, "int32", 2),
        (2, "bool", True),
        (1e10, "float16", math.inf),
        (-0.0, "float32", -0.0),
        (math.nan, "float64", math.nan),
        (1 + 2j, "complex64", 1 + 2j),
    ],
)
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 2)])
def test_fill(call, near, value, dtype, expected, shape):
    near(call(ops.FILL, shape=shape, value=value, dtype=dtype), np.full(shape, expected), dtype)


@pytest.mark.parametrize("size", [4, 256, 257, 4096])
def test_each_result_has_memory_of_its_own(size):
    """Small ones are copies of an array that is kept, which nobody may change."""
    out = TensorType(dt.float32, (size,))
    make = uniform(out, 3)
    first, second = make(), make()
    first[:] = 5
    assert (second == 3).all()
    assert (make() == 3).all()
    assert second.flags.owndata
    assert second.flags.writeable


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (300, "uint8", ArgumentError),
        (-1, "uint64", ArgumentError),
        (1.5, "int32", DTypeError),
        (1j, "float32", DTypeError),
        (math.inf, "int32", DTypeError),
        (1, "string", DTypeError),
    ],
)
def test_fill_refuses_numbers_out_of_range(call, value, dtype, error):
    with pytest.raises(error, match=dtype):
        call(ops.FILL, shape=(2,), value=value, dtype=dtype)


@pytest.mark.parametrize(
    ("start", "stop", "step", "dtype", "expected"),
    [
        (0, 5, 1, "int32", [0, 1, 2, 3, 4]),
        (5, 0, -2, "int8", [5, 3, 1]),
        (0, 0, 1, "float32", []),
        (2**62, 2**62 + 3, 1, "int64", [2**62, 2**62 + 1, 2**62 + 2]),
        (-3, 3, 3, "int16", [-3, 0]),
        (0.5, 2.0, 0.5, "float32", [0.5, 1.0, 1.5]),
        (0.5, 2.6, 1, "int32", [0, 1, 2]),
        (0, 1, 0.25, "complex64", [0, 0.25, 0.5, 0.75]),
    ],
)
def test_range(call, near, start, stop, step, dtype, expected):
    near(
        call(ops.RANGE, start=start, stop=stop, step=step, dtype=dtype), np.array(expected), dtype
    )


def test_range_adds_up_no_rounding_errors(call, near):
    expected = [0.1 * index for index in range(100_000)]
    near(call(ops.RANGE, start=0, stop=10_000.0, step=0.1, dtype="float32"), expected, "float32")
