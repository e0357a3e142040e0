"""Exponentials, logarithms, reciprocals and roots: a C expression per kernel."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelSpec, KernelTable, specs
from tensorplug_opencl.kernels import formula_tables
from tensorplug_opencl.kernels.pointwise import Formula

kernels = KernelTable()

EXPRESSIONS: Final = (
    specs.EXPM1,
    specs.LOG1P,
    specs.LOG2,
    specs.LOG10,
)
formula_tables.register_expressions(kernels, EXPRESSIONS)

FORMULAS: Final[dict[KernelSpec, Formula]] = {
    specs.RECIPROCAL: Formula("1 / x"),
    specs.RSQRT: Formula("a_rsqrt(x)"),
    specs.HYPOT: Formula("a_hypot(a, b)"),
    specs.LOG_ADD_EXP: Formula("a_log_add_exp(a, b)"),
}
formula_tables.register(kernels, FORMULAS)
