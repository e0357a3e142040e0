"""DLPack in both directions, on backends that share the host's memory and others that do not."""

from __future__ import annotations

import ctypes
import enum
import gc
import pickle
import re
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
    BackendMemoryError,
    CopyNeededError,
    DisposedError,
    DLPackNotSupportedError,
    DTypeError,
    GradientError,
    InterchangeError,
)

VERSIONS = [None, (0, 8), (1, 0), (1, 1), (2, 0)]
LEGACY = [None, (0, 8)]
FIXED = sorted(dtype.name for dtype in dt.FIXED - dt.WIDENED)  # NumPy's own


@pytest.fixture(autouse=True)
def engine():
    """Yield an engine whose active backend shares its memory; "memory" does not."""
    made = sharing.make()
    with engines.using(made):
        yield made


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
def test_a_backend_that_cannot_share_exports_a_copy(version, engine):
    x = tensor_over(np.ones(3), "memory")
    taken = np.from_dlpack(Handed(x.__dlpack__(max_version=version)))
    assert not np.shares_memory(taken, x._buffer)
    same(taken, np.ones(3))
    uploads = engine.devices.source.backends["memory"]
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


def test_text_has_no_dlpack(engine):
    engine.devices.source.dtypes["memory"] = dt.ANY
    with tp.use_backend("memory"):
        x = tp.asarray(["a", "b"])
    with pytest.raises(InterchangeError, match=r"DLPack does not support string"):
        x.__dlpack__()


def test_disposed_tensors_are_not_exported(engine):
    x, y = tp.ones((2,)), tp.ones((2,))
    x.dispose()
    engine.devices.close("sharing")
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


def test_writes_of_the_producer_are_seen_unless_copied():
    array = np.zeros(2)
    shared, copied, moved = (
        tp.from_dlpack(array),
        tp.from_dlpack(array, copy=True),
        tp.from_dlpack(array, device="memory"),
    )
    array[:] = 1
    assert [tensor.tolist() for tensor in (shared, copied, moved)] == [[1, 1], [0, 0], [0, 0]]


def test_the_producer_lives_as_long_as_the_tensor():
    array = np.arange(3.0)
    gone = weakref.ref(array)
    x = tp.from_dlpack(array)
    y = +x  # shares the buffer
    del array, x
    assert gone() is not None
    y.dispose()
    assert gone() is None


def test_devices_of_the_tensor():
    array = np.ones(2)
    assert tp.from_dlpack(array).device == "sharing"
    assert tp.from_dlpack(array, device="memory").device == "memory"
    assert tp.from_dlpack(array, device="memory:1").device == "memory:1"
    assert tp.from_dlpack(array, device="host").device == "host"
    with tp.use_backend("memory"):
        assert tp.from_dlpack(array).device == "memory"
        with pytest.raises(CopyNeededError, match="from_dlpack: x must be copied, since backend"):
            tp.from_dlpack(array, copy=False)
        assert tp.from_dlpack(tp.from_dlpack(array), device="sharing").device == "sharing"


@pytest.mark.parametrize("device", ["sharing", "memory"])
def test_a_scope_owns_what_came(device):
    with tp.tidy():
        x = tp.from_dlpack(np.ones(2), device=device)
        kept = tp.keep(tp.from_dlpack(np.ones(2), device=device))
    assert (x.is_disposed, kept.is_disposed) == (True, False)


def test_memory_counts_what_is_shared_once():
    array = np.ones((4, 4))
    shared = [tp.from_dlpack(array)]
    shared.append(tp.reshape(shared[0], (16,)))
    held = tp.memory()["sharing"]
    assert (held.tensors, held.buffers, held.bytes) == (2, 1, 128)


@pytest.mark.parametrize("copy", [None, True, False])
def test_questions_to_a_producer(copy):
    producer = Producer(np.ones(2))
    tp.from_dlpack(producer, copy=copy)
    never = {"copy": False} if copy is False else {}
    assert producer.asked == [{"max_version": (1, 0), **never}]


