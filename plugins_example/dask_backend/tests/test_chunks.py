"""How data is cut, and how it comes from and goes to Dask."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

import tensorplug as tp
import tensorplug_dask
from tensorplug_dask import from_dask, to_dask

SMALL_CHUNKS = pytest.mark.parametrize("chunk_bytes", ["4KiB"], indirect=True)


def largest(tensor):
    """Return the bytes of a tensor's largest block."""
    array = to_dask(tensor)
    return np.prod([max(chunk) for chunk in array.chunks]) * array.dtype.itemsize


@SMALL_CHUNKS
@pytest.mark.parametrize(("size", "blocks"), [(1024, 1), (1025, 2), (10_000, 10)])
def test_host_data_up_to_the_chunk_size_is_one_block(size, blocks):
    x = tp.asarray(np.arange(size, dtype=np.float32))
    assert to_dask(x).npartitions == blocks
    np.testing.assert_array_equal(x.numpy(), np.arange(size))


@SMALL_CHUNKS
@pytest.mark.parametrize(
    "make",
    [
        lambda: tp.ones((200, 200)),
        lambda: tp.arange(5000),
        lambda: tp.ones((1000, 1)) + tp.ones((1, 1000)),
        lambda: tp.ones((1000, 1)) @ tp.ones((1, 1000)),
        lambda: tp.broadcast_to(tp.ones((1000, 1)), (1000, 500)),
        lambda: tp.pad(tp.ones((10, 10)), ((100, 100), (100, 100))),
        lambda: tp.gather(tp.ones((4, 500)), tp.zeros(1000, dtype="int32")),
        lambda: tp.scatter_nd(tp.zeros((3, 1), dtype="int32"), tp.ones((3, 100)), (500, 100)),
    ],
    ids=["fill", "range", "sum", "product", "broadcast", "pad", "gather", "scatter"],
)
def test_no_kernel_makes_a_block_much_larger_than_a_chunk(make):
    made = make()
    assert largest(made) <= 2 * 4096
    assert made.numpy().shape == made.shape


def test_slice_does_not_keep_its_array_alive():
    x = tp.asarray(np.zeros((1000, 10), np.float32))
    part = x[:, 0]
    values = part.numpy()
    assert (values if values.base is None else values.base).nbytes == part.nbytes


def test_there_and_back():
    array = da.from_array(np.arange(12, dtype=np.int16).reshape(3, 4), chunks=(2, 3))
    tensor = from_dask(array)
    assert (tensor.device, tensor.dtype, tensor.shape) == ("dask", tp.int16, (3, 4))
    assert to_dask(tensor) is array
    assert (tensor * 2).tolist() == [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22]]
    moved = tensor.to("cpu")
    assert to_dask(moved).compute().tolist() == moved.tolist()


def test_from_dask_leaves_the_active_backend():
    with tp.use_backend("cpu"):
        tensor = from_dask(da.ones(3))
        assert (tensor.device, tp.get_backend()) == ("dask", "cpu")


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.ones(3), tp.errors.ArgumentError, "takes a dask.array"),
        (da.ones(4)[da.ones(4) > 0], tp.errors.ArgumentError, "compute_chunk_sizes"),
        (da.ones(3).astype("M8[s]"), tp.errors.DTypeError, "unknown dtype"),
        (da.ma.masked_equal(da.ones(3), 1), tp.errors.ArgumentError, "takes a dask.array"),
    ],
    ids=["numpy", "unknown", "dates", "masked"],
)
def test_leaves_that_are_not_tensors_are_refused(array, error, message):
    with pytest.raises(error, match=message):
        from_dask(array)


def test_disposed_tensor_cannot_be_exported():
    x = tp.ones(3)
    tp.dispose(x)
    for function in (to_dask, tensorplug_dask.persist):
        with pytest.raises(tp.errors.DisposedError):
            function(x)
