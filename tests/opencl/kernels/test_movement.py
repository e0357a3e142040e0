"""Creation, movement, indexing and sorting against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.dispatch.context import use_context
from tensorplug.ops import creation, extents, joining, movement, ranges, sorting
from tensorplug.ops.indexing import indexing, writing

DTYPES = ["bool", "int8", "uint16", "float32", "int64"]


def numbers(shape, dtype="int32", seed=1):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((), ()),
        ((4, 5), (1, 0)),
        ((2, 3, 4), (2, 0, 1)),
        ((2, 1, 3), (1, 0, 2)),
        ((2, 0, 3), (2, 1, 0)),
        ((2, 3, 2, 3, 2, 3, 2, 3), (7, 0, 6, 1, 5, 2, 4, 3)),
        ((130, 67), (1, 0)),
    ],
)
def test_transpose(call, near, shape, perm, dtype):
    x = numbers(shape, dtype)
    near(call(movement.TRANSPOSE, x, perm=perm), x.transpose(perm), dtype)


@pytest.mark.parametrize(
    ("shape", "target"),
    [((), (3, 2)), ((3,), (2, 3)), ((2, 1), (2, 5)), ((1, 2, 1), (3, 2, 4)), ((1,), (0,))],
)
def test_broadcast_to(call, near, shape, target):
    x = numbers(shape)
    near(call(movement.BROADCAST_TO, x, shape=target), np.broadcast_to(x, target), "int32")


@pytest.mark.parametrize(
    ("shape", "begin", "size"),
    [
        ((6,), (2,), (3,)),
        ((4, 5), (1, 0), (2, 5)),
        ((4, 5), (1, 2), (2, 3)),
        ((4, 5), (4, 0), (0, 5)),
        ((2, 3, 4, 5), (1, 1, 0, 2), (1, 2, 4, 3)),
        ((), (), ()),
    ],
)
def test_slice(call, near, shape, begin, size):
    x = numbers(shape)
    where = tuple(slice(b, b + n) for b, n in zip(begin, size, strict=True))
    near(call(extents.SLICE, x, begin=begin, size=size), x[where], "int32")


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


@pytest.mark.parametrize("value", [0, 7, -1.5, True])
@pytest.mark.parametrize(
    ("shape", "paddings"),
    [((3,), [(1, 2)]), ((2, 3), [(0, 0), (2, 1)]), ((0, 2), [(1, 0), (0, 3)]), ((2,), [(0, 0)])],
)
def test_pad(call, near, shape, paddings, value):
    x = numbers(shape, "float32")
    expected = np.pad(x, paddings, constant_values=value)
    near(call(extents.PAD_V2, x, paddings=paddings, constant_value=value), expected, "float32")


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(2,), (3,), (0,), (1,)], 0),
        ([(2, 3), (2, 1)], 1),
        ([(2, 3, 2), (1, 3, 2)], 0),
        ([(2, 0), (2, 0)], 1),
        ([(4, 2)], 1),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_concat(call, near, shapes, axis, dtype):
    xs = [numbers(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    near(call(joining.CONCAT, xs, axis=axis), np.concatenate(xs, axis), dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, "int8"),
        (1.5, "float32"),
        (True, "bool"),
        (-0.0, "float64"),
        (7, "int64"),
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (1000,)])
def test_fill(call, near, shape, value, dtype):
    expected = np.full(shape, np.array(value).astype(dtype))
    near(call(creation.FILL, shape=shape, value=value, dtype=dtype), expected, dtype)


@pytest.mark.parametrize(
    ("start", "stop", "step", "dtype", "expected"),
    [
        (0, 5, 1, "int32", [0, 1, 2, 3, 4]),
        (5, 0, -2, "int8", [5, 3, 1]),
        (0, 1, 0.25, "float32", [0, 0.25, 0.5, 0.75]),
        (2**40, 2**40 + 3, 1, "int64", [2**40, 2**40 + 1, 2**40 + 2]),
        (3, 3, 1, "float64", []),
        (1, 2, 0.1, "float64", [1 + k * 0.1 for k in range(10)]),
    ],
)
def test_range(call, near, start, stop, step, dtype, expected):
    actual = call(ranges.RANGE, start=start, stop=stop, step=step, dtype=dtype)
    near(actual, np.array(expected, np.longdouble if "float" in dtype else dtype), dtype)


INDEX_DTYPES = ["int8", "int32", "int64", "uint8", "uint64"]


@pytest.mark.parametrize("dtype", INDEX_DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis", "wanted"), [((5,), 0, (3,)), ((2, 5, 3), 1, (2, 2)), ((4, 5), 1, ())]
)
def test_gather(call, near, shape, axis, wanted, dtype):
    x = numbers(shape, "float32")
    indices = np.random.default_rng(2).integers(0, 5, wanted).astype(dtype)
    actual = call(indexing.GATHER_V2, x, indices, axis=axis)
    near(actual, np.take(x, indices.astype(int), axis), "float32")


def test_gather_in_batches(call, near):
    x, indices = numbers((3, 2, 5, 4)), np.random.default_rng(2).integers(-5, 5, (3, 6))
    expected = np.stack([x[b][:, indices[b]] for b in range(3)])
    near(call(indexing.GATHER_V2, x, indices, axis=2, batch_dims=1), expected, "int32")


@pytest.mark.parametrize(
    ("dtype", "index", "expected"),
    [
        ("int32", -1, 4),
        ("int32", -5, 0),
        ("int32", 5, 4),
        ("int32", 2**31 - 1, 4),
        ("int32", -(2**31), 0),
        ("int64", -(2**63), 0),
        ("uint64", 2**64 - 1, 4),
    ],
)
def test_gather_counts_from_the_end_and_clamps(call, dtype, index, expected):
    actual = call(indexing.GATHER_V2, np.arange(5), np.array([index], dtype))
    assert actual.tolist() == [expected]


def scattered(indices, updates, shape):
    """Add with Python's loop, in the widest type there is."""
    wide = np.longdouble if updates.dtype.kind == "f" else updates.dtype
    depth = indices.shape[-1]
    rows, parts = indices.reshape(-1, depth), updates.reshape(-1, *shape[depth:])
    result = np.zeros(shape, wide)
    for index, update in zip(rows, parts, strict=True):
        result[tuple(index)] += update
    return result


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64"])
@pytest.mark.parametrize("count", [1, 7, 3000])
def test_scatter_adds_duplicates(call, near, count, dtype):
    rng = np.random.default_rng(4)
    indices = rng.integers(0, 4, (count, 2))
    updates = (rng.normal(size=(count, 3)) * 30).astype("int64").astype(dtype)
    expected = scattered(indices, updates, (4, 5, 3))
    near(call(writing.SCATTER_ND, indices, updates, shape=(4, 5, 3)), expected, dtype)


