"""Activation functions of neural networks. They live in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, inference
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch, dispatch_unary

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "elu",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "softmax",
    "softplus",
    "step",
]

# From "Self-Normalizing Neural Networks" (Klambauer et al., 2017). They make mean 0 and variance 1
# a fixed point.
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946

RELU = KernelSpec("Relu", ("x",), inference.same, accepts=dt.REAL)
SIGMOID = KernelSpec(
    "Sigmoid", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",), inexact=True
)
RELU6 = KernelSpec("Relu6", ("x",), inference.same, accepts=dt.REAL)
ELU = KernelSpec("Elu", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True)
SELU = KernelSpec("Selu", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True)
SOFTPLUS = KernelSpec(
    "Softplus", ("x",), inference.same, accepts=dt.REAL, promote=("x",), inexact=True
)


SIGMOID_GRAD = KernelSpec(
    "SigmoidGrad",
    ("dy", "x"),
    inference.of_one_shape("dy", "x"),
    accepts=dt.FLOATING,
    promote=("dy", "x"),
)
ELU_GRAD = KernelSpec(
    "EluGrad",
    ("dy", "y"),
    inference.of_one_shape("dy", "y"),
    accepts=dt.FLOATING,
    promote=("dy", "y"),
)


def _infer_sloped(x: TensorType, *, alpha: dt.Scalar) -> TensorType:
    dt.check_number(alpha, x.dtype)
    return x


LEAKY_RELU = KernelSpec(
    "LeakyRelu",
    ("x",),
    _infer_sloped,
    attributes={"alpha": attributes.number(0.2)},
    accepts=dt.REAL,
    promote=("x",),
    inexact=True,
)
PRELU = KernelSpec(
    "Prelu",
    ("x", "alpha"),
    inference.broadcast,
    accepts=dt.REAL,
    promote=("x", "alpha"),
    inexact=True,
)
STEP = KernelSpec(
    "Step", ("x",), _infer_sloped, attributes={"alpha": attributes.number(0.0)}, accepts=dt.REAL
)
SOFTMAX = KernelSpec(
    "Softmax",
    ("logits",),
    inference.same,
    attributes={"dim": attributes.axis("logits", -1)},
    accepts=dt.REAL,
    promote=("logits",),
    inexact=True,
)
LOG_SOFTMAX = KernelSpec(
    "LogSoftmax",
    ("logits",),
    inference.same,
    attributes={"axis": attributes.axis("logits", -1)},
    accepts=dt.REAL,
    promote=("logits",),
    inexact=True,
)


@chained
def relu(x: Any, /) -> Tensor:
    """Return ``max(x, 0)`` elementwise; NaN stays NaN. Its gradient at 0 is 0."""
    return dispatch_unary(RELU, x)


@chained
def relu6(x: Any, /) -> Tensor:
    """Return ``min(max(x, 0), 6)`` elementwise; NaN stays NaN.

    Its gradient is that of ``x`` for 0 < x <= 6, else 0.
    """
    return dispatch_unary(RELU6, x)


@chained
def elu(x: Any, /) -> Tensor:
    """Return ``x`` where it is positive, else ``e**x - 1``; integers become floats first.

    Source: exponential linear units (Clevert et al., 2015) with alpha 1.
    """
    return dispatch_unary(ELU, x)


@chained
def selu(x: Any, /) -> Tensor:
    """Return ``SCALE * x`` where x is positive, else ``SCALE * ALPHA * (e**x - 1)``.

    SCALE is 1.0507..., ALPHA 1.6732...; integers become floats first.

    Source: self-normalizing neural networks (Klambauer et al., 2017).
    """
    return dispatch_unary(SELU, x)


@chained
def leaky_relu(x: Any, /, alpha: float = 0.2) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * x``; integers become floats first.

    Its gradient at 0 is ``alpha``.
    """
    return dispatch(LEAKY_RELU, x, alpha=alpha)


@chained
def prelu(x: Any, alpha: Any, /) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * x``, for a tensor ``alpha``.

    Both operands broadcast and have gradients; at x = 0 they are ``alpha`` for x and 0 for alpha.
    Integers become floats first.

    Source: parametric rectified linear units (He et al., 2015).
    """
    return dispatch(PRELU, x, alpha)


@chained
def softplus(x: Any, /) -> Tensor:
    """Return ``log(1 + e**x)`` elementwise, without overflow or loss of accuracy.

    Integers become floats first. Its gradient is ``sigmoid(x)``.
    """
    return dispatch_unary(SOFTPLUS, x)


@chained
def log_sigmoid(x: Any, /) -> Tensor:
    """Return the logarithm of ``sigmoid(x)`` elementwise: ``-softplus(-x)``."""
    return -softplus(-as_tensor(x, what="log_sigmoid: x"))


@chained
def step(x: Any, /, alpha: float = 0.0) -> Tensor:
    """Return 1 where ``x`` is positive, else ``alpha``, in the dtype of ``x``; NaN stays NaN.

    It stops gradients, because it is constant on both sides of 0.

    Raises:
        DTypeError: x has integers and alpha is a fraction.

    """
    return dispatch(STEP, x, alpha=alpha)


@chained
def sigmoid(x: Any, /) -> Tensor:
    """Return ``1 / (1 + e**-x)`` elementwise, without overflow."""
    return dispatch_unary(SIGMOID, x)


@chained
def softmax(x: Any, /, axis: int = -1) -> Tensor:
    """Return ``e**x / sum(e**x)`` along ``axis``, computed from ``x - max(x)``."""
    return dispatch(SOFTMAX, x, dim=axis)


@chained
def log_softmax(x: Any, /, axis: int = -1) -> Tensor:
    """Return the logarithm of ``softmax(x)`` along ``axis``, without computing log(0)."""
    return dispatch(LOG_SOFTMAX, x, axis=axis)
