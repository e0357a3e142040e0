"""Bits of integers and booleans: the specs' expressions."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelTable, specs
from tensorplug_opencl.kernels import formula_tables

kernels = KernelTable()

EXPRESSIONS: Final = (
    specs.BITWISE_AND,
    specs.BITWISE_OR,
    specs.BITWISE_XOR,
    specs.INVERT,
    specs.LEFT_SHIFT,
    specs.RIGHT_SHIFT,
)
formula_tables.register_expressions(kernels, EXPRESSIONS)
