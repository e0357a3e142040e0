"""Activation functions, as expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.tables import KernelTable
from tensorplug.ops.nn import activation as ops
from tensorplug_opencl.kernels import pointwise
from tensorplug_opencl.kernels.pointwise import Formula

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.contract import dtypes as dt
    from tensorplug.contract.spec import KernelSpec, TensorType
    from tensorplug_opencl.backend import OpenCLBackend

kernels = KernelTable()

_SELU_BELOW: Final = ops.SELU_SCALE * ops.SELU_ALPHA

EXPRESSIONS: Final[dict[KernelSpec, Formula]] = {
    ops.RELU: Formula("x > 0 || x != x ? x : 0", unsigned="x"),
    ops.RELU6: Formula("x > 6 ? 6 : x > 0 || x != x ? x : 0"),
    ops.SIGMOID: Formula("logistic(x)"),
    ops.ELU: Formula("scaled_elu(x, 1, 1)"),
    ops.SELU: Formula(f"scaled_elu(x, (A){ops.SELU_SCALE!r}, (A){_SELU_BELOW!r})"),
    ops.SOFTPLUS: Formula("(x > 0 ? x : 0) + a_log1p(a_exp(-a_fabs(x)))"),
}
pointwise.register(kernels, EXPRESSIONS)


@kernels.prepare(ops.ELU_GRAD)
def elu_grad(
    dy: TensorType, y: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply by ``y + 1``, the power itself, where ``y`` is below 0."""
    formula, title = Formula("y >= 0 ? dy : dy * (y + 1)"), f"EluGrad {y.dtype}"
    return pointwise.of_formula(backend.runtime, title, formula, {"dy": dy, "y": y}, out)


_LEAKY: Final = Formula("x < 0 ? x * alpha : x")


@kernels.prepare(ops.LEAKY_RELU)
def leaky_relu(
    x: TensorType, *, alpha: dt.Scalar, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply what is below 0."""
    slope = pointwise.constant("alpha", alpha, x.dtype)
    return pointwise.of_formula(
        backend.runtime, f"LeakyRelu {x.dtype}", _LEAKY, {"x": x}, out, [slope]
    )


@kernels.prepare(ops.PRELU)
def prelu(
    x: TensorType, alpha: TensorType, *, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Multiply what is below 0."""
    types = {"x": x, "alpha": alpha}
    return pointwise.of_formula(backend.runtime, f"Prelu {x.dtype}", _LEAKY, types, out)


@kernels.prepare(ops.STEP)
def step(
    x: TensorType, *, alpha: dt.Scalar, backend: OpenCLBackend, out: TensorType
) -> Callable[..., Any]:
    """Choose between two levels; NaN stays."""
    level = pointwise.constant("alpha", alpha, x.dtype)
    formula, title = Formula("x != x ? x : x > 0 ? 1 : alpha"), f"Step {x.dtype}"
    return pointwise.of_formula(backend.runtime, title, formula, {"x": x}, out, [level])
