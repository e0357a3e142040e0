"""A clean backend made wrong outside its kernels: transfers, descriptions, memory, threads."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.floats import finfo, kind_of
from tensorplug_conformance.selftest.racing import SharedScratch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.engine.engine import BackendSource, Engine, Opened
    from tensorplug.plugin import Backend, DeviceInfo, DType
    from tensorplug_conformance.case import Array

from tensorplug_conformance.selftest.delegates import Delegate, Unguarded

_LARGE: Final = 1 << 20  # bytes


class _SharesHostMemory(Delegate):
    def from_host(self, array: Array) -> Any:
        return array if array.flags.c_contiguous else self.clean.from_host(array)


class _RowsOnly(Delegate):
    """Reads the elements in the order of memory."""

    def from_host(self, array: Array) -> Any:
        order = array.ravel(order="K").reshape(array.shape)
        return self.clean.from_host(order)


class _LosesPayloads(Delegate):
    def from_host(self, array: Array) -> Any:
        if kind_of(array.dtype) != "f":
            return self.clean.from_host(array)
        return self.clean.from_host(np.where(np.isnan(array), array.dtype.type(np.nan), array))


class _FlushesSubnormals(Delegate):
    def from_host(self, array: Array) -> Any:
        if kind_of(array.dtype) != "f":
            return self.clean.from_host(array)
        tiny = finfo(array.dtype).smallest_normal
        # A zero of the same sign; array * 0 would do, but warns of infinities.
        flushed = np.copysign(np.zeros((), array.dtype), array)
        return self.clean.from_host(np.where(np.abs(array) < tiny, flushed, array))


class _EmptyBecomesFlat(Delegate):
    def from_host(self, array: Array) -> Any:
        return self.clean.from_host(array if array.size else array.reshape(-1))


class _ScalarBecomesVector(Delegate):
    def to_host(self, buffer: Any) -> Array:
        return np.atleast_1d(self.clean.to_host(buffer))


class _ThroughFloat32(Delegate):
    """Stores float64 in fewer bits."""

    def from_host(self, array: Array) -> Any:
        if array.dtype == np.float64:
            with np.errstate(all="ignore"):
                array = array.astype(np.float32).astype(np.float64)
        return self.clean.from_host(array)


class _DescribesAnything(Delegate):
    def describe(self, buffer: Any) -> TensorType:
        if not isinstance(buffer, np.ndarray):
            return TensorType(dt.float32, ())
        return self.clean.describe(buffer)


class _OneAllocation(Delegate):
    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        return "the heap", self.clean.allocation(buffer)[1]


class _LacksInt32(Delegate):
    @property
    def dtypes(self) -> frozenset[DType]:
        return self.clean.dtypes - {dt.int32}


class _Leaks(Delegate):
    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.kept: list[Any] = []

    def from_host(self, array: Array) -> Any:
        buffer = self.clean.from_host(array)
        self.kept.append(buffer)
        return buffer


class _RecyclesTooSoon(Delegate):
    """Hands the same memory out again while it is still in use."""

    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.pool: dict[Any, list[Array]] = {}

    def from_host(self, array: Array) -> Any:
        ring = self.pool.setdefault((array.dtype, array.shape), [])
        if len(ring) < 3:
            ring.append(np.array(array))
            return ring[-1]
        ring.append(ring.pop(0))
        np.copyto(ring[-1], array)
        return ring[-1]


class _MixesThreads(Delegate):
    """Stages every transfer of a size in one place, without a lock."""

    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.staging = SharedScratch()

    def from_host(self, array: Array) -> Any:
        return self.clean.from_host(self.staging.passed(array))


class _SaysItWrote(Delegate):
    def exclusive(self, buffer: Any) -> Unguarded:
        return Unguarded(buffer, lambda _array, _key, _value: True)


class _OwnsEverything(Delegate):
    def owns_memory(self, _buffer: Any) -> bool:
        return True


class _OwnsWhatIsLarge(Delegate):
    def owns_memory(self, buffer: Any) -> bool:
        large: bool = buffer.nbytes >= _LARGE
        return large or bool(self.clean.owns_memory(buffer))  # type: ignore[attr-defined]  # a CPU backend


class _TwoAxesBackwards(Delegate):
    """Reads arrays that are turned along several axes as if they were along the first alone."""

    def from_host(self, array: Array) -> Any:
        turned = [at for at, step in enumerate(array.strides) if step < 0 and array.shape[at] > 1]
        return self.clean.from_host(
            np.flip(array, tuple(turned[1:])) if len(turned) > 1 else array
        )


class _FlushesComplex(Delegate):
    def from_host(self, array: Array) -> Any:
        if array.dtype.kind == "c":
            array = np.array(array)
            parts = array.reshape(-1).view(array.real.dtype)
            parts[np.abs(parts) < np.finfo(parts.dtype).tiny] = 0
        return self.clean.from_host(array)


class _BindsTheFirst(Delegate):
    """Its kernels keep the first constants of each type for all programs."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._first: dict[Any, Any] = {}

    def bind_constants(self, call: Any, constants: Any) -> Any:
        def run(*inputs: Any) -> Any:
            pairs = zip(inputs, kept, strict=True)
            return call(*(buffer if constant is None else constant for buffer, constant in pairs))

        key = tuple(None if each is None else (each.shape, each.dtype) for each in constants)
        kept = self._first.setdefault(key, constants)
        return run


