"""An assignment writes in place where nothing else sees the memory, and copies where it does."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.arange(24.0).reshape(4, 6)


def tensor():
    return tp.asarray(X)


def address(x):
    return x._live().backend.allocation(x._buffer)[0]


WITNESSES = {  # what sees the memory for as long as it lives
    "view": lambda x: x[1:],
    "view of a view": lambda x: x.T[1:][None],
    "handle": lambda x: x.__copy__(),
    "array": lambda x: x.numpy(),
    "view of an array": lambda x: x.numpy()[2:],
    "from_dlpack": np.from_dlpack,
    "memoryview": lambda x: memoryview(x.numpy()),
    "variable": tp.Variable,
    "reshape": lambda x: tp.reshape(x, (-1,)),
    "vjp": lambda x: tp.vjp(lambda y: y * y, x)[1],
}


def test_in_place_where_nothing_else_sees_the_memory():
    x = tensor()
    x[0, 0] = 1.0
    first = address(x)
    for at in range(4):
        x[at] = x[at - 1] + 1.0
        x[:, at] += 1.0
        assert float(x[at, at]) == x.tolist()[at][at]
    assert address(x) == first


@pytest.mark.parametrize("see", WITNESSES.values(), ids=WITNESSES)
def test_a_copy_where_something_sees_the_memory(see):
    x = tensor()
    x[0, 0] = 1.0
    first = address(x)
    witness = see(x)
    x[0] = 2.0
    assert address(x) != first
    second = address(x)
    x[1] = 3.0
    assert address(x) == second  # the copy is its own
    del witness
    x[2] = 3.0
    assert address(x) == second


@pytest.mark.parametrize("see", WITNESSES.values(), ids=WITNESSES)
def test_in_place_again_once_nothing_sees_the_memory(see):
    x = tensor()
    x[0, 0] = 1.0
    first = address(x)
    witness = see(x)
    del witness
    x[0] = 2.0
    assert address(x) == first


@pytest.mark.parametrize("dtype", sorted(tp.plugin.dtypes.FIXED, key=str), ids=str)
def test_every_dtype_is_written_in_place(dtype):
    expected = np.array([[0, 1, 1], [1, 0, 1]], dtype.numpy)
    x = tp.asarray(expected)
    x[0, 1:] = 0
    first = address(x)
    x[1, 0] = 0
    expected[0, 1:] = expected[1, 0] = 0
    assert (x.dtype, address(x)) == (dtype, first)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_text():
    x = tp.asarray(["a", "b", "c"])
    part = x[1:]
    x[1] = "z"
    x[0] = "y"
    assert (x.tolist(), part.tolist()) == (["y", "z", "c"], ["b", "c"])
