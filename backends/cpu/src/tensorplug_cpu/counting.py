"""How many arrays NumPy holds memory for, as ``tracemalloc`` sees it, and whose text."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.recycling import Lease

if TYPE_CHECKING:
    from tensorplug_cpu.arrays import Array

__all__ = ["live_arrays", "owns_memory", "stop", "text_bytes"]

_WITHIN: Final = 15  # bytes of text that fit into an element of an array of strings


class _Tracing:
    """Whether it was started here; then nobody else wants what it finds."""

    ours = False


def live_arrays() -> int:
    """Return how many arrays with memory of their own there are, since the first call.

    NumPy reports each piece of memory that it gives to an array and takes back, also those that
    it keeps for reuse and those of arrays without elements; what a view, a scalar or another
    library holds is none of them, nor is the text in an array of strings. Tracing starts with
    the first call, unless it is on already, and slows the whole process down to a third.
    Meanwhile no memory is recycled (``recycling``), so that what dies is seen to.
    """
    if not tracemalloc.is_tracing():
        tracemalloc.start()
        _Tracing.ours = True
    domain = np.lib.tracemalloc_domain
    # The tuples (domain, bytes, ...) themselves: as objects they take three times as long.
    traces: Any = tracemalloc.take_snapshot().traces
    return sum(trace[0] == domain for trace in traces._traces)


def stop() -> None:
    """Stop tracing, if ``live_arrays`` has started it."""
    if _Tracing.ours:
        _Tracing.ours = False
        tracemalloc.stop()


def owns_memory(array: Array) -> bool:
    """Return whether memory of NumPy's lies under ``array`` or under what it is a view of."""
    owner: Any = array
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    return isinstance(owner, Lease) or (isinstance(owner, np.ndarray) and owner.flags.owndata)


def text_bytes(array: Array) -> int:
    """Return how many bytes of UTF-8 an array of strings holds outside of its elements."""
    lengths = (len(text.encode()) for text in array.flat)
    return sum(length for length in lengths if length > _WITHIN)
