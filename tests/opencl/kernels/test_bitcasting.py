"""The same memory as another dtype, also where a view begins within a wider element."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.dispatch.calls import as_tensor
from tensorplug.dispatch.context import use_context
from tensorplug.ops.elementwise.bitcasting import bitcast
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import reshape

WORDS = np.arange(12, dtype=np.int16) * 257


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((8,), "uint16"),
        ((8,), "int8"),
        ((4, 2), "int32"),
        ((2, 4), "int64"),
        ((2, 4), "complex64"),
    ],
)
def test_views_from_any_element_on(context, first, shape, dtype):
    with use_context(context):
        part = slice_(as_tensor(WORDS), (first,), (8,))
        actual = bitcast(reshape(part, shape), dtype)
        assert actual.dtype.name == dtype
        assert actual.numpy().tobytes() == WORDS[first : first + 8].tobytes()


def test_an_equal_width_shares_the_memory(context):
    with use_context(context):
        x = as_tensor(np.arange(6, dtype=np.float32))
        for dtype in ("int32", "uint8", "float32"):
            assert bitcast(x, dtype)._buffer.memory is x._buffer.memory
        pairs = reshape(x, (3, 2))
        assert bitcast(pairs, "complex64")._buffer.memory is x._buffer.memory
