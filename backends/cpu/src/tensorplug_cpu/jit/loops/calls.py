"""Calls of native functions: the addresses of arrays, and threads that share the work."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_cpu.execution.parallel import in_parts, together
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.memory.pool import LARGE, empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_cpu.arrays import Array

__all__ = ["address", "dense", "is_large", "is_worth", "launch"]

_SHARED: Final = 1 << 20  # multiplications, or elements moved, from which threads share the work
_PER_ELEMENT: Final = 8  # multiplications that are as much work as one element of a long loop


def is_worth(products: int) -> bool:
    """Return whether a loop over so many multiplications is to be a native one."""
    return products > 0 and is_worthwhile(max(1, products // _PER_ELEMENT))


def is_large(cost: int) -> bool:
    """Return whether threads share so many multiplications, or elements moved."""
    return cost >= _SHARED


def dense(array: Array) -> Array:
    """Return ``array`` in row-major order, with elements where the processor wants them."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    if array.nbytes < LARGE:
        return np.require(array, requirements=["C", "ALIGNED"])
    result = empty(array.shape, array.dtype)  # new memory would cost page faults
    if not is_large(array.size):
        np.copyto(result, array)
        return result
    axis = next((axis for axis, length in enumerate(array.shape) if length > 1), 0)
    to, source = (np.moveaxis(one, axis, 0) for one in (result, array))
    in_parts(lambda start, stop: np.copyto(to[start:stop], source[start:stop]), len(to))
    return result


def launch(
    function: Callable[..., None],
    pointers: Sequence[int],
    integers: Sequence[int],
    *,
    shared: bool,
) -> None:
    """Call a native function; ``shared``: in several threads, which share what there is to do.

    Its last pointer is a counter (``loops.Function.taken``), which is added here.
    """
    counter = ctypes.c_int64()
    counter_address = ctypes.addressof(counter)
    if shared:
        together(lambda: function(*pointers, counter_address, *integers))
    else:
        function(*pointers, counter_address, *integers)
