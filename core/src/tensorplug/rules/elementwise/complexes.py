"""Gradients of ops that make complex numbers or take their parts.

The cotangent of z = x + iy is dL/dx - i dL/dy. With it, rules of holomorphic functions read like
those of real ones: for a * b with respect to a, dy * b. For any function, holomorphic or not,
``real(sum(dy * df))`` equals ``real(sum(rule * dx))``. ``grad`` returns the conjugate
(docs/adr/0018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.ops.elementwise import complexes as ops
from tensorplug.ops.elementwise.arithmetic import div_no_nan
from tensorplug.ops.elementwise.casting import astype

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(
    ops.COMPLEX,
    # the parts of a float16 are float32
    real=lambda dy, real_type: astype(ops.real(dy), real_type.dtype, copy=False),
    imag=lambda dy, imag_type: astype(-ops.imag(dy), imag_type.dtype, copy=False),
)
rules.formulas(ops.REAL, input=lambda dy, input_type: astype(dy, input_type.dtype))


@rules.vjp(ops.IMAG, "input")
def imag(dy: Tensor, input_type: TensorType) -> Tensor:
    if input_type.dtype.kind != "complex":
        return dy * 0.0  # the imaginary part of a real number is always 0
    return ops.complex(0.0, -dy)


# 0 at 0, as for Abs
rules.formulas(ops.COMPLEX_ABS, x=lambda dy, x, out: dy * div_no_nan(ops.conj(x), out))
rules.formulas(ops.CONJ, x=lambda dy: ops.conj(dy))
