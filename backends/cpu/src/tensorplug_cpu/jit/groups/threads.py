"""Runs kernels in several threads that take items from one counter, and short ones in one."""

from __future__ import annotations

import ctypes
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from tensorplug.plugin import BuildNotice
from tensorplug_cpu.jit.codegen.compiler import compile_function
from tensorplug_cpu.jit.groups.team import AWAKE, patience, team
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


MOST_MODULES: Final = 512  # of one form, whose code is kept
SHARED_WORK: Final = 1 << 17  # instructions from which threads of the team help
_GRAIN_WORK: Final = 1 << 19  # of the items that a thread takes at once


class Module:
    """A module whose function takes all lengths as arguments, compiled when it is used.

    Args:
        text: the module.
        slots: the names of its arguments (``frame.Frame``).

    """

    def __init__(self, text: str, slots: Sequence[Hashable]) -> None:
        self.text, self.slots = text, slots
        self.positions = [at for at, slot in enumerate(slots) if is_pointer(slot)]
        self.block = ctypes.c_int64 * len(slots)

    @cached_property
    def _by_addresses(self) -> Callable[..., None]:
        """The function of a block of arguments."""
        return compile_function(self.text, "run", [ctypes.c_void_p])

    @cached_property
    def _by_arrays(self) -> Callable[..., None]:
        """The function of arrays: ``addresses.write_prologue``."""
        types = [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(self.block)]
        types += [ctypes.py_object] * len(self.positions)
        return compile_function(self._with_prologue, PROLOGUE, types)

    @cached_property
    def _with_prologue(self) -> str:
        return self.text + write_prologue(self.slots)

    def function(self, *, of_arrays: bool) -> Callable[..., None]:
        """Return one of the two; say which text it is from (``tp.explain(source=True)``)."""
        BuildNotice.using(self._with_prologue if of_arrays else self.text)
        return self._by_arrays if of_arrays else self._by_addresses


def make_launch(module: Module, values: Mapping[Hashable, int], work: int) -> Callable[..., None]:
    """Return a function that runs a kernel on contiguous arrays: the inputs, then the outputs.

    Args:
        module: its code.
        values: the values of the arguments by name; ``("pointer", k)`` and the counter are left
            out.
        work: about how many instructions an item takes.

    """
    total = values["total"]
    whole = total * work if total > 1 else 0
    grain = max(1, min(_GRAIN_WORK // max(work, 1), -(-total // 16)))
    known = {"counter": 0, "grain": grain, **values}
    arguments = [known.get(slot, 0) for slot in module.slots]
    if not reads_arrays():
        return _Launch(module, arguments)  # an interpreter without a known layout of arrays
    function, block = module.function(of_arrays=True), module.block(*arguments)
    if whole < SHARED_WORK:
        return partial(function, None, 0, block)
    own, limit = team, patience(grain * work)
    own.begin()

    def share(*operands: Array) -> None:
        if own.record[AWAKE] < own.count:
            own.ask(whole)
        function(own.address, limit, block, *operands)

    return share


class _Launch:
    """A kernel with all arguments but the addresses, which are asked for one by one."""

    def __init__(self, module: Module, values: Sequence[int]) -> None:
        self._kernel, self._block = module.function(of_arrays=False), module.block
        self._values, self._positions = values, module.positions

    def __call__(self, *operands: Array) -> None:
        block = self._block(*self._values)
        for position, array in zip(self._positions, operands, strict=True):
            block[position] = address(array)
        self._kernel(block)
