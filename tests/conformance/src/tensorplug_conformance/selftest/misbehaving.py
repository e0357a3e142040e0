"""A clean backend whose Neg kernel takes the whole process down, each in its own way."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from tensorplug import dtypes as dt
from tensorplug.errors import KernelRefusedError
from tensorplug.ops.elementwise import NEG
from tensorplug.plugins.assembly import build_engine
from tensorplug.registry import Owner
from tensorplug.tables import kernel_entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.engine import Engine
    from tensorplug.tables import KernelEntry

__all__ = ["REFERENCE", "dies", "exits", "hangs", "prints"]

REFERENCE = "cpu"


def _with_neg(neg: Callable[..., Any]) -> Engine:
    return _replaced(kernel_entry(NEG, neg))


def _replaced(entry: KernelEntry, *, alone: bool = False) -> Engine:
    engine = build_engine()
    engine.open(REFERENCE)
    if alone:
        engine.registry.remove_kernel(NEG.name, REFERENCE)
    engine.registry.add(Owner("misbehaving"), kernels=[(REFERENCE, entry)], override=True)
    return engine


def dies() -> Engine:
    """Return an engine in which Neg crashes the process, as a fault in native code does."""

    def neg(x: Any) -> NoReturn:
        del x
        os.abort()

    return _with_neg(neg)


def hangs() -> Engine:
    """Return an engine in which Neg never comes back."""

    def neg(x: Any) -> NoReturn:
        del x
        while True:
            time.sleep(1)

    return _with_neg(neg)


def exits() -> Engine:
    """Return an engine in which Neg leaves the process, and claims that all is well."""

    def neg(x: Any) -> NoReturn:
        del x
        os._exit(0)

    return _with_neg(neg)


def negates_nothing() -> Engine:
    """Return an engine in which Neg gives what it was given."""
    return _with_neg(lambda x: x)


def prints() -> Engine:
    """Return an engine that chats on stdout when it is built."""
    sys.stdout.write("hello from the driver\n")
    return build_engine()


def refuses() -> Engine:
    """Return an engine that registers Neg, and whose Neg takes no types whatever."""

    def neg(x: Any) -> NoReturn:
        del x
        raise KernelRefusedError("not today")

    return _replaced(kernel_entry(NEG, neg, prepares=True))


def registers_less() -> Engine:
    """Return an engine whose Neg is registered for int32 alone, though float32 is declared."""
    return _replaced(kernel_entry(NEG, lambda x: -x, dtypes=(dt.int32,)), alone=True)


def raises_at_close() -> Engine:
    """Return an engine whose backend cannot be closed."""
    engine = build_engine()
    clean = engine.open(REFERENCE).backend

    def close() -> NoReturn:
        raise OSError("the driver is gone")

    clean.close = close  # type: ignore[method-assign]  # that is what is wrong with it
    return engine
