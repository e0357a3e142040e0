"""Tensors from attributes."""

from __future__ import annotations

import math

import pytest

from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops import creation as ops
from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import uniform


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
