"""Subscripts with integer tensors that have no data yet: compiled, eager and NumPy agree."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)

# Keys for a traced integer i, which is 1 here; all lie inside the axes.
KEYS = {
    "a slice": lambda i: slice(i, i + 2),
    "a number in front": lambda i: (slice(None), slice(i, 2 + i)),
    "both ends moved": lambda i: (..., slice(i + 1, i + 3)),
    "from before": lambda i: (..., slice(i - 1, i)),
    "no elements": lambda i: (..., slice(i, i)),
    "none left": lambda i: (..., slice(i + 1, i)),
    "sums of sums": lambda i: slice((i + 2) - 1, 3 + (i - 1)),
    "casts": lambda i: slice(i, tp.astype(i, "int64") + 2),
    "a step of 1": lambda i: slice(i, i + 2, 1),
    "two slices": lambda i: (slice(i, i + 1), slice(None), slice(i, i + 3)),
    "beside an integer": lambda i: (-1, slice(i, i + 2)),
    "beside a slice": lambda i: (slice(1, None), slice(i, i + 2), slice(-3, -1)),
    "beside a traced integer": lambda i: (i, slice(None), slice(i, i + 2)),
    "beside a new axis": lambda i: (None, slice(i, i + 2), ..., None),
    "beside a step": lambda i: (slice(None, None, -2), slice(i, i + 2)),
    "beside an index array": lambda i: ([2, 0], slice(i, i + 2)),
    "between index arrays": lambda i: ([2, 0], slice(i, i + 2), [1, 4]),
    "beside a mask": lambda i: (np.array([True, False, True]), slice(i, i + 2)),
    "an integer": lambda i: i,
    "an integer inside": lambda i: (slice(None), i),
    "an integer behind": lambda i: (..., i + 1),
    "integers": lambda i: (i, i + 1, 0),
    "an integer beside an index array": lambda i: ([2, 0], i),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_reads(key, dtype):
    expected = X[key(np.array(1))]
    at = tp.asarray(1, dtype=dtype)

    def read(x, i):
        return x[key(i)]

    for f in (read, tp.compile(read)):
        result = f(tp.asarray(X), at)
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("single", [True, False])
def test_writes(key, single):
    expected = X.copy()
    part = expected[key(np.array(1))]
    value = np.float32(-1) if single else -part - 1
    expected[key(np.array(1))] = value

    def write(x, i, value):
        x = tp.copy(x)
        x[key(i)] = value
        return x

    for f in (write, tp.compile(write)):
        np.testing.assert_array_equal(
            f(tp.asarray(X), tp.asarray(1), tp.asarray(value)).numpy(), expected
        )


BOUNDS = {
    "to the end": lambda x, i: x[i:],
    "from the begin": lambda x, i: x[:i],
    "to a number": lambda x, i: x[i:3],
    "to a product": lambda x, i: x[i : i * 2],
    "to another tensor": lambda x, i: x[i : tp.sum(x) > 3],
    "by a step": lambda x, i: x[i : i + 2 : 2],
    "backwards": lambda x, i: x[i : i - 2 : -1],
}


@pytest.mark.parametrize("read", BOUNDS.values(), ids=BOUNDS)
def test_sizes_that_depend_on_data_are_refused(read):
    with pytest.raises(tp.errors.DataNeededError, match=r"dynamic_slice\(x, starts, sizes\)"):
        tp.compile(read)(tp.asarray(X), tp.asarray(1))


@pytest.mark.parametrize(("at", "first"), [(7, 2), (-1, 2), (-2, 2), (-4, 0), (-9, 0)])
def test_windows_beyond_the_ends_are_moved(at, first):
    def both(x, i):
        x = tp.copy(x)
        part = x[:, i : i + 2]
        x[:, i : i + 2] = -part - 1
        return part, x

    part, written = tp.compile(both)(tp.asarray(X), tp.asarray(at))
    expected = X.copy()
    expected[:, first : first + 2] = -X[:, first : first + 2] - 1
    np.testing.assert_array_equal(part.numpy(), X[:, first : first + 2])
    np.testing.assert_array_equal(written.numpy(), expected)


def test_a_window_longer_than_its_axis_is_an_error():
    with pytest.raises(tp.errors.ShapeError, match="a window of 9 exceeds axis 0 of length 3"):
        tp.compile(lambda x, i: x[i : i + 9])(tp.asarray(X), tp.asarray(0))


def test_windows_of_a_loop_and_of_each_example():
    def double(x):
        def step(i, x):
            x = tp.copy(x)
            x[i : i + 1] = x[i : i + 1] * 2
            return x

        return tp.fori_loop(0, 3, step, x)

    np.testing.assert_array_equal(tp.compile(double)(tp.asarray(X)).numpy(), 2 * X)
    np.testing.assert_array_equal(double(tp.asarray(X)).numpy(), 2 * X)
    outside = tp.compile(
        lambda x, i: tp.scan(lambda carry, _: (carry + x[i : i + 1], 0), x[:1] * 0, None, 2)[0]
    )
    np.testing.assert_array_equal(outside(tp.asarray(X), tp.asarray(1)).numpy(), 2 * X[1:2])
    places = tp.asarray([0, 3, 1])
    mapped = tp.vmap(lambda x, i: x[i : i + 2])
    expected = np.stack([X[0, 0:2], X[1, 2:4], X[2, 1:3]])
    for f in (mapped, tp.compile(mapped)):
        np.testing.assert_array_equal(f(tp.asarray(X), places).numpy(), expected)


def test_a_call_that_does_not_depend_on_arguments_has_data():
    at = tp.asarray(1)
    assert tp.compile(lambda x: x[at:])(tp.asarray(X)).tolist() == X[1:].tolist()
    with pytest.raises(tp.errors.DataNeededError):
        tp.compile(lambda x, i: x[i : at + 2])(tp.asarray(X), at)
