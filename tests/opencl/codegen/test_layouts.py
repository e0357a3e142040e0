from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tensorplug.dispatch.context import use_context
from tensorplug.errors import KernelRefusedError
from tensorplug.ops import creation, matrix_products, movement, reduction
from tensorplug_opencl.codegen import layouts
from tensorplug_opencl.codegen.layouts import Layout


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 1, 5), (2, 3, 4, 5)])
def test_row_major(shape):
    expected = tuple(stride // 8 for stride in np.zeros(shape).strides)
    assert layouts.row_major(shape) == expected


@pytest.mark.parametrize(
    ("shape", "target"),
    [((3,), (2, 3)), ((), (4,)), ((2, 1, 3), (5, 2, 4, 3)), ((1, 1), (2, 2)), ((2, 3), (2, 3))],
)
def test_broadcast_strides(shape, target):
    dense = np.arange(np.prod(shape, dtype=int))
    strides = [8 * stride for stride in layouts.broadcast_strides(shape, target)]
    walked = as_strided(dense, target, strides)
    np.testing.assert_array_equal(walked, np.broadcast_to(dense.reshape(shape), target))


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ((2, 3, 4), [(12, 4, 1)], Layout((24,), ((1,),))),
        ((2, 3, 4), [(12, 4, 1), (0, 4, 1)], Layout((2, 12), ((12, 1), (0, 1)))),
        ((2, 3, 4), [(0, 0, 0), (12, 4, 1)], Layout((24,), ((0,), (1,)))),
        ((4, 3), [(1, 4)], Layout((4, 3), ((1, 4),))),
        ((1, 5, 1), [(5, 1, 1)], Layout((5,), ((1,),))),
        ((1, 1), [(1, 1), (0, 0)], Layout((), ((), ()))),
        ((), [()], Layout((), ((),))),
    ],
)
def test_collapse(sizes, strides, expected):
    assert layouts.collapse(sizes, strides) == expected


def test_packed_is_sizes_then_strides():
    actual = layouts.pack([Layout((2, 3), ((3, 1), (0, 1)))], np.dtype(np.uint32))
    assert actual.dtype == np.uint32
    assert actual.tolist() == [2, 3, 3, 1, 0, 1]
    assert layouts.pack([Layout((), ((),))], np.dtype(np.uint32)) is None


def test_too_many_axes_are_refused():
    many = Layout((2,) * 64, ((1,) * 64, (0,) * 64))
    with pytest.raises(KernelRefusedError, match="64 axes"):
        layouts.pack([many], np.dtype(np.uint64))


def test_wide_indices_where_narrow_ones_do_not_reach(monkeypatch, context):
    """The same kernels with 64-bit indices, as for arrays beyond 2**31 elements."""
    assert layouts.index_dtype(2**31 - 1) == np.uint32
    assert layouts.index_dtype(5, 2**31) == np.uint64
    monkeypatch.setattr(layouts, "NARROW_LIMIT", 1)
    x = np.arange(3 * 5 * 7, dtype=np.float64).reshape(3, 5, 7)
    with use_context(context):
        tensor = creation.asarray(x)
        np.testing.assert_array_equal(movement.permute_dims(tensor).numpy(), x.T)
        column = creation.asarray(x[:, :1])
        np.testing.assert_array_equal((tensor + column).numpy(), x + x[:, :1])
        np.testing.assert_array_equal(reduction.sum(tensor, axis=(0, 2)).numpy(), x.sum((0, 2)))
        product = matrix_products.matmul(tensor, tensor, transpose_b=True).numpy()
        np.testing.assert_array_equal(product, x @ x.transpose(0, 2, 1))
