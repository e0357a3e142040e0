"""NumPy's own protocol: ``numpy.asarray(tensor)``, ``numpy.array(tensor, dtype=, copy=)``."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import CopyNeededError, DisposedError

pytestmark = pytest.mark.usefixtures("sharing_engine")

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("device", ["sharing", "memory"])
@pytest.mark.parametrize("dtype", [None, "float32", "float64", "int8", "complex64", "U3"])
@pytest.mark.parametrize("copy", [None, True])
def test_elements_and_dtype(device, dtype, copy):
    with tp.use_backend(device):
        x = tp.asarray(A)
    taken = np.array(x, dtype=dtype, copy=copy)
    wanted = A if dtype is None else A.astype(dtype)
    assert (taken.dtype, taken.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(taken, wanted)
    assert type(taken) is np.ndarray
    assert taken.flags.writeable
    assert not np.shares_memory(taken, x._buffer)  # both backends of this test hold arrays
    taken[:] = wanted[::-1]
    np.testing.assert_array_equal(x.numpy(), A)


def test_never_copied():
    x = tp.asarray(A)
    taken = np.asarray(x, copy=False)
    assert np.shares_memory(taken, x._buffer)
    assert not taken.flags.writeable
    assert np.shares_memory(np.asarray(x, dtype="f4", copy=False), x._buffer)


@pytest.mark.parametrize(
    ("device", "dtype", "message"),
    [
        ("sharing", "float64", r"float32\[2,3\] cannot become float64 without a copy"),
        ("memory", "float64", r"float32\[2,3\] cannot become float64 without a copy"),
        ("memory", None, r"float32\[2,3\] cannot become an array, from backend 'memory', without"),
    ],
)
def test_never_copied_where_that_is_impossible(device, dtype, message):
    x = tp.asarray(A).to(device)
    with pytest.raises(CopyNeededError, match=message) as got:
        np.asarray(x, dtype=dtype, copy=False)
    assert isinstance(got.value, ValueError)


@pytest.mark.parametrize("dtype", [None, "float64"])
@pytest.mark.parametrize("copy", [None, True, False])
def test_a_disposed_tensor(dtype, copy):
    x = tp.asarray(A)
    x.dispose()
    with pytest.raises(DisposedError):
        np.asarray(x, dtype=dtype, copy=copy)


def test_rank_0_and_nothing():
    assert np.asarray(tp.asarray(2.5)).shape == ()
    assert np.asarray(tp.zeros((0, 3))).shape == (0, 3)
