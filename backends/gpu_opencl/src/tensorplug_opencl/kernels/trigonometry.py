"""Trigonometric and hyperbolic functions: a C expression per kernel."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelSpec, KernelTable, specs
from tensorplug_opencl.kernels import formula_tables
from tensorplug_opencl.kernels.pointwise import Formula, SlowPath

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    specs.ACOS: Formula("a_acos(x)"),
    specs.ACOSH: Formula("a_acosh(x)"),
    specs.ASIN: Formula("a_asin(x)"),
    specs.ASINH: Formula("a_asinh(x)"),
    specs.ATANH: Formula("a_atanh(x)"),
    specs.COSH: Formula("a_cosh(x)"),
    specs.SINH: Formula("a_sinh(x)"),
    specs.TAN: Formula("a_tan(x)", slow_path=SlowPath("a_is_far(x)", "tan(x)")),
    specs.ATAN2: Formula("a_atan2(a, b)"),
}
formula_tables.register(kernels, EXPRESSIONS)
