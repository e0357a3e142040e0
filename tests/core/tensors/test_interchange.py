"""DLPack in both directions, on backends that share the host's memory and others that do not."""

from __future__ import annotations

import enum
import gc
import pickle
import weakref

import numpy as np
import pytest
from tests.core.support import engines, sharing

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.contract.backend import Backend, SharesHostMemory
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    CopyNeededError,
    DisposedError,
    GradientError,
    InterchangeError,
)

pytestmark = pytest.mark.usefixtures("sharing_engine")

VERSIONS = [None, (0, 8), (1, 0), (1, 1), (2, 0)]
LEGACY = [None, (0, 8)]
FIXED = sorted(dtype.name for dtype in dt.FIXED - dt.WIDENED)  # NumPy's own


def arrays():
    """Yield arrays of every dtype in every layout."""
    for dtype in FIXED:
        whole = np.arange(24).reshape(4, 6) % 5
        whole = (whole + 0.5j * whole).astype(dtype) if dtype[0] == "c" else whole.astype(dtype)
        for layout, array in {
            "dense": whole,
            "rank 0": whole[1:2, 1].reshape(()),
            "empty": whole[:0],
            "empty in between": whole.reshape(4, 1, 6)[:, :0],
            "transposed": whole.T,
            "every second, backwards": whole[::-1, ::2],
            "offset": whole[1:, 3:],
            "broadcast": np.broadcast_to(whole[0], (3, 6)),
            "one number": np.broadcast_to(whole[1, 1], (2, 2)),
        }.items():
            yield pytest.param(array, id=f"{dtype} {layout}")


def tensor_over(array, device="sharing"):
    context = current_context()
    copy = False if device == "sharing" else None
    return engine_of(context).convert(context, array, None, "x", device=device, copy=copy)


class Producer:
    """Exports an array, and notes what it was asked. Without ``versions`` it knows no keyword."""

    def __init__(self, array, *, versions=True, device=(1, 0)):
        self.array, self.versions, self.device, self.asked = array, versions, device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **request):
        self.asked.append(request)
        if not self.versions and request:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**request)


def same(actual, expected):
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


def test_the_capability():
    assert isinstance(sharing.SharingBackend("sharing"), Backend)
    assert isinstance(sharing.SharingBackend("sharing"), SharesHostMemory)
    assert not isinstance(engines.MemoryBackend("memory"), SharesHostMemory)


# To another library -----------------------------------------------------------------------


@pytest.mark.parametrize("device", ["sharing", "memory"])
@pytest.mark.parametrize("array", list(arrays()))
def test_there_and_back(array, device):
    x = tensor_over(array, device)
    assert (x.device, x.dtype.name, x.shape) == (device, array.dtype.name, array.shape)
    assert x.__dlpack_device__() == (1, 0)
    same(x.numpy(), array)
    same(np.from_dlpack(x), array)
    legacy = Producer(x, versions=False)
    same(tp.from_dlpack(legacy).numpy(), array)


def test_memory_is_shared_and_flagged():
    array = np.arange(6.0).reshape(2, 3)
    x = tensor_over(array)
    taken = np.from_dlpack(x)
    assert np.shares_memory(taken, array)
    assert not taken.flags.writeable
    array[0, 0] = 7
    assert (x.numpy()[0, 0], taken[0, 0]) == (7, 7)
    mine = np.from_dlpack(x, copy=True)
    assert not np.shares_memory(mine, array)
    same(mine, array)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_asked_for(version):
    name = '"dltensor"' if version in LEGACY else '"dltensor_versioned"'
    for device in ("sharing", "memory"):
        for copy in (None, True):
            x = tensor_over(np.ones(3), device)
            assert name in repr(x.__dlpack__(max_version=version, copy=copy))


@pytest.mark.parametrize("copy", [None, False])
@pytest.mark.parametrize("version", VERSIONS)
def test_writable_memory_is_shared_with_every_version(version, copy):
    array = np.ones(3)
    x = tensor_over(array)
    taken = np.from_dlpack(Handed(x.__dlpack__(max_version=version, copy=copy)))
    array[0] = 5
    assert taken.tolist() == [5, 1, 1]


class Handed:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return self.capsule


@pytest.mark.parametrize("version", LEGACY)
def test_read_only_memory_is_copied_for_consumers_that_could_write(version):
    array = np.ones(3)
    frozen = array.view()
    frozen.flags.writeable = False
    x = tensor_over(frozen)
    taken = np.from_dlpack(Handed(x.__dlpack__(max_version=version)))
    array[0] = 5
    assert (taken.tolist(), x.tolist()) == ([1, 1, 1], [5, 1, 1])
    with pytest.raises(CopyNeededError, match=r"float64\[3\] .* read-only, for which DLPack has"):
        x.__dlpack__(max_version=version, copy=False)
    assert np.from_dlpack(Handed(x.__dlpack__(max_version=(1, 0), copy=False)))[0] == 5


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backend_that_cannot_share_exports_a_copy(version, sharing_engine):
    x = tensor_over(np.ones(3), "memory")
    taken = np.from_dlpack(Handed(x.__dlpack__(max_version=version)))
    assert not np.shares_memory(taken, x._buffer)
    same(taken, np.ones(3))
    uploads = sharing_engine.devices.source.backends["memory"]
    uploads.lost = True  # nothing is read back when the answer is clear
    with pytest.raises(CopyNeededError, match="'memory' does not use host memory") as got:
        x.__dlpack__(max_version=version, copy=False)
    assert isinstance(got.value, BufferError)
    assert isinstance(got.value, ValueError)


