"""Groups of calls: by LLVM if it is installed, else by NumPy if they are large enough.

Which of them computes a group depends on its types and sizes, so equal programs give equal bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tensorplug_cpu import blocks
from tensorplug_cpu.jit.codegen import settings
from tensorplug_cpu.jit.groups import kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import Group
    from tensorplug_cpu.arrays import Array


_LEAST: Final = 1 << 14  # elements from which blocks save more than they cost


def least_elements() -> int:
    """Return the number of elements from which some groups are accepted."""
    return min(_LEAST, settings.least_elements() or _LEAST)


def compile_group(group: Group) -> Callable[..., list[Array]] | None:
    """Return a function that computes a group; None to decline it."""
    run = kernels.compile_group(group)
    if run is None and math.prod(group.shape) >= _LEAST:
        run = blocks.compile_group(group)
    return run
