from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.backend import Backend
from tensorplug.contract.spec import TensorType
from tensorplug_opencl.memory.buffers import DeviceBuffer

DTYPES = sorted((dtype for dtype in dt.FIXED - {dt.float16}), key=lambda dtype: dtype.name)
SHAPES = [(), (1,), (5,), (2, 3), (0,), (3, 0, 2), (1, 2, 1, 2, 1, 2, 1, 2)]


def test_it_is_a_backend(backend):
    assert isinstance(backend, Backend)
    assert backend.name == "opencl"
    assert backend.runtime.device.platform.name.strip() in backend.device


@pytest.mark.parametrize(
    "shape", [(), (1,), (5,), (2, 3), (0,), (3, 0, 2), (1, 2, 1, 2, 1, 2, 1, 2)]
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(backend, dtype, shape):
    if dtype not in backend.dtypes:
        pytest.skip(f"the device has no {dtype}")
    host = np.random.default_rng(0).integers(0, 2**16, shape).astype(dtype.numpy)
    buffer = backend.from_host(host)
    assert backend.describe(buffer) == TensorType(dtype, shape)
    back = backend.to_host(buffer)
    assert (back.dtype, back.shape) == (host.dtype, host.shape)
    np.testing.assert_array_equal(back, host)


@pytest.mark.parametrize(
    "host",
    [
        np.arange(12).reshape(3, 4).T,
        np.arange(12)[::-2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.broadcast_to(np.float32(3), (2, 2)),
    ],
    ids=["transposed", "reversed", "fortran", "broadcast"],
)
def test_any_layout_on_the_host(backend, host):
    np.testing.assert_array_equal(backend.to_host(backend.from_host(host)), host)


def test_later_writes_on_the_host_are_not_seen(backend):
    host = np.zeros(1000, np.float32)
    buffer = backend.from_host(host)
    host[:] = 1
    assert not backend.to_host(buffer).any()


def test_views_share_memory(backend):
    buffer = backend.from_host(np.arange(12, dtype=np.int32))
    view = buffer.view((2, 3), 4)
    assert backend.describe(view) == TensorType(dt.int32, (2, 3))
    np.testing.assert_array_equal(backend.to_host(view), [[4, 5, 6], [7, 8, 9]])
    np.testing.assert_array_equal(backend.to_host(view.view((2,), 3)), [7, 8])
    assert backend.allocation(view) == backend.allocation(buffer)
    assert backend.allocation(buffer)[1] == 48


@pytest.mark.parametrize("length", [1, 3, 4, 5, 7, 33, 1001])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bytes_are_those_of_the_elements(backend, dtype, length):
    """The pool gives more: it knows a few sizes only."""
    if dtype not in backend.dtypes:
        pytest.skip(f"the device has no {dtype}")
    host = np.ones(length, dtype.numpy)
    buffer = backend.from_host(host)
    words = buffer.reinterpret(dt.uint8, (host.nbytes,))
    for view in (buffer, buffer.view((1,), length - 1), words, words.view((1,), 0)):
        assert backend.allocation(view) == (backend.allocation(buffer)[0], host.nbytes)
    assert backend.memory()["active_bytes"] == host.nbytes
    assert backend.to_host(words).tobytes() == host.tobytes()
    assert backend.describe(words.view((1,), host.nbytes - 1)) == TensorType(dt.uint8, (1,))
    with pytest.raises(TypeError, match=f"needs {host.nbytes + 1} bytes, but its memory has "):
        backend.describe(words.view((1,), host.nbytes))


def test_distinct_buffers_have_distinct_memory(backend):
    buffers = [backend.from_host(np.zeros(n)) for n in (0, 0, 3, 3)]
    assert len({backend.allocation(buffer)[0] for buffer in buffers}) == 4
    assert [backend.allocation(buffer)[1] > 0 for buffer in buffers] == [False, False, True, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(3), "ndarray is not a DeviceBuffer"),
        (None, "NoneType is not a DeviceBuffer"),
        (DeviceBuffer(None, dt.int32, (2,)), "needs 8 bytes, but its memory has 0"),
    ],
    ids=["array", "none", "no memory"],
)
def test_describe_refuses(backend, wrong, message):
    with pytest.raises(TypeError, match=message):
        backend.describe(wrong)


def test_describe_refuses_a_view_past_the_end(backend):
    buffer = backend.from_host(np.zeros(4, np.int32))
    end = backend.allocation(buffer)[1] // 4
    assert backend.describe(buffer.view((1,), end - 1)).shape == (1,)
    with pytest.raises(TypeError, match="but its memory has"):
        backend.describe(buffer.view((1,), end))


def test_memory_is_reused_and_counted(backend):
    start = backend.memory()
    assert start["active_bytes"] == start["active_blocks"] == 0
    buffer = backend.from_host(np.zeros(1000, np.float32))
    held = backend.memory()
    assert held["active_bytes"] >= 4000
    assert held["active_blocks"] == 1
    del buffer
    freed = backend.memory()
    assert freed["active_bytes"] == 0
    assert freed["held_blocks"] == 1
    again = backend.from_host(np.ones(1000, np.float32))
    assert backend.memory()["held_blocks"] == 0
    assert backend.to_host(again).all()
