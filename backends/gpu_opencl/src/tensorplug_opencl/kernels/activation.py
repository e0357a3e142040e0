"""Activation functions, as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import SELU_ALPHA, SELU_SCALE, KernelSpec, KernelTable, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.kernels import formula_tables, pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

_SELU_BELOW: Final = SELU_SCALE * SELU_ALPHA

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    specs.RELU: Formula("x > 0 || x != x ? x : 0", unsigned="x"),
    specs.RELU6: Formula("x > 6 ? 6 : x > 0 || x != x ? x : 0"),
    specs.SIGMOID: Formula("logistic(x)"),
    specs.ELU: Formula("scaled_elu(x, 1, 1)"),
    specs.SELU: Formula(f"scaled_elu(x, (A){SELU_SCALE!r}, (A){_SELU_BELOW!r})"),
    specs.SOFTPLUS: Formula("(x > 0 ? x : 0) + a_log1p(a_exp(-a_fabs(x)))"),
}
formula_tables.register(kernels, EXPRESSIONS)


_BELL: Final = """
INLINE A bell(A x) {
  const A small = a_exp(-a_fabs(x));
  return small / ((1 + small) * (1 + small));
}"""


@kernels.prepare(specs.SIGMOID_GRAD)
def sigmoid_grad(
    dy: TensorType, x: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by the slope of the sigmoid, which is the same on both sides of 0."""
    formula, title = Formula("dy * bell(x)"), f"SigmoidGrad {x.dtype}"
    return pointwise.prepare_formula(
        backend.runtime, title, formula, {"dy": dy, "x": x}, out, declarations=_BELL
    )


@kernels.prepare(specs.ELU_GRAD)
def elu_grad(
    dy: TensorType, y: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by ``y + 1``, which is exp(x), where ``y`` is negative."""
    formula, title = Formula("y >= 0 ? dy : dy * (y + 1)"), f"EluGrad {y.dtype}"
    return pointwise.prepare_formula(backend.runtime, title, formula, {"dy": dy, "y": y}, out)


_LEAKY: Final = Formula("x < 0 ? x * alpha : x")


@kernels.prepare(specs.LEAKY_RELU)
def leaky_relu(
    x: TensorType, *, alpha: dt.Scalar, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply negative elements by the slope."""
    slope = pointwise.make_constant("alpha", alpha, x.dtype)
    return pointwise.prepare_formula(
        backend.runtime, f"LeakyRelu {x.dtype}", _LEAKY, {"x": x}, out, [slope]
    )


@kernels.prepare(specs.PRELU)
def prelu(
    x: TensorType, alpha: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply negative elements by the slope."""
    types = {"x": x, "alpha": alpha}
    return pointwise.prepare_formula(backend.runtime, f"Prelu {x.dtype}", _LEAKY, types, out)


@kernels.prepare(specs.STEP)
def step(
    x: TensorType, *, alpha: dt.Scalar, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Choose between two levels; NaN stays."""
    level = pointwise.make_constant("alpha", alpha, x.dtype)
    formula, title = Formula("x != x ? x : x > 0 ? 1 : alpha"), f"Step {x.dtype}"
    return pointwise.prepare_formula(backend.runtime, title, formula, {"x": x}, out, [level])
