"""Counts of the arrays that NumPy holds memory for, taken with ``tracemalloc``."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.memory.pool import Lease

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array


_WITHIN: Final = 15  # bytes of text that fit into an element of an array of strings


class _Tracing:
    """Whether ``live_arrays`` started the tracing, so that ``stop`` may end it."""

    ours = False


def live_arrays() -> int:
    """Return how many arrays with memory of their own have been made since the first call.

    NumPy reports each piece of memory that an array gets and gives back, including those that
    NumPy keeps for reuse and those of empty arrays. Views, scalars, memory of other libraries and
    the text in an array of strings do not count. Tracing starts with the first call, unless it is
    on already, and makes the whole process three times as slow. No memory is recycled meanwhile
    (``memory.pool``), so that every array that dies is seen.
    """
    if not tracemalloc.is_tracing():
        tracemalloc.start()
        _Tracing.ours = True
    domain = np.lib.tracemalloc_domain
    # The tuples (domain, bytes, ...) themselves: as objects they take three times as long.
    traces: Any = tracemalloc.take_snapshot().traces
    return sum(trace[0] == domain for trace in traces._traces)


def stop() -> None:
    """Stop tracing if ``live_arrays`` started it."""
    if _Tracing.ours:
        _Tracing.ours = False
        tracemalloc.stop()


def owns_memory(array: Array) -> bool:
    """Return whether ``array``, or the array that it is a view of, lies in NumPy's own memory."""
    owner: Any = array
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    return isinstance(owner, Lease) or (isinstance(owner, np.ndarray) and owner.flags.owndata)


def text_bytes(array: Array) -> int:
    """Return the bytes of UTF-8 that an array of strings holds outside its elements."""
    lengths = (len(text.encode()) for text in array.flat)
    return sum(length for length in lengths if length > _WITHIN)
