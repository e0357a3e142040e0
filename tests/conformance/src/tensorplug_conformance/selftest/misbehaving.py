"""A clean backend that misbehaves: its Neg kernel crashes the process, lies, prints or leaks.

Each function returns an engine, so that another process can be given its name.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from tensorplug.contract.entries import decomposition_entry, kernel_entry
from tensorplug.contract.owner import Owner
from tensorplug.plugin import KernelRefusedError, specs
from tensorplug.plugin import dtypes as dt
from tensorplug.plugins.assembly import build_engine
from tensorplug_conformance.selftest.backends import WrongBackend, engine_with
from tensorplug_conformance.selftest.delegates import Delegate, Remote

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine.engine import Engine
    from tensorplug.plugin import KernelEntry


REFERENCE = "cpu"


def _with_neg(neg: Callable[..., Any]) -> Engine:
    return _replaced(kernel_entry(specs.NEG, neg))


def _replaced(*entries: KernelEntry, alone: bool = False, engine: Engine | None = None) -> Engine:
    changed = engine or build_engine()
    changed.open(REFERENCE)
    for entry in entries:
        if alone:
            changed.registry.remove_kernel(entry.spec.name, REFERENCE)
        wrong = [(REFERENCE, entry)]
        changed.registry.add(Owner("misbehaving"), kernels=wrong, override=True)
    return changed


def dies() -> Engine:
    """Return an engine in which Neg crashes the process, as a fault in native code does."""

    def neg(x: Any) -> NoReturn:
        del x
        os.abort()

    return _with_neg(neg)


def segfaults() -> Engine:
    """Return an engine in which Neg reads invalid memory."""

    def neg(x: Any) -> bytes:
        del x
        return ctypes.string_at(0)

    return _with_neg(neg)


def hangs() -> Engine:
    """Return an engine in which Neg never returns."""

    def neg(x: Any) -> NoReturn:
        del x
        while True:
            time.sleep(1)

    return _with_neg(neg)


def exits() -> Engine:
    """Return an engine in which Neg ends the process with exit code 0."""

    def neg(x: Any) -> NoReturn:
        del x
        os._exit(0)

    return _with_neg(neg)


def negates_nothing() -> Engine:
    """Return an engine in which Neg returns its input."""
    return _with_neg(lambda x: x)


def prints() -> Engine:
    """Return an engine that prints to stdout when it is built."""
    sys.stdout.write("hello from the driver\n")
    return build_engine()


def prints_while_computing() -> Engine:
    """Return an engine in which Neg prints to stdout."""

    def neg(x: Any) -> Any:
        sys.stdout.write("negating\n")
        return np.asarray(-x)

    return _with_neg(neg)


def logs_an_error() -> Engine:
    """Return an engine in which Neg logs an error, and a filter takes it out of the log."""
    logger = logging.getLogger("a driver")
    logger.addFilter(lambda _: False)

    def neg(x: Any) -> Any:
        logger.error("a buffer is too small")
        return np.asarray(-x)

    return _with_neg(neg)


def _declines(x: Any) -> NoReturn:
    """Prepare nothing, whatever the types."""
    del x
    raise KernelRefusedError("not today")


def refuses() -> Engine:
    """Return an engine that registers Neg, and whose Neg declines all types."""
    return _replaced(kernel_entry(specs.NEG, _declines, prepares=True))


def decomposes_a_primitive() -> Engine:
    """Return an engine whose Neg declines all types, so that other kernels compute it."""
    engine = refuses()
    instead = decomposition_entry(specs.NEG, lambda x: (x * 0) - x)
    engine.registry.add(Owner("misbehaving"), decompositions=[instead])
    return engine


def registers_less() -> Engine:
    """Return an engine whose Neg is registered for int32 alone, though float32 is declared."""
    return _replaced(
        kernel_entry(specs.NEG, lambda x: np.asarray(-x), dtypes=(dt.int32,)), alone=True
    )


def raises_at_close() -> Engine:
    """Return an engine whose backend cannot be closed."""
    engine = build_engine()
    clean = engine.open(REFERENCE).backend

    def close() -> NoReturn:
        raise OSError("the driver is gone")

    clean.close = close  # type: ignore[method-assign]  # that is what is wrong with it
    return engine


def _left_at_close(leave: Callable[[], object]) -> Engine:
    """Return an engine whose backend leaves something behind each time it is closed."""
    engine = build_engine()
    clean = engine.open(REFERENCE).backend
    close = clean.close

    def leaving() -> None:
        _LEFT.append(leave())
        close()

    clean.close = leaving  # type: ignore[method-assign]  # that is what is wrong with it
    return engine


_LEFT: Final[list[object]] = []


def loses_memory_at_close() -> Engine:
    """Return an engine whose backend loses a mebibyte each time it is closed."""
    return _left_at_close(lambda: np.ones(1 << 17))


def leaves_a_child_at_close() -> Engine:
    """Return an engine whose backend leaves a process behind each time it is closed."""
    command = [sys.executable, "-P", "-c", "import time; time.sleep(20)"]
    nothing = subprocess.DEVNULL
    return _left_at_close(
        lambda: subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)  # our own
    )


def claims_and_refuses() -> Engine:
    """Return an engine that registers Square without dtypes, and declines all."""
    return _replaced(kernel_entry(specs.SQUARE, _declines, prepares=True))


def claims_a_dtype_and_refuses() -> Engine:
    """Return an engine that registers Square for two dtypes, and takes one of them."""

    def square(x: Any) -> Any:
        if x.dtype is dt.float32:
            raise KernelRefusedError("not today")
        return lambda x: np.asarray(x * x)

    dtypes = (dt.int32, dt.float32)
    return _replaced(kernel_entry(specs.SQUARE, square, prepares=True, dtypes=dtypes))


def claims_what_only_raises() -> Engine:
    """Return an engine whose Reverse declines all types: only calls that must raise pass."""
    return _replaced(kernel_entry(specs.REVERSE, _declines, prepares=True))


def registers_more() -> Engine:
    """Return an engine whose Square works in every dtype, and is claimed for int32 alone."""
    return _replaced(
        kernel_entry(specs.SQUARE, lambda x: np.asarray(x * x), dtypes=(dt.int32,)), alone=True
    )


class _TiresInChildren(Delegate):
    """Brings zeros from the fourth transfer on, in a forked child."""

    def __init__(self, clean: Any) -> None:
        super().__init__(clean)
        self.born = os.getpid()
        self.transfers = 0

    def from_host(self, array: Any) -> Any:
        self.transfers += os.getpid() != self.born
        return self.clean.from_host(array if self.transfers < 4 else np.zeros_like(array))


class _PrintsLater(Delegate):
    """Writes to the standard output at the hundredth transfer, past Python's own stream."""

    transfers = 0

    def from_host(self, array: Any) -> Any:
        self.transfers += 1
        if self.transfers == 100:
            os.write(1, b"hello from below\n")
        return self.clean.from_host(array)


