"""Activation functions of neural networks. They live in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import attributes, inference
from tensorplug import dtypes as dt
from tensorplug.dispatch import chained, dispatch, dispatch_unary
from tensorplug.spec import KernelSpec

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

__all__ = [
    "log_softmax",
    "relu",
    "sigmoid",
    "softmax",
]

RELU = KernelSpec("Relu", ("x",), inference.same, accepts=dt.REAL)
SIGMOID = KernelSpec(
    "Sigmoid", ("x",), inference.same, accepts=dt.NUMERIC, promote=("x",), inexact=True
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
def sigmoid(x: Any, /) -> Tensor:
    """Return ``1 / (1 + e**-x)`` elementwise, without overflow on either side."""
    return dispatch_unary(SIGMOID, x)


@chained
def softmax(x: Any, /, *, axis: int = -1) -> Tensor:
    """Return ``e**x / sum(e**x)`` along ``axis``, computed from ``x - max(x)``."""
    return dispatch(SOFTMAX, x, dim=axis)


@chained
def log_softmax(x: Any, /, *, axis: int = -1) -> Tensor:
    """Return the logarithm of ``softmax(x)`` along ``axis``, without taking a log of 0."""
    return dispatch(LOG_SOFTMAX, x, axis=axis)
