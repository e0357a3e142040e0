"""Bits of integers and booleans: a C expression per kernel.

A boolean is a byte that is 0 or 1. Shifts by more bits than there are, and by negative numbers,
are undefined in C; here they shift all bits out.
"""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelSpec, KernelTable, specs
from tensorplug_opencl.kernels import formula_tables
from tensorplug_opencl.kernels.pointwise import Formula

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    specs.BITWISE_AND: Formula("a & b"),
    specs.BITWISE_OR: Formula("a | b"),
    specs.BITWISE_XOR: Formula("a ^ b"),
    specs.INVERT: Formula("~x", boolean="!x"),
    specs.LEFT_SHIFT: Formula("b < 8 * sizeof(R) ? a << b : 0", ring=True),
    specs.RIGHT_SHIFT: Formula(
        "b < 8 * sizeof(A) ? a >> b : 0",
        signed="(R)b < 8 * sizeof(A) ? a >> b : a < 0 ? -1 : 0",
    ),
}
formula_tables.register(kernels, EXPRESSIONS)
