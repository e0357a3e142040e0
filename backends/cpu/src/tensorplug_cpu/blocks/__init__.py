"""Groups of kernels over NumPy's ufuncs: one block of elements goes through all, then the next.

A block and its intermediate values stay in the cache, where one kernel after another would move
all elements to memory and back.
"""

from __future__ import annotations

from tensorplug_cpu.blocks.groups import LEAST, compile_group

__all__ = ["LEAST", "compile_group"]
