"""Views and their offsets, and sums of many updates."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.dispatch.context import use_context
from tensorplug.ops import creation, extents, movement
from tensorplug.ops.indexing import writing


def numbers(shape, dtype="int32", seed=1):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize(
    ("begin", "size", "shared"), [((1, 0), (2, 5), True), ((0, 1), (4, 2), False)]
)
def test_views_share_memory_where_they_are_contiguous(context, begin, size, shared):
    with use_context(context):
        x = creation.asarray(numbers((4, 5)))
        part = extents.slice(x, begin, size)
        flat = movement.reshape(part, (-1,))
    memory = [context.device.backend.allocation(view._buffer)[0] for view in (x, part, flat)]
    assert memory[1] == memory[2]
    assert (memory[0] == memory[1]) is shared


def test_kernels_read_views_at_their_offset(context):
    x = np.arange(24.0).reshape(6, 4)
    with use_context(context):
        part = extents.slice(creation.asarray(x), (2, 0), (3, 4))
        actual = [(part + part), part.sum(axis=0), movement.permute_dims(part), part @ part.T]
    rows = x[2:5]
    for tensor, expected in zip(
        actual, [rows * 2, rows.sum(0), rows.T, rows @ rows.T], strict=True
    ):
        np.testing.assert_array_equal(tensor.numpy(), expected)


def test_scatter_of_floats_is_exact_to_one_rounding(call, near):
    updates = np.full(3000, 0.1, np.float32)
    indices = np.zeros((3000, 1), np.int32)
    expected = [3000 * np.longdouble(np.float32(0.1)), 0]
    near(call(writing.SCATTER_ND, indices, updates, shape=(2,)), expected, "float32", ulp=1)
