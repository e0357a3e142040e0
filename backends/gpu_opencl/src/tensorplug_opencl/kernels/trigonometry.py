"""Trigonometric and hyperbolic functions: a C expression per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import KernelTable
from tensorplug.ops import trigonometry as ops
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula, Rare

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    ops.ACOS: Formula("a_acos(x)"),
    ops.ACOSH: Formula("a_acosh(x)"),
    ops.ASIN: Formula("a_asin(x)"),
    ops.ASINH: Formula("a_asinh(x)"),
    ops.ATANH: Formula("a_atanh(x)"),
    ops.COSH: Formula("a_cosh(x)"),
    ops.SINH: Formula("a_sinh(x)"),
    ops.TAN: Formula("a_tan(x)", rare=Rare("a_is_far(x)", "tan(x)")),
    ops.ATAN2: Formula("a_atan2(a, b)"),
}
pointwise.register(kernels, EXPRESSIONS)
