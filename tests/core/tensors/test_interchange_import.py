"""Tensors made of other libraries' memory by DLPack: whose it is, and what is refused."""

from __future__ import annotations

import ctypes
import re
import weakref

import numpy as np
import pytest
from tests.core.tensors.test_interchange import Handed, Kind, Producer, same

import tensorplug as tp
from tensorplug.errors import (
    BackendMemoryError,
    CopyNeededError,
    DLPackNotSupportedError,
    DTypeError,
    InterchangeError,
)

pytestmark = pytest.mark.usefixtures("sharing_engine")


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


def test_dtypes_that_the_device_does_not_have(sharing_engine):
    sharing_engine.devices.source.dtypes["memory"] = frozenset({tp.float32})
    message = "from_dlpack: x: float64[2] is not possible on backend 'memory'"
    for array in (np.ones(2), np.ones(2)[::-1]):
        with pytest.raises(DTypeError, match=re.escape(message)):
            tp.from_dlpack(array, device="memory")


def test_no_room(sharing_engine):
    sharing_engine.open("memory").backend.room = 8
    with pytest.raises(BackendMemoryError) as got:
        tp.from_dlpack(np.ones(2), device="memory")
    assert got.value.__notes__ == ["while copying from_dlpack: x to backend 'memory'"]
    tp.from_dlpack(np.ones(1), device="memory")
