"""Multiply-add in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_constant, dispatch

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["multiply_add"]


def _infer_multiply_add(x: TensorType, y: TensorType, z: TensorType) -> TensorType:
    return TensorType(x.dtype, shapes.broadcast(x.shape, y.shape, z.shape))


MULTIPLY_ADD = KernelSpec(
    "MultiplyAdd",
    ("x", "y", "z"),
    _infer_multiply_add,
    accepts=dt.NUMERIC,
    promote=("x", "y", "z"),
)


def multiply_add(x: Any, y: Any, z: Any, /) -> Tensor:
    """Return ``x * y + z`` elementwise, with broadcasting, in one pass if the device can.

    ``multiply_add(gradient, -rate, weights)`` is a step of gradient descent. The device
    decides whether the product is rounded before the sum. Differentiable in all three operands.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: the dtypes do not promote.

    """
    return dispatch(MULTIPLY_ADD, x, as_constant(MULTIPLY_ADD, 1, y, x), z)
