"""Kernels of several steps that fill one result: large ones in recycled memory and in threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu import large, recycling
from tensorplug_cpu.quiet import quietly

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.spec import TensorType
    from tensorplug_cpu.arrays import Array, Call

__all__ = ["blank", "filling"]

_SHARED: Final = 1 << 19  # elements from which several threads fill a result


def blank(out: TensorType) -> Callable[[], Array]:
    """Return what makes an array of type ``out``, with arbitrary elements."""
    shape, dtype = out.shape, out.dtype.numpy
    make = recycling.empty if large.is_large(out) else np.empty
    return lambda: make(shape, dtype)


def filling(work: Callable[..., Any], out: TensorType) -> Call:
    """Return what a plan calls for ``work(result, *inputs)``, which writes all of ``result``.

    The work is elementwise: it may be given parts of the result and of the inputs instead.
    """
    make = blank(out)
    shared = out.size >= _SHARED

    def call(*inputs: Array) -> Array:
        result = make()
        if shared:
            large.share_out(work, inputs, result)
        else:
            work(result, *inputs)
        return result

    return quietly(call)
