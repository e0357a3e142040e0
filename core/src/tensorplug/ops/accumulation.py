"""Multiply-add in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_constant, dispatch

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["multiply_add"]


def _infer_multiply_add(x: TensorType, y: TensorType, z: TensorType) -> TensorType:
    return TensorType(x.dtype, shapes.broadcast(x.shape, y.shape, z.shape))


MULTIPLY_ADD = KernelSpec(
    "MultiplyAdd",
    ("x", "y", "z"),
    _infer_multiply_add,
    accepts=dt.NUMERIC,
    promote=("x", "y", "z"),
    elementwise=True,
)


def multiply_add(x: ArrayLike, y: ArrayLike, z: ArrayLike, /) -> Tensor:
    """Return ``x * y + z`` elementwise, with broadcasting, in one pass if the device can.

    ``multiply_add(gradient, -rate, weights)`` is a step of gradient descent. The device
    decides whether the product is rounded before the sum. Differentiable in all three operands.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: only booleans, or strings, or dtypes that do not promote.

    Source: C's fma, but the product may be rounded.

    Examples:
        >>> tp.multiply_add([1.0, 2.0], [3.0, 4.0], 10.0)
        Tensor([13., 18.], dtype=float32, device='cpu')
        >>> weights, gradient = tp.asarray([1.0, 2.0]), tp.asarray([4.0, -4.0])
        >>> tp.multiply_add(gradient, -0.25, weights)
        Tensor([0., 3.], dtype=float32, device='cpu')

    """
    return dispatch(MULTIPLY_ADD, x, as_constant(MULTIPLY_ADD, 1, y, x), z)
