"""Runs kernels in several threads that take items from one counter, and short ones in one."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, Final

from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.compiler import compile_function
from tensorplug_cpu.jit.loops.addresses import (
    PROLOGUE,
    address,
    is_pointer,
    reads_arrays,
    write_prologue,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug_cpu.arrays import Array


SHARED_WORK: Final = 1 << 20  # instructions from which other threads help
_GRAIN_WORK: Final = 1 << 19  # of the items that a thread takes at once


def make_launch(
    text: str, slots: Sequence[Hashable], values: Mapping[Hashable, int], work: int
) -> Callable[..., None]:
    """Return a function that runs a kernel on contiguous arrays: the inputs, then the outputs.

    Args:
        text: the module.
        slots: the names of its arguments (``frame.Frame``).
        values: the values of the arguments by name; ``("pointer", k)`` and the counter are left
            out.
        work: about how many instructions an item takes.

    """
    total = values["total"]
    shared = total > 1 and total * work >= SHARED_WORK
    grain = max(1, min(_GRAIN_WORK // max(work, 1), -(-total // 16)))
    known = {"counter": 0, "grain": grain, **values}
    arguments = [known.get(slot, 0) for slot in slots]
    positions = [at for at, slot in enumerate(slots) if is_pointer(slot)]
    if shared or not reads_arrays():
        return _Launch(text, arguments, positions, shared=shared)
    block = (ctypes.c_int64 * len(arguments))(*arguments)
    types = [ctypes.POINTER(type(block)), *[ctypes.py_object] * len(positions)]
    return partial(compile_function(text + write_prologue(slots), PROLOGUE, types), block)


class _Launch:
    """A kernel with all arguments, by slot, but the addresses at ``positions``."""

    def __init__(
        self, text: str, values: Sequence[int], positions: Sequence[int], *, shared: bool
    ) -> None:
        self._function = compile_function(text, "run", [ctypes.c_void_p])
        self._values, self._positions, self._shared = values, positions, shared
        self._block = ctypes.c_int64 * len(values)

    def __call__(self, *operands: Array) -> None:
        block = self._block(*self._values)
        for position, array in zip(self._positions, operands, strict=True):
            block[position] = address(array)
        if self._shared:
            function = self._function
            parallel.together(lambda: function(block))
        else:
            self._function(block)
