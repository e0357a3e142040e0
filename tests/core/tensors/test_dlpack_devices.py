"""DLPack of device memory: a backend whose device is not the host's, and another library on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support import engines

import tensorplug as tp
from tensorplug.dispatch.context import Context, use_context
from tensorplug.engine.engine import Engine, Opened
from tensorplug.errors import (
    ArgumentError,
    CopyNeededError,
    GradientError,
    InterchangeError,
    RegistrationError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICE = (12, 3)  # kDLExtDev


class Capsule:
    """What passes between libraries: an array that stands for device memory."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Theirs:
    """A tensor of another library on the same device; notes what it was asked."""

    def __init__(self, array: np.ndarray, device: tuple[int, int] = DEVICE) -> None:
        self.array = array
        self.device = device
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **request: Any) -> Capsule:
        self.asked.append(request)
        return Capsule(self.array.copy() if request.get("copy") else self.array)


class ExchangingBackend(engines.MemoryBackend):
    """Buffers are arrays in the memory of an imagined device."""

    def dlpack_device(self) -> tuple[int, int]:
        return DEVICE

    def to_dlpack(
        self,
        buffer: np.ndarray,
        *,
        stream: Any,
        max_version: Any,  # noqa: ARG002  # of the protocol
        copy: bool | None,
    ) -> Capsule:
        if stream not in (None, 7):
            raise BufferError(f"no stream {stream}")
        return Capsule(buffer.copy() if copy else buffer)

    def from_dlpack(self, producer: Any, *, copy: bool | None) -> np.ndarray:
        return producer.__dlpack__(max_version=(1, 0), copy=copy).array


class Source(engines.Source):
    def open(self, name: str, device: str | None) -> Opened:
        opened = super().open(name, device)
        if name != "exchanging":
            return opened
        return Opened(ExchangingBackend(name), opened.owner, opened.kernels)


@pytest.fixture(autouse=True)
def engine() -> Iterator[Engine]:
    made = engines.make(("exchanging", "memory"))
    source: Any = made.devices.source
    made.devices.source = Source(source.tables)
    with use_context(Context(made)):
        yield made


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_devices() -> None:
    x = tp.asarray(X)
    assert x.__dlpack_device__() == DEVICE
    assert x.to("memory").__dlpack_device__() == x.to("host").__dlpack_device__() == (1, 0)


def test_memory_is_exchanged_without_the_host() -> None:
    theirs = Theirs(X.copy())
    taken = tp.from_dlpack(theirs)
    assert (taken.device, taken.shape, taken.dtype) == ("exchanging", (2, 3), tp.float32)
    theirs.array[0, 0] = 100
    assert taken._buffer is theirs.array
    np.testing.assert_array_equal((taken + 1.0).numpy(), theirs.array + 1)
    capsule: Any = taken.__dlpack__(stream=7)
    assert capsule.array is theirs.array
    assert taken.__dlpack__(dl_device=DEVICE).array is theirs.array  # type: ignore[attr-defined]
    with pytest.raises(BufferError, match="no stream 8"):
        taken.__dlpack__(stream=8)


@pytest.mark.parametrize("copy", [None, True, False])
def test_copies(copy: bool | None) -> None:
    theirs = Theirs(X.copy())
    taken = tp.from_dlpack(theirs, copy=copy)
    assert theirs.asked == [{"max_version": (1, 0), "copy": copy}]
    assert np.shares_memory(taken._buffer, theirs.array) == (copy is not True)
    capsule: Any = taken.__dlpack__(copy=copy)
    assert np.shares_memory(capsule.array, taken._buffer) == (copy is not True)


def test_host_memory_is_still_there() -> None:
    x = tp.asarray(X)
    capsule = x.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert "dltensor" in repr(capsule)
    with pytest.raises(CopyNeededError, match="does not use host memory"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(ArgumentError, match="stream must be None"):
        x.__dlpack__(dl_device=(1, 0), stream=7)
    np.testing.assert_array_equal(tp.from_dlpack(X).numpy(), X)
    assert tp.from_dlpack(X).device == "exchanging"
    assert tp.from_dlpack(X, device="host").device == "host"


def test_other_devices_are_refused() -> None:
    with pytest.raises(InterchangeError, match=r"is on device kDLCUDA:0, not in host memory"):
        tp.from_dlpack(Theirs(X, (2, 0)))
    with pytest.raises(InterchangeError, match=r"kDLExtDev:3"):
        tp.from_dlpack(Theirs(X), device="memory")
    with pytest.raises(InterchangeError, match=r"stay on \(12, 3\) or be exported to host"):
        tp.asarray(X).__dlpack__(dl_device=(2, 0))


def test_gradients_and_scopes() -> None:
    with pytest.raises(GradientError, match="is exported by DLPack"):
        tp.grad(lambda x: (x.__dlpack__(), tp.sum(x))[1])(tp.asarray(X))
    held: list[Any] = []
    tp.tidy(lambda: held.append(tp.from_dlpack(Theirs(X))))
    assert held[0].is_disposed


def test_half_of_it_is_refused() -> None:
    class Half(engines.MemoryBackend):
        def dlpack_device(self) -> tuple[int, int]:
            return DEVICE

    from tensorplug.contract import capabilities

    with pytest.raises(
        RegistrationError, match="ExchangesDeviceMemory, but lacks to_dlpack, from"
    ):
        capabilities.of(Half("half"))
