"""Kernels that can be fused, and what they do to one block of elements.

A compiled program takes a block of elements through several kernels while it is in the cache. An
elementwise kernel carries a *body*: a ufunc, or a function that fills its first argument. The
body may be called with blocks of the result and of the inputs, of any rank; the inputs broadcast
to the result and share no memory with it. A reduction of all elements carries an *epilogue*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_cpu.arrays import Array, Call

__all__ = ["Epilogue", "body_of", "epilogue_of", "mark_elementwise", "mark_reduction"]


class Epilogue(NamedTuple):
    """How a kernel reduces all elements to one number.

    ``block`` reduces a block, which is a vector, to a number; ``finish`` reduces the vector of
    these numbers, in float64, to the result.
    """

    block: Callable[[Array], Any]
    finish: Callable[[Array], Array]


def mark_elementwise(call: Call, body: np.ufunc | Callable[..., None]) -> Call:
    """Note on a kernel's ``call`` that it is elementwise, with this body; return it."""
    call.__tensorplug_body__ = body  # type: ignore[attr-defined]  # functions take attributes
    return call


def body_of(call: Call) -> Any:
    """Return the body of a kernel: a ufunc, a function of result and inputs, or None."""
    if isinstance(call, np.ufunc):
        return call
    return getattr(call, "__tensorplug_body__", None)


def mark_reduction(call: Call, epilogue: Epilogue) -> Call:
    """Note on a kernel's ``call`` how it reduces block by block; return it."""
    call.__tensorplug_epilogue__ = epilogue  # type: ignore[attr-defined]  # functions take attributes
    return call


def epilogue_of(call: Call) -> Epilogue | None:
    """Return how a kernel reduces all elements block by block; None if it does not."""
    found: Epilogue | None = getattr(call, "__tensorplug_epilogue__", None)
    return found
