"""Groups of calls: by LLVM if it is installed, else by NumPy if they are large enough.

Which of them computes a group depends on its types and sizes, so equal programs give equal bits.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import lift_constants
from tensorplug_cpu import blocks
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.groups import kernels as compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Expression, Group
    from tensorplug_cpu.arrays import Array


_LEAST: Final = 1 << 14  # elements from which blocks save more than they cost
_LIFTED: Final = 8  # constants of a group; the coefficients of a series are more
_COMMON: Final = frozenset({-2, -1, -0.5, 0, 0.5, 1, 2})  # what LLVM makes use of
_WIDE: Final = frozenset({dt.float32, dt.float64})


def least_elements() -> int:
    """Return the number of elements from which some groups are accepted."""
    return min(_LEAST, settings.least_elements() or _LEAST)


def compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group; None to decline it."""
    run = _compile(group)
    if run is None and prod(group.shape) >= _LEAST:
        run = blocks.compile_group(group)
    return run


def _compile(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that LLVM has compiled, if it can; the same one for all constants."""
    lifted, constants = lift_constants(group, _choose)
    run = compiled.compile_group(lifted)
    if run is None or not constants:
        return run
    with np.errstate(over="ignore"):
        numbers = [np.array(node.value).astype(node.dtype.numpy) for node in constants]
    return lambda *buffers: run(*buffers, *numbers)


def _choose(nodes: Sequence[Expression]) -> list[Expression]:
    """Return the constants that LLVM's code reads from memory: a few that say little to LLVM.

    It turns divisions by a constant into products where that is exact.
    """
    divisors = {id(node.operands[-1]) for node in nodes if node.op in ("divide", "remainder")}
    chosen = [
        node
        for node in nodes
        if node.op == "constant"
        and node.dtype in _WIDE
        and node.value not in _COMMON
        and id(node) not in divisors
    ]
    return chosen if len(chosen) <= _LIFTED else []
