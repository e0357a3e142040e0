"""Trigonometric and hyperbolic functions: the specs' expressions."""

from __future__ import annotations

from typing import Final

from tensorplug.plugin import KernelTable, specs
from tensorplug_opencl.kernels import formula_tables

kernels = KernelTable()

EXPRESSIONS: Final = (
    specs.ACOS,
    specs.ACOSH,
    specs.ASIN,
    specs.ASINH,
    specs.ATANH,
    specs.COSH,
    specs.SINH,
    specs.TAN,
    specs.ATAN2,
)
formula_tables.register_expressions(kernels, EXPRESSIONS)
