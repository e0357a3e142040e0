"""Elementwise kernels of several steps, with large outputs in recycled memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call


_BLOCK: Final = 1 << 16  # elements that stay in a cache from one pass to the next
_SHARED: Final = 1 << 19  # elements from which several threads fill a result


def output_allocator(out: TensorType) -> Callable[[], Array]:
    """Return a function that allocates an array of type ``out``, with arbitrary elements."""
    shape, dtype = out.shape, out.dtype.numpy
    return allocator(shape, dtype) if parallel.is_large(out) else partial(np.empty, shape, dtype)


def elementwise_kernel(
    body: Callable[..., Any], out: TensorType, *, in_blocks: bool = False
) -> Call:
    """Return the callable of a plan for ``body(result, *inputs)``, which fills ``result``.

    The body is elementwise, so it may also be called with blocks of the result and the inputs.
    ``in_blocks``: it makes several passes over inputs of the result's shape, and is called with
    blocks that stay in the cache.
    """
    allocate = output_allocator(out)
    work = _in_blocks(body) if in_blocks and out.size > _BLOCK else body
    shared = out.size >= _SHARED

    def call(*inputs: Array) -> Array:
        result = allocate()
        work(result, *inputs)
        return result

    def call_threads(*inputs: Array) -> Array:
        result = allocate()
        parallel.share_out(work, inputs, result)
        return result

    return without_warnings(call_threads if shared else call)


def _in_blocks(body: Callable[..., Any]) -> Callable[..., None]:
    """Return a function that calls ``body`` block by block, or once if an array has gaps."""

    def run(result: Array, *inputs: Array) -> None:
        arrays = (result, *inputs)
        if not all(array.flags.c_contiguous for array in arrays):
            body(*arrays)
            return
        flat = [array.reshape(-1) for array in arrays]
        for start in range(0, result.size, _BLOCK):
            body(*[array[start : start + _BLOCK] for array in flat])

    return run
