"""Removing a backend: its tensors stay readable, on the tape too."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect, using

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    BackendWarning,
    DeviceLostError,
)


@pytest.fixture
def engine():
    engine = engines.make(("memory", "other"))
    with using(engine):
        tp.set_backend("memory")
        yield engine


def test_live_tensors_are_moved_to_the_host(engine):
    x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = x + 1
    empty = tp.asarray(np.zeros((0, 3), np.int16))
    tp.remove_backend("memory")
    assert engine.devices.source.backends["memory"].closed
    assert (x.device, y.device, empty.device) == ("host", "host", "host")
    expect(x, "float32", (2, 2), [[1, 2], [3, 4]])
    expect(y, "float32", (2, 2), [[2, 3], [4, 5]])
    expect(empty, "int16", (0, 3), np.zeros((0, 3)))
    tp.set_backend("other")
    z = x * y  # copied to where it runs
    assert z.device == "other"
    expect(z, "float32", (2, 2), [[2, 6], [12, 20]])
    expect(x.to("other"), "float32", (2, 2), [[1, 2], [3, 4]])
    assert x.to("host") is x
    assert z.to("host").device == "host"


def test_tensors_that_share_a_buffer_still_do(engine):
    x = tp.asarray(np.arange(6, dtype=np.float32))
    y = tp.reshape(x, (2, 3))
    z = x.__copy__()
    tp.remove_backend("memory")
    assert z._buffer is x._buffer
    expect(y, "float32", (2, 3), [[0, 1, 2], [3, 4, 5]])
    tp.dispose(x)
    expect(z, "float32", (6,), np.arange(6))


def test_gradients_go_on(engine):
    """The forward pass ran on a backend that is gone when the backward pass begins."""
    value, vjp = tp.vjp(lambda x: tp.exp(x) * x, tp.asarray([0.0, 1.0]))
    tp.remove_backend("memory")
    tp.set_backend("other")
    (gradient,) = vjp(tp.asarray([1.0, 1.0]))
    assert gradient.device == "other"
    np.testing.assert_allclose(gradient.numpy(), [1.0, 2 * np.e], rtol=1e-6)
    np.testing.assert_allclose(value.numpy(), [0.0, np.e], rtol=1e-6)


def test_the_buffers_are_freed(engine):
    x = tp.asarray([1.0])
    buffer = weakref.ref(x._buffer)
    y = x + 1
    gc.disable()
    try:
        tp.remove_backend("memory")
        assert x._buffer.base is None
        del x, y
        assert buffer() is None
    finally:
        gc.enable()


def test_a_lost_device_is_removed_and_opened_anew(engine):
    x = tp.asarray([1.0])
    on_other = x.to("other")
    engine.devices.source.backends["memory"].lost = True
    with pytest.raises(DeviceLostError):
        x.numpy()
    with pytest.warns(BackendWarning, match="1 buffers on 'memory' are lost.*memory is gone"):
        tp.remove_backend("memory")
    with pytest.raises(BackendClosedError, match="'memory', which was removed"):
        x.numpy()
    with pytest.raises(BackendClosedError, match="was removed"):
        _ = x + 1
    expect(on_other, "float32", (1,), [1])
    tp.set_backend("memory")
    expect(tp.asarray([1.0]) + on_other, "float32", (1,), [2])


@pytest.mark.parametrize("enter", [tp.set_backend, tp.use_backend])
def test_a_device_that_is_known_to_be_lost_is_opened_anew_at_once(enter):
    engine = engines.make(("memory", "other"))
    cause: list[str] = []
    engine.devices.source.offers["memory"] = {"explain_loss": lambda: "".join(cause)}
    with using(engine):
        tp.set_backend("memory")
        x, first = tp.asarray([1.0]), engine.open("memory").backend
        tp.set_backend("memory")
        assert engine.open("memory").backend is first
        first.lost = True
        cause.append("a fuse blew")
        with (
            pytest.warns(BackendWarning, match="1 buffers on 'memory' are lost"),
            enter("memory") or nullcontext(),
        ):
            assert tp.get_backend() == "memory"
        cause.clear()
        assert first.closed
        with pytest.raises(BackendClosedError, match=r"'memory', which was lost \(a fuse"):
            x.numpy()
        expect(tp.asarray([1.0]) + 1, "float32", (1,), [2])
        assert tp.get_backend() == "memory"


def test_one_device_of_several(engine):
    x, y = tp.asarray([1.0]), tp.asarray([2.0]).to("memory:1")
    tp.remove_backend("memory:1")
    assert (x.device, y.device) == ("memory", "host")
    assert tp.get_backend() == "memory"
    expect(x + y, "float32", (1,), [3])
    with pytest.raises(ArgumentError, match="no open device is called 'memory:1'"):
        tp.remove_backend("memory:1")
    tp.remove_backend("memory:0")
    assert x.device == "host"


def test_the_active_backend_is_chosen_anew(engine):
    tp.set_backend("other")
    tp.remove_backend("other")
    assert tp.get_backend() == "memory"


def test_inside_use_backend(engine):
    with tp.use_backend("other"):
        x = tp.asarray([1.0])
        tp.remove_backend("other")
        with pytest.raises(
            BackendClosedError, match="'other' is the active one, but it was removed"
        ):
            _ = x + 1
    expect(x + 1, "float32", (1,), [2])


def test_its_kernels_go_with_it(engine):
    count = sum(owner == "memory" for _, owner in engine.registry.state.kernels)
    assert count > 10
    handle = tp.register_kernel("Sin", "memory", np_sin)
    tp.remove_backend("memory")
    # The program itself removes the kernels that it registered.
    assert [key for key in engine.registry.state.kernels if key[1] == "memory"] == [
        ("Sin", "memory")
    ]
    tp.set_backend("memory")
    expect(tp.sin(tp.asarray([0.0])), "float32", (1,), [0])
    handle.remove()
    assert sum(owner == "memory" for _, owner in engine.registry.state.kernels) == count


def np_sin(x):
    return np.sin(x)


def test_removal_takes_installed_backends_only(engine):
    with pytest.raises(BackendNotInstalledError):
        tp.remove_backend("nothing")
    with pytest.raises(ArgumentError):
        tp.remove_backend("memory:")
    tp.remove_backend("other")  # was not open


def test_a_fallback_to_a_removed_backend_is_resolved_anew():
    engine = engines.make({"bare": [], "full": [engines.basic_kernels()]}, fallback="allow")
    with using(engine):
        tp.set_backend("bare")
        x = tp.asarray([1.0])
        expect(tp.exp(x), "float32", (1,), [np.exp(np.float32(1))])
        tp.remove_backend("full")
        expect(tp.exp(x), "float32", (1,), [np.exp(np.float32(1))])
        assert engine.devices.source.opened == ["bare", "full", "full"]


def test_host_storage_is_no_backend(engine):
    with pytest.raises(ArgumentError, match="is host memory"):
        tp.set_backend("host")
