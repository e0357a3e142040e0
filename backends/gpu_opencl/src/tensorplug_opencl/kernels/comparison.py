"""Comparison and logic: the specs' expressions, and formulas in C."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelSpec, KernelTable, specs
from tensorplug_opencl.kernels import formula_tables
from tensorplug_opencl.kernels.pointwise import Formula

kernels = KernelTable()

EXPRESSIONS: Final = (
    specs.EQUAL,
    specs.LESS,
    specs.LESS_EQUAL,
    specs.GREATER,
    specs.GREATER_EQUAL,
    specs.LOGICAL_AND,
    specs.LOGICAL_OR,
    specs.LOGICAL_NOT,
)
formula_tables.register_expressions(kernels, EXPRESSIONS)

FORMULAS: Final[dict[KernelSpec, Formula]] = {
    specs.NOT_EQUAL: Formula("a != b"),
    specs.LOGICAL_XOR: Formula("a ^ b"),
    # The difference is NaN for infinities and NaN, and 0 for all else.
    specs.IS_FINITE: Formula("x - x == 0"),
    specs.IS_INF: Formula("x == x && x - x != 0"),
    specs.IS_NAN: Formula("x != x"),
}
formula_tables.register(kernels, FORMULAS)
