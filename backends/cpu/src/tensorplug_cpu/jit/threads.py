"""Runs kernels in several threads that take items from one counter."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from tensorplug_cpu import parallel
from tensorplug_cpu.jit.compiler import compile_function

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from tensorplug_cpu.arrays import Array

__all__ = ["Launch"]

SHARED_WORK: Final = 1 << 20  # instructions from which other threads help
_GRAIN_WORK: Final = 1 << 19  # of the items that a thread takes at once


class Launch:
    """A kernel with all arguments but the addresses of its operands.

    Args:
        text: the module.
        slots: the names of its arguments (``frame.Frame``).
        values: the values of the arguments by name; ``("pointer", k)`` and the counter are left
            out.
        work: about how many instructions an item takes.

    """

    def __init__(
        self,
        text: str,
        slots: Sequence[Hashable],
        values: Mapping[Hashable, int],
        work: int,
    ) -> None:
        self._function: Callable[..., None] = compile_function(text, "run", [ctypes.c_void_p])
        total = values["total"]
        self._shared = total > 1 and total * work >= SHARED_WORK
        grain = max(1, min(_GRAIN_WORK // max(work, 1), -(-total // 16)))
        known = {"counter": 0, "grain": grain, **values}
        self._values = [known.get(slot, 0) for slot in slots]
        self._block = ctypes.c_int64 * len(slots)
        self._pointers = [
            slots.index(("pointer", k))
            for k in range(sum(1 for slot in slots if is_pointer(slot)))
        ]

    def __call__(self, operands: Sequence[Array]) -> None:
        """Run the kernel on contiguous arrays: the inputs, then the outputs."""
        block = self._block(*self._values)
        for place, array in zip(self._pointers, operands, strict=True):
            block[place] = array.__array_interface__["data"][0]
        if self._shared:
            function = self._function
            parallel.together(lambda: function(block))
        else:
            self._function(block)


def is_pointer(slot: Hashable) -> bool:
    """Return whether a slot is the address of an operand."""
    return isinstance(slot, tuple) and slot[0] == "pointer"
