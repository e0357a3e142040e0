"""Kernels that can be done part by part, and what they do to a part.

A compiled program takes a block of elements through several kernels while it is in the cache. A
kernel tells by its *work* that it is elementwise: a ufunc, or a function that writes all of its
first argument. It may be given parts of the result and of the inputs, of any rank; the inputs
broadcast to the result, and none shares memory with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

__all__ = ["Ending", "elementwise", "ending_of", "reducing", "work_of"]


class Ending(NamedTuple):
    """The work of a kernel that makes one number of all elements.

    ``block`` makes one of a block, which is a vector; ``finish`` makes the result of the vector
    of these, in float64.
    """

    block: Callable[[Array], Any]
    finish: Callable[[Array], Array]


def elementwise(call: Call, work: np.ufunc | Callable[..., None]) -> Call:
    """Return a kernel's ``call``, having noted its work on it."""
    call.__tensorplug_work__ = work  # type: ignore[attr-defined]  # functions take attributes
    return call


def work_of(call: Call) -> Any:
    """Return the work of a kernel: a ufunc, a function of result and inputs, or None."""
    if isinstance(call, np.ufunc):
        return call
    return getattr(call, "__tensorplug_work__", None)


def reducing(call: Call, ending: Ending) -> Call:
    """Return a kernel's ``call``, having noted on it how it reduces block by block."""
    call.__tensorplug_ending__ = ending  # type: ignore[attr-defined]  # functions take attributes
    return call


def ending_of(call: Call) -> Ending | None:
    """Return how a kernel reduces all elements block by block, None if it does not."""
    found: Ending | None = getattr(call, "__tensorplug_ending__", None)
    return found
