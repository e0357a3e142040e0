"""Trigonometric and hyperbolic functions: a C expression per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.ops import trigonometry as ops
from tensorplug.tables import KernelTable
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from tensorplug.spec import KernelSpec

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    ops.ACOS: Formula("acos(x)"),
    ops.ACOSH: Formula("acosh(x)"),
    ops.ASIN: Formula("asin(x)"),
    ops.ASINH: Formula("asinh(x)"),
    ops.ATANH: Formula("atanh(x)"),
    ops.COSH: Formula("cosh(x)"),
    ops.SINH: Formula("sinh(x)"),
    ops.TAN: Formula("tan(x)"),
    ops.ATAN2: Formula("atan2(a, b)"),
}
pointwise.register(kernels, EXPRESSIONS)
