"""Gradients of rounding, signs and bounds. Step functions have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import clipping
from tensorplug.ops.elementwise import rounding as ops
from tensorplug.ops.elementwise.arithmetic import div_no_nan
from tensorplug.ops.elementwise.choosing import where
from tensorplug.ops.elementwise.comparison import equal, logical_and
from tensorplug.ops.elementwise.complexes import imag

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import Scalar
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.stop(ops.CEIL, because="constant between jumps")
rules.stop(ops.ROUND, because="constant between jumps")
rules.stop(ops.TRUNC, because="constant between jumps")
rules.stop(ops.SIGN_BIT, because="gives truth values")
rules.stop(ops.COPY_SIGN, "b", because="constant between jumps")
rules.stop(ops.NEXT_AFTER, "b", because="constant between jumps")


@rules.vjp(ops.SIGN, "x", dtypes=dt.COMPLEX)  # for real numbers it is a step
def sign(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    # Only the phase counts. It changes by the component of dx orthogonal to x, over |x|.
    across = imag(dy * out) * 1j
    return div_no_nan(across, x)


# not the gradient rule: the sign of complex numbers is not holomorphic
rules.jvp(ops.SIGN)(
    lambda x_dot, x, out: imag(div_no_nan(x_dot, x)) * out * 1j if x.dtype in dt.COMPLEX else None
)


@rules.vjp(clipping.CLIP_BY_VALUE, "x")
def clip_by_value(dy: Tensor, x: Tensor, clip_value_min: Scalar, clip_value_max: Scalar) -> Tensor:
    return where(logical_and(x >= clip_value_min, x <= clip_value_max), dy, 0.0)


rules.formulas(
    ops.COPY_SIGN, a=lambda dy, a, b: where(equal(ops.signbit(a), ops.signbit(b)), dy, -dy)
)
rules.formulas(ops.NEXT_AFTER, a=lambda dy: dy)
