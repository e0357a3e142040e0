"""TopK against Python's sort with a key that states the order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensorplug.ops import sorting as ops
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.families import selection

NAN, INF = math.nan, math.inf
REAL = sorted(dtype.name for dtype in dt.REAL - dt.WIDENED)


def expected(row, k):
    """NaN first, then the larger, then the lower index; ints compared without conversion."""

    def key(index):
        value = row[index]
        return (
            (0, 0, index) if isinstance(value, float) and math.isnan(value) else (1, -value, index)
        )

    return sorted(range(len(row)), key=key)[:k]


def check(call, x, k, **attributes):
    values, indices = call(ops.TOP_K, x, k=k, **attributes)
    shape = (*x.shape[:-1], k)
    assert (indices.dtype, indices.shape) == (np.dtype("int32"), shape)
    assert (values.dtype, values.shape) == (x.dtype, shape)
    for at in np.ndindex(*x.shape[:-1]):
        row = [number.item() for number in x[at]]
        assert indices[at].tolist() == expected(row, k)
        np.testing.assert_array_equal(values[at], x[at][indices[at]])


def sample(dtype, shape, *, few):
    rng = np.random.default_rng(12)
    if dtype.startswith("float"):
        pool = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.5]
        x = rng.choice(pool, shape) if few else rng.standard_normal(shape)
        return np.asarray(x).astype(dtype)
    limits = np.iinfo(dtype)
    if few:
        return rng.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("few", [True, False], ids=["ties", "distinct"])
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(
    ("shape", "k"), [((2, 20000), 64), ((3, 12007), 16), ((500, 70), 17), ((2000, 17), 1)]
)
def test_few_of_many(call, dtype, shape, k, few):
    """By a loop of their own, in the order of the index and against it."""
    x = sample(dtype, shape, few=few)
    x[0].sort()
    x[1, ::-1].sort()
    check(call, x, k)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("k", [3, 40])
def test_nan_of_all_kinds_are_equal(call, dtype, k):
    """Whatever their signs and payloads, the lowest index comes first."""
    kind = np.dtype(dtype)
    x = np.random.default_rng(3).standard_normal((60, 1000)).astype(kind)
    bits = x.view(f"u{kind.itemsize}")
    nan = np.array([NAN, -NAN, NAN], kind).view(bits.dtype) | np.arange(3).astype(bits.dtype)
    bits[:, 900:903] = nan[::-1]
    bits[:, 20], bits[:, 500] = nan[1], nan[2]
    check(call, x, k)
    values, _ = call(ops.TOP_K, x, k=k)
    np.testing.assert_array_equal(values.view(bits.dtype)[:, 0], bits[:, 20])


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("k", [10, 64])
def test_few_of_many_are_found_by_a_loop(k):
    kind = np.dtype(np.float32)
    found = [
        selection.largest((rows, 4096), kind, number) is not None
        for rows, number in ((100, k), (1, k), (100, 65))
    ]
    assert found == [True, False, False]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("shape", "zeros"), [((70000,), 5), ((3, 30000), 4), ((200, 500), 3)])
def test_signs_of_zeros_keep_their_order(call, shape, zeros, descending):
    """In few long rows and in many."""
    rng = np.random.default_rng(8)
    x = rng.standard_normal(shape).astype("float32")
    signs = []
    for row in x.reshape(-1, shape[-1]):
        places = np.sort(rng.choice(shape[-1], zeros, replace=False))
        row[places] = rng.choice([0.0, -0.0], zeros)
        signs.append(np.signbit(row[places]))
    found = call(ops.SORT, x, axis=-1, descending=descending, stable=True)
    assert (found.dtype, found.shape) == (x.dtype, shape)
    expected = np.sort(x, axis=-1, kind="stable")
    expected = expected[..., ::-1] if descending else expected
    np.testing.assert_array_equal(found, expected)
    for row, wanted in zip(found.reshape(-1, shape[-1]), signs, strict=True):
        np.testing.assert_array_equal(np.signbit(row[row == 0]), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8"])
@pytest.mark.parametrize("descending", [False, True])
def test_order_of_many_rows(call, dtype, descending):
    """Threads share them; equals keep their order."""
    x = sample(dtype, (300, 400), few=True)
    if dtype.startswith("float"):
        x[np.isnan(x)] = INF  # Python's sort does not know where they belong
    found = call(ops.ARG_SORT, x, axis=-1, descending=descending, stable=True)
    assert (found.dtype, found.shape) == (np.dtype("int32"), x.shape)
    for row in range(0, 300, 29):
        numbers = x[row].tolist()
        wanted = sorted(range(400), key=numbers.__getitem__, reverse=descending)
        assert found[row].tolist() == wanted