@pytest.mark.parametrize("copy", [None, True, False])
def test_producers_from_before_the_versions(copy):
    producer = Producer(np.ones(2), versions=False)
    same(tp.from_dlpack(producer, copy=copy).numpy(), np.ones(2))
    assert producer.asked[-1] == {}


@pytest.mark.parametrize("kind", [1, 3, 11, 13, Kind.CPU])
def test_memory_that_the_host_reads(kind):
    same(tp.from_dlpack(Producer(np.ones(2), device=(kind, 0))).numpy(), np.ones(2))


@pytest.mark.parametrize(
    ("device", "name"), [((2, 1), "kDLCUDA:1"), ((Kind.CUDA, 0), "kDLCUDA:0"), ((99, 0), "99:0")]
)
def test_memory_that_it_does_not(device, name):
    producer = Producer(np.ones(2), device=device)
    with pytest.raises(
        InterchangeError, match=rf"\.Producer is on device {name}, not in host memory"
    ):
        tp.from_dlpack(producer)
    assert producer.asked == []


@pytest.mark.parametrize("thing", [[1.0], 1.0, None, "text", object()])
def test_things_without_dlpack(thing):
    with pytest.raises(DLPackNotSupportedError, match=r"has no __dlpack__ .* try asarray") as got:
        tp.from_dlpack(thing)
    assert isinstance(got.value, AttributeError)


@pytest.mark.parametrize(
    "array", [np.array(["a"]), np.ones(2, ">f4"), np.array([None]), np.array(0, "M8[s]")]
)
def test_a_producer_that_refuses(array):
    with pytest.raises(BufferError) as got:
        tp.from_dlpack(array)
    assert got.value.__notes__ == ["while from_dlpack exported numpy.ndarray"]


class Typed(Handed):
    def __init__(self, capsule, dtype):
        super().__init__(capsule)
        if dtype is not None:
            self.dtype = dtype


def foreign_capsule(code, bits, lanes=1):
    """Return a capsule of two elements whose DLPack dtype was changed to this one."""
    capsule = np.zeros(2 * lanes, f"u{bits // 8}").__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # DLTensor: the address of the data, the device (two int32), the rank (int32), then the dtype.
    at = pointer(capsule, b"dltensor") + 20
    ctypes.c_uint8.from_address(at).value = code
    ctypes.c_uint16.from_address(at + 2).value = lanes
    return capsule


@pytest.mark.parametrize(
    ("code", "bits", "lanes", "dtype", "error", "message"),
    [
        (4, 16, 2, "lib.bfloat16x2", DTypeError, "Typed of bfloat16x2 cannot be read"),
        (7, 8, 1, "float8_e3m4", DTypeError, "Typed of float8_e3m4 cannot be read"),
        (2, 32, 2, "float32x2", DTypeError, "Typed of float32x2 cannot be read"),
        (2, 32, 2, "float32", InterchangeError, "Typed of float32 cannot be read"),
        (4, 16, 2, None, DTypeError, "Typed of an unknown dtype cannot be read"),
    ],
)
def test_dtypes_that_tensors_do_not_have(code, bits, lanes, dtype, error, message):
    with pytest.raises(error, match=rf"from_dlpack: \w+\.{message}"):
        tp.from_dlpack(Typed(foreign_capsule(code, bits, lanes), dtype))


def test_dtypes_that_the_device_does_not_have(engine):
    engine.devices.source.dtypes["memory"] = frozenset({tp.float32})
    message = "from_dlpack: x: float64[2] is not possible on backend 'memory'"
    for array in (np.ones(2), np.ones(2)[::-1]):
        with pytest.raises(DTypeError, match=re.escape(message)):
            tp.from_dlpack(array, device="memory")


def test_no_room(engine):
    engine.open("memory").backend.room = 8
    with pytest.raises(BackendMemoryError) as got:
        tp.from_dlpack(np.ones(2), device="memory")
    assert got.value.__notes__ == ["while copying from_dlpack: x to backend 'memory'"]
    tp.from_dlpack(np.ones(1), device="memory")
