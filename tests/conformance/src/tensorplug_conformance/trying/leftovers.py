"""What many calls leave behind, when only one call in a hundred leaves anything."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from array import array
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import TensorplugError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tensorplug.plugin import Backend


MOST: Final = 40  # parts until a leak is certain
PARTS: Final = 3  # in each of them a leak grows; in a part before, caches and pools fill
_RARE: Final = 200  # one in so many calls, or bytes, is a leak
_OBJECTS: Final = "the number of objects of Python"
ALLOCATED: Final = "the memory that malloc has given out"
_RESIDENT: Final = "the memory of the process"
# Not the pages of files, which the system drops and reads again as it likes.
_OWN: Final = ("RssAnon:", "RssShmem:", "VmSwap:")
_OPEN: Final = "the number of open files"
_THREADS: Final = "the number of threads"
_CHILDREN: Final = "the number of child processes"
_ON_LINUX: Final = sys.platform == "linux"


class Leftovers:
    """What is still alive after each part of many calls, by what it was.

    Args:
        backend: its figures are compared, too.
        passed: the bytes transferred in each part; 0 if they are so few that the memory of the
            process says nothing.

    The counts lie in arrays of fixed length, since new objects would be counted, too.

    """

    def __init__(self, backend: Backend, passed: int = 0) -> None:
        self._backend = backend
        self._watched: dict[str, list[weakref.ref[Any]]] = {}
        self._memory = [f"memory()[{name!r}]" for name in backend.memory()]
        process = process_figures() if passed else {}
        self._figures = {**process, **_HELD, _OBJECTS: getattr(sys, "getallocatedblocks", int)}
        self._least = dict.fromkeys(self._memory, 1)
        self._least |= dict.fromkeys(process, max(1, passed // _RARE))
        self._least |= dict.fromkeys(_HELD, 1)
        self._counts = {name: array("q", [0]) * MOST for name in (*self._least, _OBJECTS)}
        self._part = 0

    def watch(self, what: str, objects: Iterable[Any]) -> None:
        """Remember objects that should all be gone at the end of the part."""
        if what not in self._watched:
            self._watched[what] = []
            self._counts[what] = array("q", [0]) * MOST
        try:
            self._watched[what].extend(map(weakref.ref, objects))
        except TypeError:
            return  # no weak references to such objects: the figures have to show them

    def count(self) -> None:
        """Count at the end of a part, once the device has freed what was released."""
        gc.collect()
        with suppress(TensorplugError):  # of calls that it was to refuse
            self._backend.synchronize()
        for what, refs in self._watched.items():
            refs[:] = [ref for ref in refs if ref() is not None]
            self._counts[what][self._part] = len({id(ref()) for ref in refs})
        for name, value in zip(self._memory, self._backend.memory().values(), strict=True):
            self._counts[name][self._part] = value
        for name, figure in self._figures.items():
            self._counts[name][self._part] = figure()
        self._part += 1

    def fault(self, length: int) -> str:
        """Return what grew with the parts, of ``length`` calls each; empty if nothing did.

        A cache may keep some objects; more than one in each part, on average, is a leak. Numbers
        must grow in each of the last parts.
        """
        for what in self._watched:
            counts = self._counts[what]
            grown = counts[self._part - 1] - counts[0]
            if grown >= self._part:
                calls = length * (self._part - 1)
                return f"of {calls} calls, {grown} more {what} are kept: a leak"
        for name, least in {**self._least, _OBJECTS: max(2, length // _RARE)}.items():
            steps = [after - before for before, after in pairwise(self._last(name))]
            if min(steps) >= least:
                return f"{name} grew by {_listed(steps)} in {length} calls each: a leak"
        return ""

    def _last(self, name: str) -> list[int]:
        return self._counts[name][self._part - PARTS - 1 : self._part].tolist()


def pass_over() -> None:
    """Let the collector pass over what there is now, for good.

    After thousands of rows there are millions of objects, and a collection takes a second.
    """
    gc.collect()
    gc.freeze()


def settled(leftovers: Leftovers, part: Callable[[], int]) -> str:
    """Call ``part`` until nothing grows any more; return what still grows in the end, if anything.

    ``part`` returns the number of its calls. What grows at first may be a cache that is filling;
    further parts decide.
    """
    fault = ""
    for number in range(MOST):
        length = part()
        leftovers.count()
        fault = leftovers.fault(length) if number >= PARTS else ""
        if number >= PARTS and not fault:
            break
    return fault


@cache
def process_figures() -> dict[str, Callable[[], int]]:
    """Return what this platform says of the process's memory, by name."""
    figures: dict[str, Callable[[], int]] = {}
    status = Path("/proc/self/status")
    try:
        libc = ctypes.CDLL(None)
        information, trim = libc.mallinfo2, libc.malloc_trim
    except (OSError, AttributeError, TypeError):  # another C library, or an old one
        trim = None
    else:
        information.restype = _Mallinfo

        def allocated() -> int:
            now = information()
            return int(now.uordblks + now.hblkhd)

        figures[ALLOCATED] = allocated

    def resident() -> int:
        if trim is not None:
            trim(0)
        lines = status.read_text("ascii").splitlines()
        return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(_OWN))

    if status.exists():
        figures[_RESIDENT] = resident
    return figures


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir()) if _ON_LINUX else 0


def _child_processes() -> int:
    count = 0
    # ``Path.glob`` leaves up to two objects behind each time: it would be the leak.
    for task in Path("/proc/self/task").iterdir() if _ON_LINUX else ():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended meanwhile
            count += len((task / "children").read_bytes().split())
    return count


_HELD: Final[dict[str, Callable[[], int]]] = {
    _OPEN: _open_files,
    _THREADS: threading.active_count,
    _CHILDREN: _child_processes,
}


class _Mallinfo(ctypes.Structure):
    """The figures of glibc's ``mallinfo2``."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
