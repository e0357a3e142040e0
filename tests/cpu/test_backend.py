"""The backend object and its hooks."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.dispatch.calls import dispatch
from tensorplug.dispatch.context import use_context
from tensorplug.errors import BackendMemoryError, BackendUnavailableError
from tensorplug.ops import creation, movement, ranges
from tensorplug.plugin import Backend, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import plugin
from tensorplug_cpu.backend import CpuBackend


def named(parameter):
    return getattr(parameter, "name", "")


@pytest.fixture
def backend():
    return CpuBackend()


def test_follows_the_protocol(backend):
    assert isinstance(backend, Backend)
    assert backend.name == "cpu"
    assert np.__version__ in backend.device
    assert backend.dtypes == dt.STORED


@pytest.mark.parametrize("dtype", sorted(dtype.name for dtype in dt.ANY))
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_round_trip_copies(backend, dtype, shape):
    kind = dt.of(dtype)
    source = np.full(shape, "1" if dtype == "string" else 1, kind.numpy)
    kept = source.copy()
    buffer = backend.from_host(source)
    assert backend.describe(buffer) == TensorType(kind, shape)
    source[...] = "0" if dtype == "string" else 0
    np.testing.assert_array_equal(backend.to_host(buffer), kept)


@pytest.mark.parametrize(
    "source", [np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::-2], np.arange(3, dtype=">i4")]
)
def test_any_strides_and_byte_order_come_in(backend, source):
    buffer = backend.from_host(source)
    assert buffer.flags.c_contiguous
    assert buffer.dtype.isnative
    np.testing.assert_array_equal(buffer, source)


@pytest.mark.parametrize("thing", [1.0, [1.0], np.float32(1), None, np.bool_(1)])
def test_only_arrays_are_buffers(backend, thing):
    with pytest.raises(TypeError, match=r"numpy\.ndarray"):
        backend.describe(thing)


def test_allocation_names_the_owner(backend):
    whole = backend.from_host(np.zeros((4, 3), "float32"))
    views = [
        whole,
        whole[1:],
        whole.T,
        whole[::2].reshape(-1)[:0],
        np.broadcast_to(whole, (2, 4, 3)),
    ]
    owned = [backend.allocation(view) for view in views]
    assert owned[:3] + owned[4:] == [(id(whole), 48)] * 4
    assert backend.allocation(whole.copy()) != owned[0]


def test_no_room_is_our_error(backend):
    huge = np.broadcast_to(np.zeros((), "float64"), (2**24, 2**24))
    with pytest.raises(BackendMemoryError, match=r"float64\[16777216,16777216\]"):
        backend.from_host(huge)


@pytest.mark.parametrize(
    ("spec", "attributes"),
    [
        (creation.FILL, {"shape": (2**24, 2**24), "value": 1.0}),
        (ranges.RANGE, {"start": 0, "stop": 2**48, "dtype": "float64"}),
    ],
    ids=named,
)
def test_kernels_without_room(context, spec, attributes):
    with use_context(context), pytest.raises(BackendMemoryError, match="allocate"):
        dispatch(spec, **attributes)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_ufuncs_without_room(context, dtype):
    from tensorplug.ops.elementwise.arithmetic import add

    with use_context(context):
        x = movement.broadcast_to(creation.ones((), dtype=dtype), (2**24, 2**24))
        with pytest.raises(BackendMemoryError, match="allocate"):
            add(x, x)


@pytest.mark.parametrize("device", [None, "0"])
def test_the_one_device(device):
    assert isinstance(plugin.tensorplug_create_backend(device), CpuBackend)


@pytest.mark.parametrize("device", ["1", "", "gpu"])
def test_no_other_device(device):
    with pytest.raises(BackendUnavailableError, match=f"no device {device!r}"):
        plugin.tensorplug_create_backend(device)


class Other(CpuBackend):
    name = "acme"


def test_kernels_are_for_this_backend_only(backend):
    assert list(plugin.tensorplug_kernels(Other())) == []
    names = [entry.spec.name for table in plugin.tensorplug_kernels(backend) for entry in table]
    assert len(names) == len(set(names)) >= 66


def test_diagnostics_name_the_versions():
    found = plugin.tensorplug_diagnostics()
    assert found["numpy"] == np.__version__
    assert found.keys() == {"numpy", "blas", "machine"}
    assert all(isinstance(value, str) and value for value in found.values())
