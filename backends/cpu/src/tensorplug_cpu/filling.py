"""Kernels of several steps that fill one result: large ones in recycled memory and in threads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu import large
from tensorplug_cpu.parts import elementwise
from tensorplug_cpu.quiet import quietly
from tensorplug_cpu.recycling import maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call

__all__ = ["blank", "filling"]

_PIECE: Final = 1 << 16  # elements that stay in a cache from one pass to the next
_SHARED: Final = 1 << 19  # elements from which several threads fill a result


def blank(out: TensorType) -> Callable[[], Array]:
    """Return what makes an array of type ``out``, with arbitrary elements."""
    shape, dtype = out.shape, out.dtype.numpy
    return maker(shape, dtype) if large.is_large(out) else partial(np.empty, shape, dtype)


def filling(work: Callable[..., Any], out: TensorType, *, in_pieces: bool = False) -> Call:
    """Return what a plan calls for ``work(result, *inputs)``, which writes all of ``result``.

    The work is elementwise: it may be given parts of the result and of the inputs instead.
    ``in_pieces``: it makes several passes, and its inputs have the shape of the result, so that
    it is done on as much at a time as a cache holds.
    """
    make, part = blank(out), work
    if in_pieces and out.size > _PIECE:
        work = _in_pieces(work)
    shared = out.size >= _SHARED

    def call(*inputs: Array) -> Array:
        result = make()
        work(result, *inputs)
        return result

    def call_threads(*inputs: Array) -> Array:
        result = make()
        large.share_out(work, inputs, result)
        return result

    return elementwise(quietly(call_threads if shared else call), part)


def _in_pieces(work: Callable[..., Any]) -> Callable[..., None]:
    """Return the same work in pieces; arrays that do not lie in one row go at once."""

    def run(result: Array, *inputs: Array) -> None:
        arrays = (result, *inputs)
        if not all(array.flags.c_contiguous for array in arrays):
            work(*arrays)
            return
        flat = [array.reshape(-1) for array in arrays]
        for start in range(0, result.size, _PIECE):
            work(*[item[start : start + _PIECE] for item in flat])

    return run