class Kind(enum.Enum):
    CPU = 1
    CUDA = 2


@pytest.mark.parametrize("device", [None, (1, 0), (Kind.CPU, 0)])
def test_the_host_may_be_asked_for(device):
    x = tp.ones((2,))
    same(np.from_dlpack(Handed(x.__dlpack__(dl_device=device))), np.ones(2, np.float32))


@pytest.mark.parametrize("device", [(2, 0), (Kind.CUDA, 1), (1, 1), (4, 0)])
def test_other_devices_may_not(device):
    with pytest.raises(
        InterchangeError, match=r"float32\[2\] can only be exported to host memory"
    ):
        tp.ones((2,)).__dlpack__(dl_device=device)


@pytest.mark.parametrize("stream", [0, 1, -1, "s"])
def test_the_host_has_no_streams(stream):
    with pytest.raises(ArgumentError, match=f"stream must be None, got {stream!r}"):
        tp.ones((2,)).__dlpack__(stream=stream)


def test_text_has_no_dlpack(sharing_engine):
    sharing_engine.devices.source.dtypes["memory"] = dt.ANY
    with tp.use_backend("memory"):
        x = tp.asarray(["a", "b"])
    with pytest.raises(InterchangeError, match=r"DLPack does not support string"):
        x.__dlpack__()


def test_disposed_tensors_are_not_exported(sharing_engine):
    x, y = tp.ones((2,)), tp.ones((2,))
    x.dispose()
    sharing_engine.devices.close("sharing")
    for tensor, error in ((x, DisposedError), (y, BackendClosedError)):
        for export in (tensor.__dlpack__, tensor.__dlpack_device__):
            with pytest.raises(error):
                export()


IMPLICIT = {
    "asarray": np.asarray,
    "asarray, never copied": lambda x: np.asarray(x, copy=False),
    "a function of NumPy": lambda x: np.concatenate([x, x]),
    "from_dlpack of NumPy": np.from_dlpack,
    "from_dlpack": tp.from_dlpack,
}


@pytest.mark.parametrize("outer", [lambda f: f, tp.grad], ids=["once", "twice"])
@pytest.mark.parametrize("name", IMPLICIT)
def test_on_the_tape_an_implicit_export_is_refused(name, outer):
    def through(p):
        return tp.sum(tp.asarray(IMPLICIT[name](p * 2)) * p)

    with pytest.raises(GradientError, match=r"recorded for float32\[2\].*would be lost.*pass "):
        outer(lambda p: tp.sum(tp.grad(through)(p)))(tp.asarray([2.0, 3.0]))


def test_a_watched_variable_is_not_exported_implicitly():
    v = tp.Variable([2.0, 3.0])
    with pytest.raises(GradientError, match="would be lost"):
        tp.variable_grads(lambda: tp.sum(tp.asarray(np.asarray(v)) * v))
    other = tp.Variable([2.0, 3.0], trainable=False)
    _, found = tp.variable_grads(lambda: tp.sum(tp.asarray(np.asarray(other)) * v))
    engines.expect(found[v.name], "float32", (2,), [2, 3])


EXPLICIT = {
    "numpy": lambda p: p.numpy(),
    "tolist": lambda p: p.tolist(),
    "stop_gradient": lambda p: np.asarray(tp.stop_gradient(p)),
    "integers": lambda p: np.asarray(tp.astype(p, "int32")),
    "pickle": lambda p: pickle.loads(pickle.dumps(p)),
}


@pytest.mark.parametrize("name", EXPLICIT)
def test_on_the_tape_an_explicit_export_is_a_constant(name):
    x = tp.asarray([2.0, 3.0])
    gradient = tp.grad(lambda p: tp.sum(tp.asarray(EXPLICIT[name](p), dtype="float32") * p))(x)
    engines.expect(gradient, "float32", (2,), [2, 3])


def test_after_the_recording_a_tensor_of_the_tape_is_exported():
    kept = []
    tp.grad(lambda p: kept.append(p * 2) or tp.sum(p))(tp.asarray([2.0, 3.0]))
    assert np.asarray(kept[0]).tolist() == np.from_dlpack(kept[0]).tolist() == [4, 6]


def test_an_export_outlives_its_tensor():
    array = np.arange(3.0)
    gone = weakref.ref(array)
    taken = np.from_dlpack(tensor_over(array))
    del array
    gc.collect()
    assert taken.tolist() == [0, 1, 2]
    assert gone() is not None
    del taken
    assert gone() is None


# From another library ---------------------------------------------------------------------