class _WritesUnsaid(Delegate):
    def exclusive(self, buffer: Any) -> Unguarded:
        def write(array: Array, key: Any, value: Any) -> bool:
            array[key] = value
            return False

        return Unguarded(buffer, write)


class _OverwritesWhatIsLarge(Delegate):
    """Writes to large memory whatever loans are alive, and to no other."""

    def exclusive(self, buffer: Any) -> Unguarded:
        def write(array: Array, key: Any, value: Any) -> bool:
            if array.nbytes < _LARGE:
                return False
            array[key] = value
            return True

        return Unguarded(buffer, write)


class _WritesTooMuch(Delegate):
    def exclusive(self, buffer: Any) -> Unguarded:
        def write(array: Array, _key: Any, value: Any) -> bool:
            array[...] = value.flat[0]
            return True

        return Unguarded(buffer, write)


class _CountsNothing(Delegate):
    def live_buffers(self) -> int:
        return 0

    def counts(self, buffer: Any) -> bool:
        return buffer is not None

    def stop_counting(self) -> None:
        pass


class _NeverCountsLess(_CountsNothing):
    made = 0

    def from_host(self, array: Array) -> Any:
        self.made += 1
        return self.clean.from_host(array)

    def live_buffers(self) -> int:
        return self.made


class _SharesCopies(Delegate):
    def share_from_host(self, array: Array) -> Any:
        return self.clean.from_host(array)

    def share_to_host(self, buffer: Any) -> Array:
        return self.clean.to_host(buffer)


class _SharesOneWay(Delegate):
    def share_from_host(self, array: Array) -> Any:
        return array.view()

    def share_to_host(self, buffer: Any) -> Array:
        return np.array(buffer)


class _ExchangesWrongData(Delegate):
    """Exports one element after the right one."""

    def dlpack_device(self) -> tuple[int, int]:
        return (12, 0)

    def to_dlpack(self, buffer: Any, *, copy: bool | None, **_request: Any) -> Any:
        return np.roll(buffer, 1) if copy else buffer

    def from_dlpack(self, producer: Any, *, copy: bool | None) -> Any:
        return np.array(producer.__dlpack__(copy=copy))


class _NeverCopiesForOthers(_ExchangesWrongData):
    def to_dlpack(self, buffer: Any, **_request: Any) -> Any:
        return buffer

    def from_dlpack(self, producer: Any, **_request: Any) -> Any:
        return producer.__dlpack__()


class _ExchangesHostMemory(_NeverCopiesForOthers):
    def dlpack_device(self) -> tuple[int, int]:
        return (1, 0)


class _MeasuresNothing(Delegate):
    def measure(self) -> Callable[[], int]:
        return lambda: 0


class _MeasuresInMicroseconds(Delegate):
    def measure(self) -> Callable[[], int]:
        begun = time.perf_counter_ns()
        return lambda: 1000 * (time.perf_counter_ns() - begun)


class _TrimsForEver(Delegate):
    def trim(self) -> int:
        return 4096


class _TrimsWhatIsUsed(Delegate):
    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.made: list[Any] = []

    def from_host(self, array: Array) -> Any:
        self.made.append(self.clean.from_host(array))
        return self.made[-1]

    def trim(self) -> int:
        freed: int = sum(buffer.nbytes for buffer in self.made)
        for buffer in self.made:
            buffer[...] = 0
        self.made.clear()
        return freed


class _AlwaysLost(Delegate):
    def explain_loss(self) -> str:
        return "it was unplugged"


