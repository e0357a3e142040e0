"""Exponentials, logarithms, reciprocals and roots: a C expression per kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.contract.tables import KernelTable
from tensorplug.ops import powers as ops
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from tensorplug.contract.spec import KernelSpec

kernels = KernelTable()

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    ops.EXPM1: Formula("a_expm1(x)"),
    ops.LOG1P: Formula("a_log1p(x)"),
    ops.LOG2: Formula("a_log2(x)"),
    ops.LOG10: Formula("a_log10(x)"),
    ops.RECIPROCAL: Formula("1 / x"),
    ops.RSQRT: Formula("a_rsqrt(x)"),
    ops.HYPOT: Formula("a_hypot(a, b)"),
    ops.LOG_ADD_EXP: Formula("a_log_add_exp(a, b)"),
}
pointwise.register(kernels, EXPRESSIONS)
