"""Max pooling that also returns where the largest elements are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract import attributes as kinds
from tensorplug.contract import dtypes as dt
from tensorplug.contract import windows as sliding
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.windows import axes_attribute
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.ops.default_integers import gives_indices
from tensorplug.ops.nn.convolution.pooling import _infer_pool, _read_operands

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.windows import Padding
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, PaddingLike, PerAxis


__all__ = ["max_pool_with_argmax"]


def _infer_max_pool_with_argmax(
    x: TensorType, *, filter_size: Shape, strides: Shape, pad: Padding
) -> tuple[TensorType, TensorType]:
    options = {"filter_size": filter_size, "strides": strides, "pad": pad}
    result = _infer_pool(x, attributes=options)
    return result, TensorType(dt.kernel_int, result.shape)


MAX_POOL_WITH_ARGMAX = KernelSpec(
    "MaxPoolWithArgmax",
    ("x",),
    _infer_max_pool_with_argmax,
    attributes={
        "filter_size": axes_attribute(2),
        "strides": axes_attribute(2),
        "pad": sliding.pad_attribute(2, _read_operands),
        "include_batch_in_index": kinds.flag(default=False),
    },
    outputs=("result", "indexes"),
    accepts=dt.REAL,
)


@gives_indices(1)
def max_pool_with_argmax(
    x: ArrayLike,
    filter_size: PerAxis,
    strides: PerAxis,
    pad: PaddingLike = "valid",
    *,
    include_batch_in_index: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return ``max_pool``, and the flat indices of the largest elements in ``x`` (int32).

    An index is ``(row * width + column) * channels + channel``, or with
    ``include_batch_in_index`` ``((image * height + row) * width + column) * channels + channel``.
    The first of equal elements counts. A window with nothing but padding gives -1.

    Args:
        x: [batch, height, width, channels].
        filter_size: size of the window, (height, width) or one int.
        strides: steps between positions, (height, width) or one int.
        pad: as for ``conv2d``.
        include_batch_in_index: see above.

    Raises:
        ShapeError: the rank is wrong, or the window does not fit.

    Source: TensorFlow.js's maxPoolWithArgmax.

    Examples:
        >>> x = tp.reshape(tp.asarray([[1.0, 2.0, 5.0], [4.0, 3.0, 6.0]]), (1, 2, 3, 1))
        >>> y, at = tp.nn.max_pool_with_argmax(x, 2, 1)
        >>> y[0, ..., 0]
        Tensor([[4., 6.]], dtype=float32, device='cpu')
        >>> at[0, ..., 0]
        Tensor([[3, 5]], dtype=int32, device='cpu')
        >>> tp.reshape(x, (-1,))[at[0, ..., 0]]
        Tensor([[4., 6.]], dtype=float32, device='cpu')

    """
    result, indexes = dispatch_multiple(
        MAX_POOL_WITH_ARGMAX,
        x,
        filter_size=filter_size,
        strides=strides,
        pad=pad,
        include_batch_in_index=include_batch_in_index,
    )
    return result, indexes