@dataclass(frozen=True, slots=True)
class WrongBackend:
    """``make`` wraps the clean backend; ``check`` of ``level`` must catch it."""

    name: str
    make: Callable[[Backend], Any]
    level: int
    check: str


WRONG_BACKENDS: Final[Sequence[WrongBackend]] = (
    WrongBackend("shares host memory", _SharesHostMemory, 1, "isolation"),
    WrongBackend("ignores host strides", _RowsOnly, 1, "transfer int32"),
    WrongBackend("loses NaN payloads", _LosesPayloads, 1, "transfer float32"),
    WrongBackend("flushes subnormals", _FlushesSubnormals, 1, "transfer float64"),
    WrongBackend("flattens what is empty", _EmptyBecomesFlat, 1, "transfer bool"),
    WrongBackend("makes vectors of scalars", _ScalarBecomesVector, 1, "transfer uint8"),
    WrongBackend("holds float64 in float32", _ThroughFloat32, 1, "transfer float64"),
    WrongBackend("describes anything", _DescribesAnything, 1, "buffers described"),
    WrongBackend("names one allocation", _OneAllocation, 1, "buffers described"),
    WrongBackend("lacks int32", _LacksInt32, 0, "required dtypes"),
    WrongBackend("mixes threads up", _MixesThreads, 1, "threads"),
    WrongBackend("leaks", _Leaks, 1, "no leaks"),
    WrongBackend("recycles too soon", _RecyclesTooSoon, 1, "isolation"),
    WrongBackend("says that it wrote", _SaysItWrote, 1, "overwrites"),
    WrongBackend("writes and does not say so", _WritesUnsaid, 1, "overwrites"),
    WrongBackend("writes too much", _WritesTooMuch, 1, "overwrites"),
    WrongBackend("counts nothing", _CountsNothing, 1, "counts buffers"),
    WrongBackend("never counts less", _NeverCountsLess, 1, "counts buffers"),
    WrongBackend("shares copies", _SharesCopies, 1, "shares host memory"),
    WrongBackend("shares one way only", _SharesOneWay, 1, "shares host memory"),
    WrongBackend("exchanges wrong data", _ExchangesWrongData, 1, "exchanges device memory"),
    WrongBackend("never copies for others", _NeverCopiesForOthers, 1, "exchanges device memory"),
    WrongBackend("exchanges host memory", _ExchangesHostMemory, 1, "exchanges device memory"),
    WrongBackend("owns what others see", _OwnsEverything, 1, "reuses memory"),
    WrongBackend("owns what is large", _OwnsWhatIsLarge, 1, "reuses memory"),
    WrongBackend("overwrites what is large", _OverwritesWhatIsLarge, 1, "overwrites"),
    WrongBackend("turns one axis of two", _TwoAxesBackwards, 1, "transfer int16"),
    WrongBackend("flushes complex subnormals", _FlushesComplex, 1, "transfer complex64"),
    WrongBackend("binds the first constants", _BindsTheFirst, 4, "compiled = eager: constants"),
    WrongBackend("measures nothing", _MeasuresNothing, 1, "measures"),
    WrongBackend("measures in another unit", _MeasuresInMicroseconds, 1, "measures"),
    WrongBackend("trims for ever", _TrimsForEver, 1, "trims"),
    WrongBackend("trims what is in use", _TrimsWhatIsUsed, 1, "trims"),
    WrongBackend("is lost while it computes", _AlwaysLost, 1, "reports loss"),
)


class WrappedSource:
    """A source whose backends are wrapped when they open."""

    def __init__(self, clean: BackendSource, make: Callable[[Backend], Any]) -> None:
        self._clean = clean
        self._make = make

    def names(self) -> Sequence[str]:
        """Return the names of the clean source."""
        return self._clean.names()

    def explain_unknown(self, name: str) -> str:
        """Return what the clean source says."""
        return self._clean.explain_unknown(name)

    def devices(self, name: str) -> Sequence[DeviceInfo] | None:
        """Return the devices of the clean source."""
        return self._clean.devices(name)

    def open(self, name: str, device: str | None) -> Opened:
        """Open the clean backend and wrap it."""
        opened = self._clean.open(name, device)
        return dataclasses.replace(opened, backend=self._make(opened.backend))


def engine_with(wrong: WrongBackend) -> Engine:
    """Return an engine on which every backend is wrong in this way."""
    engine = build_engine()
    engine.devices.source = WrappedSource(engine.devices.source, wrong.make)
    return engine
