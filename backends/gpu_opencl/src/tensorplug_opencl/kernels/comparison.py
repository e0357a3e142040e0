"""Comparison and logic: the C operator per kernel; a boolean is a byte that is 0 or 1."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelSpec, KernelTable, specs
from tensorplug_opencl.kernels import formula_tables
from tensorplug_opencl.kernels.pointwise import Formula

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    specs.EQUAL: Formula("a == b"),
    specs.NOT_EQUAL: Formula("a != b"),
    specs.LESS: Formula("a < b"),
    specs.LESS_EQUAL: Formula("a <= b"),
    specs.GREATER: Formula("a > b"),
    specs.GREATER_EQUAL: Formula("a >= b"),
    specs.LOGICAL_AND: Formula("a & b"),
    specs.LOGICAL_OR: Formula("a | b"),
    specs.LOGICAL_XOR: Formula("a ^ b"),
    specs.LOGICAL_NOT: Formula("!x"),
    # The difference is NaN for infinities and NaN, and 0 for all else.
    specs.IS_FINITE: Formula("x - x == 0"),
    specs.IS_INF: Formula("x == x && x - x != 0"),
    specs.IS_NAN: Formula("x != x"),
}
formula_tables.register(kernels, EXPRESSIONS)
