"""Kernels that can be done part by part, and what they do to a part.

A compiled program takes a block of elements through several kernels while it is in the cache. A
kernel tells by its *work* that it is elementwise: a ufunc, or a function that writes all of its
first argument. It may be given parts of the result and of the inputs, of any rank; the inputs
broadcast to the result, and none shares memory with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Call

__all__ = ["elementwise", "work_of"]


def elementwise(call: Call, work: np.ufunc | Callable[..., None]) -> Call:
    """Return a kernel's ``call``, having noted its work on it."""
    call.__tensorplug_work__ = work  # type: ignore[attr-defined]  # functions take attributes
    return call


def work_of(call: Call) -> Any:
    """Return the work of a kernel: a ufunc, a function of result and inputs, or None."""
    if isinstance(call, np.ufunc):
        return call
    return getattr(call, "__tensorplug_work__", None)