def test_scatter_of_floats_is_exact_to_one_rounding(call, near):
    updates = np.full(3000, 0.1, np.float32)
    indices = np.zeros((3000, 1), np.int32)
    expected = [3000 * np.longdouble(np.float32(0.1)), 0]
    near(call(writing.SCATTER_ND, indices, updates, shape=(2,)), expected, "float32", ulp=1)


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([[0], [-1], [3]], [1, 0, 0, 4 + 2]),
        ([[4], [-5], [1]], [0, 4, 0, 0]),
        (np.zeros((3, 0), int).tolist(), None),
    ],
)
def test_scatter_drops_what_is_out_of_range(call, indices, expected):
    indices = np.array(indices, dtype=np.int64).reshape(3, -1)
    if expected is None:  # indices of depth 0 name the whole result
        actual = call(writing.SCATTER_ND, indices, np.ones((3, 2), np.int32), shape=(2,))
        assert actual.tolist() == [3, 3]
        return
    actual = call(writing.SCATTER_ND, indices, np.array([1, 2, 4], np.int32), shape=(4,))
    assert actual.tolist() == expected


@pytest.mark.parametrize("dtype", INDEX_DTYPES)
def test_one_hot(call, near, dtype):
    indices = np.array([[0, 2], [1, 3]], dtype)
    expected = np.where(np.arange(3) == indices[..., None], 5, -1)
    actual = call(indexing.ONE_HOT, indices, depth=3, on_value=5, off_value=-1, dtype="int16")
    near(actual, expected, "int16")


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint32", "float64"])
@pytest.mark.parametrize(
    ("shape", "k"),
    [((5,), 2), ((3, 4), 4), ((2, 512), 512), ((2, 513), 100), ((1, 5000), 5000), ((3, 2), 0)],
)
def test_top_k(call, near, shape, k, dtype):
    x = np.random.default_rng(5).integers(0, 60, shape).astype(dtype)
    if x.dtype.kind == "f" and k:
        x[..., 1] = x[..., -1] = np.nan
        x[..., 0] = np.inf
    key = np.where(np.isnan(x), 1e300, np.minimum(x.astype(float), 1e299))
    order = np.argsort(-key, axis=-1, kind="stable")[..., :k]
    values, indices = call(sorting.TOP_K, x, k=k)
    near(indices, order, "int32")
    near(values, np.take_along_axis(x, order, -1), dtype)
