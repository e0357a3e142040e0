"""A clean backend made wrong in its memory: now and then, at some sizes, or for some arrays."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import BackendMemoryError
from tensorplug_conformance.selftest.backends import WrongBackend
from tensorplug_conformance.selftest.delegates import Delegate

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from tensorplug.plugin import Backend
    from tensorplug_conformance.case import Array


_PAGE: Final = 1 << 12
_MEBIBYTE: Final = 1 << 20


class _Shares(Delegate):
    """Keeps the caller's memory where it seems safe, or worth it."""

    def shares(self, array: Array) -> bool:
        raise NotImplementedError

    def from_host(self, array: Array) -> Any:
        return array.view() if self.shares(array) else self.clean.from_host(array)


class _SharesLarge(_Shares):
    def shares(self, array: Array) -> bool:
        return bool(array.flags.c_contiguous and array.nbytes > _MEBIBYTE)


class _SharesReadOnly(_Shares):
    def shares(self, array: Array) -> bool:
        return not array.flags.writeable


class _SharesPages(_Shares):
    def shares(self, array: Array) -> bool:
        return array.ctypes.data % _PAGE == 0 and array.nbytes >= _PAGE


class _SharesColumns(_Shares):
    def shares(self, array: Array) -> bool:
        return not array.flags.c_contiguous


class _ReadsToOnePlace(Delegate):
    """Reads large buffers to a place that the next one of the same size takes."""

    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.places: dict[int, Array] = {}

    def from_host(self, array: Array) -> Any:
        place = self.places.get(array.nbytes)
        if place is not None and place.dtype == array.dtype and place.shape == array.shape:
            np.copyto(place, array)
        return self.clean.from_host(array)

    def to_host(self, buffer: Any) -> Array:
        result = np.array(self.clean.to_host(buffer))
        if result.nbytes > _MEBIBYTE:
            self.places[result.nbytes] = result
        return result


class _NamesViewsApart(Delegate):
    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        return id(buffer), self.clean.allocation(buffer)[1]


class _NamesBySize(Delegate):
    """Has one name for all results of a size, and others for what was transferred."""

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        name, size = self.clean.allocation(buffer)
        return (size, size) if size < _PAGE else (name, size)


class _SaysTooMuch(Delegate):
    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        name, size = self.clean.allocation(buffer)
        return name, size + _MEBIBYTE


class _NowAndThen(Delegate):
    """Does something to one transfer in ``every``."""

    every = 100

    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.transfers = 0
        self.kept: list[Any] = []

    def from_host(self, array: Array) -> Any:
        self.transfers += 1
        buffer = self.clean.from_host(array)
        return buffer if self.transfers % self.every else self.act(buffer, array)

    def act(self, buffer: Any, _array: Array) -> Any:
        self.kept.append(buffer)
        return buffer


class _KeepsArrays(_NowAndThen):
    def act(self, buffer: Any, array: Array) -> Any:
        self.kept.append(array)
        return buffer


class _LosesMemory(_NowAndThen):
    """Loses memory that neither Python nor ``memory()`` knows of."""

    def act(self, buffer: Any, array: Array) -> Any:
        malloc = ctypes.CDLL(None).malloc
        malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        ctypes.memset(malloc(array.nbytes), 1, array.nbytes)
        return buffer


