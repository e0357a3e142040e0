"""Memory that the host shares: reads are views, writes are single copies, and neither waits."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from tests.opencl.memory.test_asynchrony import TURNS, busy, running, spun, tried  # noqa: F401  # busy is a fixture

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import BackendMemoryError
from tensorplug_opencl.backend import OpenCLBackend
from tensorplug_opencl.machine.limits import Limits
from tensorplug_opencl.memory import shared_memory
from tensorplug_opencl.memory.shared_memory import LEAST

SIZES = (0, 1, LEAST - 1, LEAST, 3 * LEAST)


def words(count):
    """Return arrays of so many bytes with different elements, in several layouts."""
    plain = (np.arange(count) % 251).astype(np.uint8)
    return {
        "rows": plain,
        "reversed": plain[::-1],
        "strided": np.repeat(plain, 2)[::2],
        "read-only": frozen(plain),
    }


def frozen(array):
    actual = array.copy()
    actual.flags.writeable = False
    return actual


@pytest.fixture
def sharing(backend):
    if not backend.runtime.shares_memory:
        pytest.skip("the device shares no memory with the host")
    return backend


@pytest.fixture(params=[True, False], ids=["shared", "copied"])
def either(target, request):
    """Return a backend that shares memory if it can, then one that does not."""
    opened = OpenCLBackend(target, Limits(shared_memory=request.param))
    yield opened
    opened.close()


@pytest.mark.parametrize("count", SIZES)
def test_there_and_back(either, count):
    for name, host in words(count).items():
        expected = host.copy()
        buffer = either.from_host(host)
        if host.flags.writeable:
            host[...] = 0  # it was copied
        actual = either.to_host(buffer)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(actual, expected, err_msg=name)


def test_reads_of_shared_memory_are_views(sharing):
    buffer = sharing.from_host(np.arange(LEAST, dtype=np.float32).reshape(2, -1))
    first, second = sharing.to_host(buffer), sharing.to_host(buffer.view((5,), 7))
    assert np.shares_memory(first, second)
    assert second.tolist() == [7, 8, 9, 10, 11]
    assert not first.flags.writeable
    assert not np.shares_memory(*(sharing.to_host(sharing.from_host(first)) for _ in range(2)))


def test_small_and_copied_reads_are_not(sharing, target):
    small = sharing.from_host(np.zeros(LEAST - 1, np.uint8))
    assert not small.is_shared
    assert not np.shares_memory(sharing.to_host(small), sharing.to_host(small))
    other = OpenCLBackend(target, Limits(shared_memory=False))
    large = other.from_host(np.zeros(LEAST, np.uint8))
    assert not np.shares_memory(other.to_host(large), other.to_host(large))
    other.close()


def test_a_view_outlives_its_buffer_and_the_device(sharing):
    expected = np.arange(LEAST)
    buffer = sharing.from_host(expected)
    view = sharing.to_host(buffer)
    del buffer
    gc.collect()
    assert sharing.live_buffers() == 1
    for _ in range(4):  # they would use its memory, were it free
        other = sharing.from_host(np.zeros_like(expected))
        del other
    sharing.trim()
    np.testing.assert_array_equal(view, expected)
    sharing.close()
    np.testing.assert_array_equal(view, expected)
    del view
    gc.collect()
    assert sharing.live_buffers() == 0


def test_what_the_host_reads_is_not_overwritten(sharing):
    buffer = sharing.from_host(np.zeros(LEAST, np.uint8))
    assert sharing.owns_memory(buffer)
    part = sharing.to_host(buffer)[5:9].reshape(2, 2)
    assert not sharing.owns_memory(buffer)
    del part
    assert sharing.owns_memory(buffer)


def test_an_idle_device_gets_no_command(monkeypatch, sharing):
    def refuse(*_arguments, **_options):
        pytest.fail("the host needs no command to use its own memory")

    for name in ("enqueue_copy", "enqueue_map_buffer"):
        monkeypatch.setattr(cl, name, refuse)
    buffer = sharing.from_host(np.arange(2 * LEAST)[::2])
    np.testing.assert_array_equal(sharing.to_host(buffer), np.arange(0, 2 * LEAST, 2))


@tried(4)
def test_a_busy_device_is_not_waited_for(backend, busy):  # noqa: F811
    """A recycled piece of memory may still be in use, so that the write joins the queue."""
    event, y = busy()
    expected = np.arange(2 * LEAST)[::2]
    buffers = [backend.from_host(expected) for _ in range(3)]
    assert running(event)
    for buffer in buffers:
        np.testing.assert_array_equal(backend.to_host(buffer), expected)
    assert not running(event)
    assert (backend.to_host(y) == spun(TURNS)).all()


@pytest.mark.parametrize("dtype", [dt.uint8, dt.int16, dt.float32, dt.int64, dt.complex64])
def test_filling_ends_where_the_buffer_ends(either, dtype):
    count = LEAST // dtype.itemsize
    whole = either.from_host(np.ones(2 * count, dtype.numpy))
    either.runtime.fill(whole.view((count,)), np.array(7, dtype.numpy))
    actual = either.to_host(whole)
    assert (actual[:count] == 7).all()
    assert (actual[count:] == 1).all()


def device(kind, capabilities, *, unified=True):
    def refuse(_self):
        raise cl.LogicError(cl._cl._ErrorRecord("clGetDeviceInfo", -30, ""))

    actual = property(refuse if capabilities is None else lambda _self: capabilities)
    made = type("Device", (SimpleNamespace,), {"svm_capabilities": actual})
    return made(type=kind, host_unified_memory=unified)


FINE = cl.device_svm_capabilities.FINE_GRAIN_BUFFER
COARSE = cl.device_svm_capabilities.COARSE_GRAIN_BUFFER
CPU, GPU = cl.device_type.CPU, cl.device_type.GPU


@pytest.mark.parametrize(
    ("found", "offered"),
    [
        (device(CPU, COARSE | FINE), True),
        (device(CPU, COARSE), False),
        (device(CPU, 0), False),
        (device(CPU, None), False),  # OpenCL 1.2
        (device(CPU, FINE, unified=False), False),
        (device(GPU, FINE), False),  # a command must move its memory, or at least its caches
    ],
)
def test_who_offers_it(found, offered):
    assert shared_memory.is_offered(found) is offered


def test_a_driver_without_memory_is_noticed(monkeypatch, sharing):
    """pyopencl returns a null pointer."""
    pool = sharing.runtime.memory.pool
    monkeypatch.setattr(pool, "_shared", lambda _nbytes: SimpleNamespace(svm_ptr=0))
    with pytest.raises(MemoryError, match="returned no memory"):
        pool.allocate(LEAST)
    monkeypatch.undo()
    most = sharing.runtime.device.max_mem_alloc_size
    with pytest.raises(BackendMemoryError, match=f"allows {most:,} bytes in one piece"):
        sharing.runtime.empty(TensorType(dt.uint8, (most + 1,)))


@tried(4)
def test_memory_is_freed_after_the_work_that_is_measured(monkeypatch, backend, busy):  # noqa: F811
    """Freeing is a command of the usual queue, and the work that reads it is in the other one."""
    runtime = backend.runtime
    big = TensorType(dt.uint8, (1 << 20,))
    end = backend.measure()
    event, y = busy()
    spare = runtime.empty(big)
    del spare
    assert running(event)
    monkeypatch.setattr(runtime.memory, "limit", runtime.memory.pool.managed_bytes + (1 << 18))
    runtime.empty(TensorType(dt.uint8, (3 << 18,)))  # only in place of the spare piece
    assert not running(event)
    assert end() > 0
    assert (backend.to_host(y) == spun(TURNS)).all()


def test_both_pools_are_counted(sharing):
    before = sharing.memory()
    kept = [sharing.from_host(np.zeros(count, np.uint8)) for count in (LEAST - 1, LEAST)]
    after = sharing.memory()
    assert [buffer.is_shared for buffer in kept] == [False, True]
    assert after["active_bytes"] - before["active_bytes"] == 2 * LEAST - 1
    assert after["active_blocks"] - before["active_blocks"] == 2
    del kept
    assert sharing.memory()["held_blocks"] == 2
    assert sharing.trim() >= 2 * LEAST - 1
    assert sharing.memory()["held_blocks"] == 0
