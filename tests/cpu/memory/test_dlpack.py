"""NumPy's, PyTorch's and JAX's arrays, and tensors on the CPU: who shares memory with whom."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.context import use_context
from tensorplug.errors import DTypeError, InterchangeError
from tensorplug.ops import creation, movement
from tensorplug.ops.indexing import getting
from tensorplug.plugin import SharesHostMemory
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.backend import CpuBackend

FIXED = sorted(dtype.name for dtype in dt.FIXED - dt.WIDENED)  # NumPy's own
# Without its x64 mode JAX narrows the rest.
JAX = [name for name in FIXED if name == "complex64" or name[-2:] not in ("64", "28")]


@pytest.fixture(autouse=True)
def entered(context):
    with use_context(context):
        yield


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def jax():
    return pytest.importorskip("jax", reason="JAX is not installed")


def address(x):
    return x._buffer.ctypes.data


def layouts(dtype):
    """Return tensors of one dtype in several layouts, each over memory of its own."""
    whole = creation.asarray(np.arange(24).reshape(4, 6) % 5, dtype=dtype)
    return {
        "dense": whole,
        "rank 0": movement.reshape(whole[1:2, 1], ()),
        "empty": whole[:0],
        "transposed": whole.T,
        "rows 1 to 3": whole[1:3],
        "every second column": getting.getitem(whole, (slice(None), slice(None, None, 2))),
        "broadcast": movement.broadcast_to(whole[0], (3, 6)),
    }


def same(actual, expected, dtype):
    assert (actual.dtype.name, actual.shape) == (dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


# The backend ------------------------------------------------------------------------------


def test_the_capability():
    backend = CpuBackend()
    assert isinstance(backend, SharesHostMemory)
    array = np.arange(6.0).reshape(2, 3)
    buffer = backend.share_from_host(array.T)
    assert np.shares_memory(buffer, array)
    assert buffer.strides == array.T.strides
    assert backend.share_to_host(buffer) is buffer


def test_allocations_of_memory_that_others_own():
    backend = CpuBackend()
    lent = np.from_dlpack(np.arange(12.0).reshape(4, 3))
    buffer = backend.share_from_host(lent)
    views = [buffer, buffer[1:], buffer.T, buffer.reshape(12)[:2]]
    assert {backend.allocation(view)[1] for view in views} == {96}
    assert len({backend.allocation(view)[0] for view in views}) == 1


def test_shared_memory_counts_once():
    gc.collect()
    before = tp.memory()["cpu"]
    lent = [tp.from_dlpack(np.zeros((4, 3)))]
    lent += [lent[0][1:2], lent[0].T]
    held = tp.memory()["cpu"]
    assert held.tensors - before.tensors == 3
    assert held.buffers - before.buffers == 1
    assert held.bytes - before.bytes == 96


# NumPy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FIXED)
def test_numpy_both_ways(dtype):
    for layout, x in layouts(dtype).items():
        taken = np.from_dlpack(x, device="cpu", copy=False)
        same(taken, x.numpy(), dtype)
        assert (taken.ctypes.data == address(x)) or layout == "empty"
        assert not taken.flags.writeable
        back = tp.from_dlpack(taken)
        same(back.numpy(), x.numpy(), dtype)
        assert address(back) == address(x) or layout == "empty"


def test_kernels_run_on_lent_memory():
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)[:, ::-1]
    array.flags.writeable = False
    x = tp.from_dlpack(array)
    same((x + x).numpy(), 2 * array, "float32")
    same((x @ x.T).numpy(), array @ array.T, "float32")


# PyTorch ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FIXED)
def test_to_torch(torch, dtype):
    for layout, x in layouts(dtype).items():
        taken = torch.from_dlpack(x)
        assert (str(taken.dtype), tuple(taken.shape)) == (f"torch.{dtype}", x.shape)
        assert taken.tolist() == x.tolist()
        assert taken.data_ptr() == address(x) or layout == "empty"


def test_writes_of_torch_are_visible(torch):
    x = creation.zeros((3,))
    taken = torch.from_dlpack(x, device="cpu")
    apart = torch.from_dlpack(x, copy=True)
    taken[0], apart[1] = 7, 8
    assert x.tolist() == [7, 0, 0]


@pytest.mark.parametrize("convert", ["as_tensor", "tensor", "asarray"])
def test_torch_imports_a_tensor(torch, convert):
    for x in (creation.asarray([[1.0, 2.0], [3.0, 4.0]]), creation.asarray(5)):
        taken = getattr(torch, convert)(x)
        assert (str(taken.dtype), taken.tolist()) == (f"torch.{x.dtype}", x.tolist())


@pytest.mark.parametrize("dtype", FIXED)
def test_from_torch(torch, dtype):
    whole = (torch.arange(24).reshape(4, 6) % 5).to(getattr(torch, dtype))
    for exported in (
        whole,
        whole.T,
        whole[1:, ::2],
        whole[0, 0],
        whole[:0],
        whole[0].expand(3, 6),
    ):
        for x in (tp.from_dlpack(exported, copy=False), creation.asarray(exported)):
            same(x.numpy(), exported.numpy(), dtype)
        shared = tp.from_dlpack(exported)
        assert address(shared) == exported.data_ptr() or not shared.size
        assert (
            address(tp.from_dlpack(exported, copy=True)) != exported.data_ptr() or not shared.size
        )


def test_torch_memory_is_released_with_the_tensor(torch):
    released = []
    array = np.arange(4.0)
    weakref.finalize(array, released.append, True)
    x = tp.from_dlpack(torch.from_numpy(array))
    del array
    gc.collect()
    assert (x.tolist(), released) == ([0, 1, 2, 3], [])
    del x
    gc.collect()
    assert released == [True]


def test_tensor_outlives_its_torch_view(torch):
    x = creation.asarray([1.0, 2.0])
    taken = torch.from_dlpack(x)
    x.dispose()
    gc.collect()
    assert taken.tolist() == [1, 2]


def test_unsupported_torch_tensors(torch):
    leaf = torch.ones(2, requires_grad=True)
    refused = [
        (leaf, BufferError, r"use tensor\.detach"),
        (torch.ones(2).to_sparse(), BufferError, "layout"),
        (torch.ones(2, dtype=torch.complex64).conj(), BufferError, "conjugate"),
        (torch.ones(2, device="meta"), ValueError, "meta"),
    ]
    for exported, error, message in refused:
        with pytest.raises(error, match=message) as got:
            tp.from_dlpack(exported)
        assert got.value.__notes__ == ["while from_dlpack exported torch.Tensor"]
    assert tp.from_dlpack(leaf.detach()).tolist() == [1, 1]


def test_too_many_dimensions(torch):
    with pytest.raises(InterchangeError, match=r"torch\.Tensor of float32 cannot be read: .*dim"):
        tp.from_dlpack(torch.zeros((1,) * 65))


# JAX --------------------------------------------------------------------------------------


def aligned(array):
    """Return a copy that begins where JAX takes memory as it is: at a multiple of 64 bytes."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("dtype", JAX)
