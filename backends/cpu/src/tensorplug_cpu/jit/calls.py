"""Calls of native functions: the addresses of arrays, and threads that share the work."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.jit.settings import is_worthwhile
from tensorplug_cpu.parallel import in_parts, thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorplug_cpu.arrays import Array

__all__ = ["address", "dense", "each", "is_worth"]

_SHARED: Final = 1 << 20  # multiplications, or elements moved, from which threads share the work
_PER_ELEMENT: Final = 8  # multiplications that are as much work as one element of a long loop


def is_worth(products: int) -> bool:
    """Return whether a loop over so many multiplications is to be a native one."""
    return products > 0 and is_worthwhile(max(1, products // _PER_ELEMENT))


def address(array: Array) -> int:
    """Return where the memory of ``array`` begins."""
    return int(array.__array_interface__["data"][0])


def dense(array: Array) -> Array:
    """Return ``array`` in row-major order, with elements where the processor wants them."""
    return np.require(array, requirements=["C", "ALIGNED"])


def each(work: Callable[..., Any], items: Iterable[tuple[Any, ...]], cost: int) -> None:
    """Call ``work(*item)`` for each item, in several threads if the ``cost`` of all is large.

    A thread takes the next item as soon as it is free, so the calls must not depend on order.
    """
    waiting = deque(items)

    def run(_first: int, _last: int) -> None:
        while True:
            try:
                item = waiting.popleft()
            except IndexError:
                return
            work(*item)

    in_parts(run, min(thread_count(), len(waiting)), shared=cost >= _SHARED)
