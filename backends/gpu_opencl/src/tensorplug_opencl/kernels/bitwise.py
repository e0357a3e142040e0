"""Bits of integers and booleans: a C expression per kernel.

A boolean is a byte that is 0 or 1. Shifts by more bits than there are, and by negative numbers,
are undefined in C; here they push all bits out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import KernelTable
from tensorplug.ops import bitwise as ops
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    ops.BITWISE_AND: Formula("a & b"),
    ops.BITWISE_OR: Formula("a | b"),
    ops.BITWISE_XOR: Formula("a ^ b"),
    ops.INVERT: Formula("~x", boolean="!x"),
    ops.LEFT_SHIFT: Formula("b < 8 * sizeof(R) ? a << b : 0", ring=True),
    ops.RIGHT_SHIFT: Formula(
        "b < 8 * sizeof(A) ? a >> b : 0",
        signed="(R)b < 8 * sizeof(A) ? a >> b : a < 0 ? -1 : 0",
    ),
}
pointwise.register(kernels, EXPRESSIONS)
