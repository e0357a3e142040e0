"""Exponentials, logarithms, reciprocals and roots: a C expression per kernel."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelSpec, KernelTable, specs
from tensorplug_opencl.kernels import formula_tables
from tensorplug_opencl.kernels.pointwise import Formula

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    specs.EXPM1: Formula("a_expm1(x)"),
    specs.LOG1P: Formula("a_log1p(x)"),
    specs.LOG2: Formula("a_log2(x)"),
    specs.LOG10: Formula("a_log10(x)"),
    specs.RECIPROCAL: Formula("1 / x"),
    specs.RSQRT: Formula("a_rsqrt(x)"),
    specs.HYPOT: Formula("a_hypot(a, b)"),
    specs.LOG_ADD_EXP: Formula("a_log_add_exp(a, b)"),
}
formula_tables.register(kernels, EXPRESSIONS)