def test_to_jax(jax, dtype):
    for x in layouts(dtype).values():
        for convert in (jax.numpy.from_dlpack, jax.numpy.asarray):
            taken = convert(x)
            same(np.asarray(taken), x.numpy(), dtype)


def test_jax_shares_aligned_memory(jax):
    array = aligned(np.arange(6, dtype=np.float32))
    x = tp.from_dlpack(array)
    assert jax.numpy.from_dlpack(x).unsafe_buffer_pointer() == array.ctypes.data


@pytest.mark.parametrize("dtype", JAX)
def test_from_jax(jax, dtype):
    for exported in (
        jax.numpy.arange(6).reshape(2, 3).astype(dtype),
        jax.numpy.ones((), dtype),
        jax.numpy.ones((0, 3), dtype),
    ):
        for x in (tp.from_dlpack(exported, copy=False), creation.asarray(exported)):
            same(x.numpy(), np.asarray(exported), dtype)
        x = tp.from_dlpack(exported)
        assert address(x) == exported.unsafe_buffer_pointer() or not x.size
        back = jax.numpy.from_dlpack(x)  # a copy: JAX's memory is read-only
        same(np.asarray(back), np.asarray(exported), dtype)


def test_dtypes_of_jax_that_tensors_do_not_have(jax):
    exported = jax.numpy.ones(2, "float8_e5m2")
    with pytest.raises(DTypeError, match=r"jaxlib\.ArrayImpl of float8_e5m2 cannot be read"):
        tp.from_dlpack(exported)
