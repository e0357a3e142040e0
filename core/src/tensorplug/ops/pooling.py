"""Pooling in two dimensions over NHWC tensors: TensorFlow's MaxPool family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorplug import dtypes as dt
from tensorplug.dispatch import chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.spec import KernelSpec, TensorType
from tensorplug.windows import (
    Window,
    pad_attribute,
    pair_attribute,
    rounding_attribute,
    windows,
)

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.tensor import Tensor
    from tensorplug.windows import Padding

__all__ = [
    "max_pool",
]

Pair = tuple[int, int]
Attributes = Mapping[str, Any]


def geometry(
    x: Shape, *, filter_size: Pair, strides: Pair, pad: Padding, dim_rounding_mode: str | None
) -> tuple[Window, Window]:
    """Return the two windows of a pooling over shape ``x`` (NHWC).

    Raises:
        ShapeError: when the rank is not 4.

    """
    if len(x) != 4:
        raise ShapeError(f"x must have rank 4, got {list(x)}")
    height, width = windows(
        (x[1], x[2]), filter_size, strides, (1, 1), pad, dim_rounding_mode, (1, 2)
    )
    return height, width


def _pooled(x: TensorType, *, attributes: Attributes) -> TensorType:
    height, width = geometry(x.shape, **attributes)
    return TensorType(x.dtype, (x.shape[0], height.out, width.out, x.shape[3]))


def _pooled_grad(
    dy: TensorType, input: TensorType, output: TensorType, *, attributes: Attributes
) -> TensorType:
    expected = _pooled(input, attributes=attributes)
    if dy != expected or output != expected:
        raise ShapeError(f"dy and output must be {expected}")
    return input


_OPTIONS = {
    "filter_size": pair_attribute(),
    "strides": pair_attribute(),
    "pad": pad_attribute(),
    "dim_rounding_mode": rounding_attribute(),
}

MAX_POOL = KernelSpec("MaxPool", ("x",), _pooled, attributes=_OPTIONS, accepts=dt.REAL)
MAX_POOL_GRAD = KernelSpec(
    "MaxPoolGrad",
    ("dy", "input", "output"),
    _pooled_grad,
    attributes=_OPTIONS,
    accepts=dt.FLOATING,
)


@chained
def max_pool(
    x: Any,
    filter_size: int | Pair,
    strides: int | Pair,
    pad: Any = "valid",
    *,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the largest element under each window; padding never wins, NaN always does.

    Args:
        x: [batch, height, width, channels].
        filter_size: of the window, (height, width) or one int.
        strides: steps between positions, (height, width) or one int.
        pad: as for ``conv2d``.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``.

    Its gradient goes to the first largest element of each window, in row-major order.

    Raises:
        ShapeError: x has not rank 4, or the window does not fit.

    """
    return dispatch(
        MAX_POOL,
        x,
        filter_size=filter_size,
        strides=strides,
        pad=pad,
        dim_rounding_mode=dim_rounding_mode,
    )