class _Miscounts(_NowAndThen):
    """Counts one released buffer in 100 as used."""

    def memory(self) -> dict[str, int]:
        return {**self.clean.memory(), "used": self.transfers // self.every}

    def act(self, buffer: Any, _array: Array) -> Any:
        return buffer


class _GarblesSome(_NowAndThen):
    every = 500

    def act(self, _buffer: Any, array: Array) -> Any:
        return self.clean.from_host(np.roll(array, 1))


class _SharesScalars(_Shares):
    def shares(self, array: Array) -> bool:
        return array.ndim == 0


class _SharesVolumes(_Shares):
    def shares(self, array: Array) -> bool:
        return array.ndim > 2


class _KeepsLarge(Delegate):
    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.kept: list[Any] = []
        self.left = 1 << 30  # bytes that it may keep: the machine goes on working

    def from_host(self, array: Array) -> Any:
        buffer = self.clean.from_host(array)
        if _MEBIBYTE < array.nbytes <= self.left:
            self.left -= array.nbytes
            self.kept.append(buffer)
        return buffer


class _KeepsIntegers(_NowAndThen):
    every = 50

    def act(self, buffer: Any, array: Array) -> Any:
        if array.dtype == np.int32:
            self.kept.append(buffer)
        return buffer


class _Overdraws(Delegate):
    def memory(self) -> dict[str, int]:
        return {"used": -1}


class _Drifts(Delegate):
    """Says another size of an allocation when it has been asked often."""

    asked = 0

    def allocation(self, buffer: Any) -> tuple[Hashable, int]:
        name, size = self.clean.allocation(buffer)
        self.asked += 1
        return name, size + 4 * (self.asked > 100)


class _OpensFiles(_NowAndThen):
    def act(self, buffer: Any, _array: Array) -> Any:
        self.kept.append(os.dup(0))
        return buffer


class _KeepsWhatIsRead(Delegate):
    def __init__(self, clean: Backend) -> None:
        super().__init__(clean)
        self.reads = 0
        self.kept: list[Any] = []

    def to_host(self, buffer: Any) -> Array:
        array = self.clean.to_host(buffer)
        self.reads += 1
        if self.reads % 100 == 0:
            self.kept.append(np.array(array))
        return array


class _ComputesByAPrivateDoor(Delegate):
    """Has a device with a clock of its own, which does nothing."""

    def measure(self) -> Callable[[], int]:
        return lambda: 1000


class _DeclaresASmallLimit(Delegate):
    """Declares that it cannot hold what large cases need, and can."""

    largest_buffer = 1 << 20


class _KeepsLessThanItsLimit(Delegate):
    """Refuses what is smaller than the limit that it declares."""

    largest_buffer = 1 << 20

    def from_host(self, array: Array) -> Any:
        if array.nbytes >= self.largest_buffer // 2:
            raise BackendMemoryError("too large")
        return self.clean.from_host(array)


WRONG_MEMORIES: Final[Sequence[WrongBackend]] = (
    WrongBackend("shares what is large", _SharesLarge, 1, "writes stay outside: 2054 KiB"),
    WrongBackend("shares what is larger", _SharesLarge, 1, "writes stay outside: 65536 KiB"),
    WrongBackend("shares what is read-only", _SharesReadOnly, 1, "writes stay outside: 64 bytes"),
    WrongBackend("shares whole pages", _SharesPages, 1, "writes stay outside: 1024 KiB"),
    WrongBackend("shares columns", _SharesColumns, 1, "writes stay outside: 64 KiB"),
    WrongBackend("reads to one place", _ReadsToOnePlace, 1, "what is read is a copy: 2054 KiB"),
    WrongBackend("names views apart", _NamesViewsApart, 1, "views named as their base"),
    WrongBackend("names by size", _NamesBySize, 1, "allocations named apart"),
    WrongBackend("says too much", _SaysTooMuch, 1, "allocations named apart"),
    WrongBackend("keeps 1 of 100 buffers", _NowAndThen, 1, "no rare leaks: transfers of 64 bytes"),
    WrongBackend("keeps 1 of 100 arrays", _KeepsArrays, 1, "no rare leaks: transfers of 4 KiB"),
    WrongBackend("loses 1 of 100", _LosesMemory, 1, "no rare leaks: transfers of 64 KiB"),
    WrongBackend("loses 1 of 100 large", _LosesMemory, 1, "no rare leaks: transfers of 1024 KiB"),
    WrongBackend("miscounts 1 of 100", _Miscounts, 1, "no rare leaks: transfers of 64 bytes"),
    WrongBackend("garbles 1 of 500", _GarblesSome, 1, "no rare leaks: transfers of 64 bytes"),
    WrongBackend("keeps what is read", _KeepsWhatIsRead, 1, "no rare leaks: kernels on 16 KiB"),
    WrongBackend("shares scalars", _SharesScalars, 1, "transfer int64"),
    WrongBackend("shares volumes", _SharesVolumes, 1, "transfer bool"),
    WrongBackend("keeps what is large", _KeepsLarge, 1, "no rare leaks: transfers of 4096 KiB"),
    WrongBackend("keeps integers", _KeepsIntegers, 1, "no rare leaks: transfers of every dtype"),
    WrongBackend("overdraws", _Overdraws, 1, "figures of memory"),
    WrongBackend("drifts", _Drifts, 1, "allocations named apart"),
    WrongBackend("opens files", _OpensFiles, 1, "no rare leaks: transfers of 4 KiB"),
    WrongBackend("computes by a private door", _ComputesByAPrivateDoor, 1, "the device is busy"),
    WrongBackend("declares a small limit", _DeclaresASmallLimit, 1, "figures of memory"),
    WrongBackend("keeps less than its limit", _KeepsLessThanItsLimit, 1, "figures of memory"),
)
