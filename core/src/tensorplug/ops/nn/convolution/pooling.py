"""Pooling: the largest element or the average of each window, over two or three axes.

The kernels are TensorFlow's. Channels come last unless a data format says otherwise. Padding is
ignored: it is never the largest element, and averages do not count it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from tensorplug.contract import attributes as kinds
from tensorplug.contract import dtypes as dt
from tensorplug.contract import windows as sliding
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.windows import arranged, axes_attribute, channel_axis, spatial_axes
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import Attribute, InputTypes
    from tensorplug.contract.windows import Padding, Windows
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, PaddingLike, PerAxis, RoundingMode

__all__ = ["avg_pool", "avg_pool3d", "max_pool", "max_pool3d"]


Attributes = Mapping[str, Any]


def geometry(
    x: Shape,
    *,
    filter_size: Shape,
    strides: Shape,
    pad: Padding,
    dim_rounding_mode: str | None = "floor",
    data_format: str = "NHWC",
    dilations: Shape = (1, 1, 1),
) -> Windows:
    """Return the windows of a pooling over shape ``x``, one per spatial axis.

    ``filter_size``: the size of the window; ``strides``: how far it moves; ``pad``: as the
    attribute of the kernel; ``dim_rounding_mode``: how the number of windows is rounded;
    ``data_format``: ``"NHWC"`` or ``"NCHW"``; with depth ``"NDHWC"`` or ``"NCDHW"``;
    ``dilations``: the distance between taps.

    Raises:
        ShapeError: the rank is not that of the data format, or a window does not fit.

    """
    if len(x) != len(data_format):
        raise ShapeError(f"x must have rank {len(data_format)}, got {list(x)}")
    axes = spatial_axes(data_format)
    sizes = tuple(x[axis] for axis in axes)
    spread = dilations[: len(axes)]
    return sliding.windows(sizes, filter_size, strides, spread, pad, dim_rounding_mode, axes)


def _infer_pool(x: TensorType, *, attributes: Attributes) -> TensorType:
    windows = geometry(x.shape, **attributes)
    form = attributes.get("data_format", "NHWC")
    sizes = tuple(window.out for window in windows)
    return TensorType(x.dtype, arranged(x.shape[0], sizes, x.shape[channel_axis(form)], form))


def _infer_average_grad(
    dy: TensorType, input: TensorType, *, attributes: Attributes
) -> TensorType:
    expected = _infer_pool(input, attributes=attributes)
    if dy != expected:
        raise ShapeError(f"dy must be {expected}")
    return input


def _infer_largest_grad(
    dy: TensorType, input: TensorType, output: TensorType, *, attributes: Attributes
) -> TensorType:
    expected = _infer_pool(input, attributes=attributes)
    if dy != expected or output != expected:
        raise ShapeError(f"dy and output must be {expected}")
    return input


def _read_operands(known: InputTypes) -> tuple[Shape, Shape]:
    x: TensorType = known["x"] if "x" in known else known["input"]
    return x.sizes, known["filter_size"]


def _define_options(axes: int) -> dict[str, Attribute]:
    options = {
        "filter_size": axes_attribute(axes),
        "strides": axes_attribute(axes),
        "dim_rounding_mode": sliding.rounding_attribute(),
    }
    if axes == 3:
        options["data_format"] = kinds.choice("NDHWC", "NCDHW", default="NDHWC")
    return {**options, "pad": sliding.pad_attribute(axes, _read_operands)}


def _define_average(name: str, axes: int) -> KernelSpec:
    return KernelSpec(
        name,
        ("x",),
        _infer_pool,
        attributes=_define_options(axes),
        accepts=dt.REAL,
        promote=("x",),
        inexact=True,
        linear=("x",),
        fold=("x",),
    )


def _define_average_grad(name: str, axes: int) -> KernelSpec:
    return KernelSpec(
        name,
        ("dy", "input"),
        _infer_average_grad,
        attributes=_define_options(axes),
        accepts=dt.FLOATING,
        promote=("dy", "input"),
        linear=("dy",),
        fold=("dy", "input"),
    )


def _define_largest(name: str, axes: int) -> KernelSpec:
    return KernelSpec(
        name, ("x",), _infer_pool, attributes=_define_options(axes), accepts=dt.REAL, fold=("x",)
    )


def _define_largest_grad(name: str, axes: int) -> KernelSpec:
    return KernelSpec(
        name,
        ("dy", "input", "output"),
        _infer_largest_grad,
        attributes=_define_options(axes),
        accepts=dt.FLOATING,
        linear=("dy",),
        fold=("dy", "input", "output"),
    )


AVG_POOL = _define_average("AvgPool", 2)
AVG_POOL_GRAD = _define_average_grad("AvgPoolGrad", 2)
AVG_POOL_3D = _define_average("AvgPool3D", 3)
AVG_POOL_3D_GRAD = _define_average_grad("AvgPool3DGrad", 3)
MAX_POOL = _define_largest("MaxPool", 2)
MAX_POOL_GRAD = _define_largest_grad("MaxPoolGrad", 2)
MAX_POOL_3D = _define_largest("MaxPool3D", 3)
MAX_POOL_3D_GRAD = _define_largest_grad("MaxPool3DGrad", 3)


def over_batch(caller: str, spec: KernelSpec, x: Any, rank: int, **options: Any) -> Tensor:
    """Dispatch ``spec``, with a temporary batch axis if ``x`` has none."""
    tensor = as_tensor(x, what=f"{caller}: {spec.input_names[0]}")
    if tensor.ndim != rank - 1:
        return dispatch(spec, tensor, **options)
    result = dispatch(spec, reshape(tensor, (1, *tensor.shape)), **options)
    return reshape(result, result.shape[1:])


@chained
def max_pool(
    x: ArrayLike,
    filter_size: PerAxis,
    strides: PerAxis,
    pad: PaddingLike = "valid",
    *,
    dim_rounding_mode: RoundingMode | None = None,
) -> Tensor:
    """Return the largest element under each window. Padding is ignored; NaN counts as largest.

    Args:
        x: [batch, height, width, channels], or one image without batch.
        filter_size: size of the window, (height, width) or one int.
        strides: steps between positions, (height, width) or one int.
        pad: as for ``conv2d``.
        dim_rounding_mode: how a fractional number of positions is rounded for numeric ``pad``:
            "floor" (None too), "round" or "ceil".

    A window with nothing but padding gives the smallest number of the dtype, -inf for floats. The
    gradient flows to the first largest element of each window, in row-major order.

    Raises:
        ShapeError: the rank is wrong, or the window does not fit.

    Source: TensorFlow.js's maxPool.

    Examples:
        >>> x = tp.reshape(tp.asarray([[1.0, 2.0, 5.0], [4.0, 3.0, 6.0]]), (1, 2, 3, 1))
        >>> tp.nn.max_pool(x, 2, 1)[0, ..., 0]
        Tensor([[4., 6.]], dtype=float32, device='cpu')
        >>> tp.nn.max_pool(x, 2, 1, pad="same")[0, ..., 0]
        Tensor([[4., 6., 6.],
                [4., 6., 6.]], dtype=float32, device='cpu')

    """
    return over_batch(
        "max_pool",
        MAX_POOL,
        x,
        4,
        filter_size=filter_size,
        strides=strides,
        pad=pad,
        dim_rounding_mode=dim_rounding_mode,
    )


@chained
def avg_pool(
    x: ArrayLike,
    filter_size: PerAxis,
    strides: PerAxis,
    pad: PaddingLike = "valid",
    *,
    dim_rounding_mode: RoundingMode | None = None,
) -> Tensor:
    """Return the average of the elements under each window. Padding does not count.

    Arguments and errors are those of ``max_pool``. Integers become floats first. A window with
    nothing but padding gives NaN.

    ``x``: images, as for ``max_pool``; ``filter_size``: the height and width of the window;
    ``strides``: how far it moves; ``pad``: ``"valid"``, ``"same"`` or the padding;
    ``dim_rounding_mode``: how the number of windows is rounded.

    Source: TensorFlow.js's avgPool.

    Examples:
        >>> x = tp.reshape(tp.asarray([[1.0, 2.0, 5.0], [4.0, 3.0, 6.0]]), (1, 2, 3, 1))
        >>> tp.nn.avg_pool(x, 2, 1)[0, ..., 0]
        Tensor([[2.5, 4. ]], dtype=float32, device='cpu')
        >>> tp.nn.avg_pool(x, 2, 2, pad="same")[0, ..., 0]  # 5.5 is the mean of two
        Tensor([[2.5, 5.5]], dtype=float32, device='cpu')

    """
    return over_batch(
        "avg_pool",
        AVG_POOL,
        x,
        4,
        filter_size=filter_size,
        strides=strides,
        pad=pad,
        dim_rounding_mode=dim_rounding_mode,
    )


def max_pool3d(
    x: ArrayLike,
    filter_size: PerAxis,
    strides: PerAxis,
    pad: PaddingLike = "valid",
    *,
    dim_rounding_mode: RoundingMode | None = None,
    data_format: Literal["NDHWC", "NCDHW"] = "NDHWC",
) -> Tensor:
    """Return the largest element under each window that slides over depth, height and width.

    Args:
        x: [batch, depth, height, width, channels], or in the order of ``data_format``; the
            batch axis may be missing.
        filter_size: size of the window, (depth, height, width) or one int.
        strides: steps between positions, likewise.
        pad: as for ``conv3d``.
        dim_rounding_mode: as for ``max_pool``.
        data_format: "NDHWC" or "NCDHW".

    Otherwise it is like ``max_pool``.

    Raises:
        ShapeError: the rank is wrong, or the window does not fit.

    Source: TensorFlow.js's maxPool3d.

    Examples:
        >>> x = tp.reshape(tp.arange(8.0), (1, 2, 2, 2, 1))
        >>> tp.nn.max_pool3d(x, 2, 2)
        Tensor([[[[[7.]]]]], dtype=float32, device='cpu')
        >>> tp.nn.max_pool3d(x, (2, 1, 1), 1)[0, 0, ..., 0]
        Tensor([[4., 5.],
                [6., 7.]], dtype=float32, device='cpu')

    """
    return over_batch(
        "max_pool3d",
        MAX_POOL_3D,
        x,
        5,
        filter_size=filter_size,
        strides=strides,
        pad=pad,
        dim_rounding_mode=dim_rounding_mode,
        data_format=data_format,
    )


def avg_pool3d(
    x: ArrayLike,
    filter_size: PerAxis,
    strides: PerAxis,
    pad: PaddingLike = "valid",
    *,
    dim_rounding_mode: RoundingMode | None = None,
    data_format: Literal["NDHWC", "NCDHW"] = "NDHWC",
) -> Tensor:
    """Return the average under each window that slides over depth, height and width.

    Arguments and errors are those of ``max_pool3d``. Padding does not count. Integers become
    floats first.

    ``x``: volumes, as for ``max_pool3d``; ``filter_size``: the size of the window; ``strides``:
    how far it moves; ``pad``: ``"valid"``, ``"same"`` or the padding; ``dim_rounding_mode``: how
    the number of windows is rounded; ``data_format``: ``"NDHWC"`` or ``"NCDHW"``.

    Source: TensorFlow.js's avgPool3d.

    Examples:
        >>> x = tp.reshape(tp.arange(8.0), (1, 2, 2, 2, 1))
        >>> tp.nn.avg_pool3d(x, 2, 2)
        Tensor([[[[[3.5]]]]], dtype=float32, device='cpu')
        >>> tp.nn.avg_pool3d(x, (2, 1, 1), 1)[0, 0, ..., 0]
        Tensor([[2., 3.],
                [4., 5.]], dtype=float32, device='cpu')

    """
    return over_batch(
        "avg_pool3d",
        AVG_POOL_3D,
        x,
        5,
        filter_size=filter_size,
        strides=strides,
        pad=pad,
        dim_rounding_mode=dim_rounding_mode,
        data_format=data_format,
    )
