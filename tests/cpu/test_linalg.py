"""Matrix products against sums of Python numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.ops import matrix_products as ops
from tensorplug.plugin import dtypes as dt

NUMERIC = sorted(dtype.name for dtype in dt.NUMERIC)


def product(a, b):
    """Multiply by the definition; Python's integers and floats do not overflow here."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    right = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    result = np.zeros((*batch, a.shape[-2], b.shape[-1]), object)
    for at in np.ndindex(*result.shape):
        row, column = left[(*at[:-2], at[-2])], right[at[:-2]][:, at[-1]]
        result[at] = sum((x.item() * y.item() for x, y in zip(row, column, strict=True)), 0)
    return result


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((1, 1), (1, 1)),
        ((5, 2, 3), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 2)),
        ((2, 0), (0, 3)),
        ((0, 2), (2, 3)),
        ((0, 2, 2), (2, 2)),
    ],
)
def test_product(call, dtype, flags, a, b):
    rng = np.random.default_rng(13)
    x, y = (rng.integers(0, 9, shape).astype(dtype) for shape in (a, b))
    if dtype.startswith("complex"):
        x, y = x * (1 + 2j), y * (2 - 1j)
        x, y = x.astype(dtype), y.astype(dtype)
    expected = product(x, y)
    inputs = [z.swapaxes(-1, -2) if flag else z for z, flag in zip((x, y), flags, strict=True)]
    result = call(ops.BATCH_MAT_MUL, *inputs, transpose_a=flags[0], transpose_b=flags[1])
    assert (result.dtype, result.shape) == (np.dtype(dtype), expected.shape)
    if dtype in ("int8", "uint8"):
        expected = (expected.astype(np.int64)).astype(dtype)  # wraps
    np.testing.assert_array_equal(result, expected.astype(dtype))


def test_integers_wrap(call):
    x = np.array([[2**31 - 1, 2]], "int32")
    result = call(ops.BATCH_MAT_MUL, x, np.array([[2], [1]], "int32"))
    assert (result.dtype, result.tolist()) == (np.dtype("int32"), [[0]])


def test_float16_is_rounded_once(call):
    """A sum in float16 would stop at 2048, where 1 is less than half an ulp."""
    x = np.ones((1, 4096), "float16")
    result = call(ops.BATCH_MAT_MUL, x, x, transpose_b=True)
    assert (result.dtype, result.tolist()) == (np.dtype("float16"), [[4096.0]])