class _DiesAtTheEnd(Delegate):
    """Aborts when the process ends, if it has transferred much at once."""

    def from_host(self, array: Any) -> Any:
        if array.nbytes >= 1 << 16:
            atexit.register(os.abort)
        return self.clean.from_host(array)


class _CannotHold(Delegate):
    """Declares float64, and refuses it."""

    def from_host(self, array: Any) -> Any:
        if array.dtype == "float64":
            raise TypeError("this device has no float64")
        return self.clean.from_host(array)


class _HoldsLess(Delegate):
    """Declares float64, holds float32, and describes that as float64."""

    def from_host(self, array: Any) -> Any:
        narrow = array.astype("float32") if array.dtype == "float64" else array
        return self.clean.from_host(narrow)


class _DeclaresLess(Delegate):
    """Has float64 kernels, and does not declare that dtype."""

    @property
    def dtypes(self) -> frozenset[dt.DType]:
        return frozenset(self.clean.dtypes) - {dt.float64}


class _Keeps(Delegate):
    """Keeps every buffer that it has made."""

    def __init__(self, clean: Any) -> None:
        super().__init__(clean)
        self.kept: list[Any] = []

    def from_host(self, array: Any) -> Any:
        self.kept.append(self.clean.from_host(array))
        return self.kept[-1]


def _lying(make: Callable[[Any], Any]) -> Engine:
    return engine_with(WrongBackend("lies", make, 1, ""))


def cannot_hold() -> Engine:
    """Return an engine whose backend declares a dtype that it cannot hold."""
    return _lying(_CannotHold)


def holds_less() -> Engine:
    """Return an engine whose backend describes its buffers as wider than they are."""
    return _lying(_HoldsLess)


def declares_less() -> Engine:
    """Return an engine whose backend has kernels for a dtype that it does not declare."""
    return _lying(_DeclaresLess)


def tires_in_children() -> Engine:
    """Return an engine whose backend is wrong in a forked child, but for the first transfers."""
    return _lying(_TiresInChildren)


def dies_at_the_end() -> Engine:
    """Return an engine whose backend, used with large memory, ends the process with a signal."""
    return _lying(_DiesAtTheEnd)


def prints_later() -> Engine:
    """Return an engine whose backend prints after a while."""
    return _lying(_PrintsLater)


def keeps_everything() -> Engine:
    """Return an engine whose backend releases no memory."""
    return _lying(_Keeps)


def does_not_open() -> Engine:
    """Return an engine whose backend finds no device."""

    def make(clean: Any) -> NoReturn:
        del clean
        raise OSError("no such device")

    return _lying(make)


def answers_from_the_host() -> Engine:
    """Return an engine whose kernels fetch their inputs and compute on the host."""

    def add(a: Any, b: Any, *, backend: Any) -> Any:
        return backend.from_host(backend.to_host(a) + backend.to_host(b))

    def total(x: Any, *, axis: Any, keep_dims: bool, backend: Any) -> Any:
        array = backend.to_host(x)
        return backend.from_host(np.asarray(array.sum(axis=axis, keepdims=keep_dims)))

    return _replaced(
        kernel_entry(specs.ADD, add), kernel_entry(specs.SUM, total), engine=_lying(Remote)
    )


def leaves_it_to_others() -> Engine:
    """Return an engine whose backend has no kernels, so that calls fall back to another one."""
    engine = build_engine()
    engine.open(REFERENCE)
    for name, owner in list(engine.registry.state.kernels):
        if owner == REFERENCE:
            engine.registry.remove_kernel(name, owner)
    return engine
