"""Pooling over one to three axes, with dilated windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from tensorplug.contract import attributes as kinds
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract import windows as sliding
from tensorplug.contract.spec import REQUIRED, Attribute, KernelSpec, TensorType
from tensorplug.contract.windows import axes_attribute
from tensorplug.dispatch.calls import as_tensor, chained
from tensorplug.errors import ShapeError
from tensorplug.ops.nn.convolution.pooling import geometry, over_batch

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import InputTypes
    from tensorplug.contract.windows import Padding, Windows
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, PaddingLike, PerAxis, RoundingMode

__all__ = ["pool"]

Attributes = Mapping[str, Any]

_FORMATS = {3: "NWC", 4: "NHWC", 5: "NDHWC"}


def pool_geometry(
    input: Shape,
    *,
    window_shape: Shape,
    pad: Padding,
    dilations: Shape,
    strides: Shape,
    dim_rounding_mode: str | None = "floor",
    **_rest: object,
) -> Windows:
    """Return the windows of kernel Pool, which has one to three spatial axes.

    ``input``: the shape of the input; ``window_shape``: the size of the window; ``pad``: as the
    attribute of the kernel; ``dilations``: the distance between taps; ``strides``: how far the
    window moves; ``dim_rounding_mode``: how the number of windows is rounded.
    """
    return geometry(
        input,
        filter_size=window_shape,
        strides=strides,
        pad=pad,
        dim_rounding_mode=dim_rounding_mode,
        data_format=_FORMATS[len(input)],
        dilations=dilations,
    )


def _define_spatial(kind: Any, form: str, default: Any = REQUIRED) -> Attribute:
    """Return an attribute whose canonical form depends on the number of spatial axes."""

    def canonical(value: Any, known: InputTypes) -> Any:
        axes = known["input"].rank - 2
        if axes not in (1, 2, 3):
            raise ShapeError(
                "input must be [batch, one to three spatial axes, channels], got "
                f"{list(known['input'].shape)}"
            )
        attribute = kind(axes) if default is REQUIRED else kind(axes, default)
        return attribute.canonical(value, known)

    return Attribute(canonical, default, form)


def _infer_pool(input: TensorType, *, pooling_type: str, attributes: Attributes) -> TensorType:
    windows = pool_geometry(input.shape, **attributes)
    dtype = dt.inexact(input.dtype) if pooling_type == "avg" else input.dtype
    return TensorType(
        dtype, (input.shape[0], *(window.out for window in windows), input.shape[-1])
    )


_PER_AXIS = "tuple of one int >= 1 per spatial axis"
_PAD = "tuple of one pair (before, after) of ints >= 0 per dimension of input"


def _read_operands(known: InputTypes) -> tuple[Shape, Shape]:
    return known["input"].shape, known["window_shape"]


def _define_pad(axes: int) -> Attribute:
    return sliding.pad_attribute(axes, _read_operands)


POOL = KernelSpec(
    "Pool",
    ("input",),
    _infer_pool,
    attributes={
        "window_shape": _define_spatial(axes_attribute, _PER_AXIS),
        "pooling_type": kinds.choice("avg", "max"),
        "dilations": _define_spatial(axes_attribute, _PER_AXIS, default=1),
        "strides": _define_spatial(axes_attribute, _PER_AXIS, default=1),
        "dim_rounding_mode": sliding.rounding_attribute(),
        "pad": _define_spatial(_define_pad, _PAD),
    },
    accepts=dt.REAL,
)


@chained
def pool(
    input: ArrayLike,
    window_shape: PerAxis,
    pooling_type: Literal["avg", "max"],
    pad: PaddingLike = "valid",
    *,
    dilations: PerAxis | None = None,
    strides: PerAxis | None = None,
    dim_rounding_mode: RoundingMode | None = None,
) -> Tensor:
    """Return the largest element or the average under each window, which may be dilated.

    Args:
        input: [batch, one to three spatial axes, channels]; the batch axis may be missing.
        window_shape: number of taps along each spatial axis, or one int for all. With one int, an
            input of rank 3 is an image without batch.
        pooling_type: "avg" or "max".
        pad: "same", "valid", an int, or one (before, after) pair per dimension. Padding is
            never the largest element and does not count in averages.
        dilations: distance between taps along each axis, or one int; None stands for 1.
        strides: steps between positions, likewise.
        dim_rounding_mode: as for ``max_pool``.

    Raises:
        ArgumentError: an unknown ``pooling_type``.
        ShapeError: the rank is wrong, or the window does not fit.

    Source: TensorFlow.js's pool.

    Examples:
        >>> x = tp.reshape(tp.asarray([1.0, 4.0, 2.0, 8.0]), (1, 4, 1))
        >>> tp.nn.pool(x, (2,), "max")[0, :, 0]
        Tensor([4., 4., 8.], dtype=float32, device='cpu')
        >>> tp.nn.pool(x, (2,), "avg", dilations=2)[0, :, 0]
        Tensor([1.5, 6. ], dtype=float32, device='cpu')

    """
    tensor = as_tensor(input, what="pool: input")
    taps = shapes.as_ints(window_shape, "pool: window_shape")
    axes = len(taps) if len(taps) > 1 or not isinstance(window_shape, int) else None
    rank = 2 + axes if axes else max(tensor.ndim, 4)
    return over_batch(
        "pool",
        POOL,
        tensor,
        rank,
        window_shape=window_shape,
        pooling_type=pooling_type,
        pad=pad,
        dilations=dilations,
        strides=strides,
        dim_rounding_mode=dim_rounding_mode,
    )
