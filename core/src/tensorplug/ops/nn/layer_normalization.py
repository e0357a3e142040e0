"""Normalization of each example by its own statistics. It lives in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.shapes import broadcast
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import chained, dispatch
from tensorplug.errors import ShapeError

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Axis

__all__ = ["layer_norm"]


def _infer_layer_norm(
    x: TensorType, scale: TensorType | None, offset: TensorType | None, *, epsilon: dt.Scalar
) -> TensorType:
    dt.check_number(epsilon, x.dtype)
    for name, parameter in (("scale", scale), ("offset", offset)):
        if parameter is not None and broadcast(x.shape, parameter.shape) != x.shape:
            raise ShapeError(f"{name} must broadcast to the shape of x")
    return x


def _infer_layer_norm_grad(dy: TensorType, x: TensorType, *, epsilon: dt.Scalar) -> TensorType:
    dt.check_number(epsilon, x.dtype)
    if dy.shape != x.shape:
        raise ShapeError("dy and x must have the same shape")
    return x


_ATTRIBUTES = {"axis": attributes.axes("x", -1), "epsilon": attributes.number(1e-5)}

LAYER_NORM = KernelSpec(
    "LayerNorm",
    ("x", "scale?", "offset?"),
    _infer_layer_norm,
    attributes=_ATTRIBUTES,
    accepts=dt.REAL,
    promote=("x", "scale", "offset"),
    inexact=True,
)
LAYER_NORM_GRAD = KernelSpec(  # of LayerNorm without scale and offset
    "LayerNormGrad",
    ("dy", "x"),
    _infer_layer_norm_grad,
    attributes=_ATTRIBUTES,
    accepts=dt.FLOATING,
    promote=("dy", "x"),
    symmetric=("dy", "x"),
    leading=("axis",),
)


@chained
def layer_norm(
    x: ArrayLike,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    axis: Axis | None = -1,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """Return ``(x - m) / sqrt(v + epsilon) * scale + offset``.

    m and v are the mean and variance of ``x`` along ``axis``, as in ``moments``.

    Args:
        x: of any rank, the features usually last.
        offset: broadcasts to the shape of x; None for 0.
        scale: likewise; None for 1.
        axis: the axes of one example: an int, several, or None for all.
        epsilon: keeps the square root above 0.

    x, offset and scale are differentiable. Integers become floats first.

    Raises:
        ShapeError: scale or offset does not broadcast to the shape of x.
        OutOfRangeError: an axis is out of range.

    Source: layer normalization (Ba, Kiros and Hinton, 2016).

    Examples:
        >>> tp.nn.layer_norm([[1.0, 3.0], [10.0, 14.0]], epsilon=0.0)
        Tensor([[-1.,  1.],
                [-1.,  1.]], dtype=float32, device='cpu')
        >>> tp.nn.layer_norm([[1.0, 3.0]], [10.0, 20.0], [1.0, 2.0], epsilon=0.0)
        Tensor([[ 9., 22.]], dtype=float32, device='cpu')

    """
    return dispatch(LAYER_NORM, x, scale, offset, axis=axis, epsilon=epsilon)
