"""Normalization of channels, in groups or singly, and by the root of the mean square.

They live in ``tensorplug.nn``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.plugin import as_tensor, attributes, chained, kinds, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Shape, Tensor
    from tensorplug.typing import ArrayLike, Axis

__all__ = ["group_norm", "instance_norm", "rms_norm"]


@chained
def group_norm(
    x: ArrayLike,
    groups: int,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    *,
    channel_axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """Return ``(x - m) / sqrt(v + epsilon) * scale + offset``, with statistics of groups.

    m and v are the mean and variance of each group of neighbouring channels of each example.

    Args:
        x: axis 0 holds the examples, ``channel_axis`` the channels; other axes may lie anywhere
            after axis 0.
        groups: the number of groups, which divides the number of channels.
        offset: one number per channel; None for 0.
        scale: likewise; None for 1.
        channel_axis: the last for layouts such as NHWC, 1 for NCHW.
        epsilon: keeps the square root above 0.

    x, offset and scale are differentiable. Integers become floats first.

    Raises:
        ArgumentError: the groups do not divide the channels.
        ShapeError: x has no channel axis besides axis 0, or offset or scale does not fit.

    Source: "Group normalization" (Wu and He, 2018).

    Examples:
        >>> tp.nn.group_norm([[1.0, 3.0, 10.0, 14.0]], 2, epsilon=0.0)
        Tensor([[-1.,  1., -1.,  1.]], dtype=float32, device='cpu')

    """
    caller = "group_norm"
    tensor, axis = _read(x, channel_axis, caller, at_least=2)
    count, channels = shapes.index(groups, f"{caller}: groups"), tensor.shape[axis]
    if count < 1 or channels % count:
        raise ArgumentError(
            f"{caller}: groups must divide the {channels} channels of {tensor.type}, got {count}"
        )
    split = (*tensor.shape[:axis], count, channels // count, *tensor.shape[axis + 1 :])
    own = [at for at in range(1, len(split)) if at != axis]
    normal = tp.nn.layer_norm(tp.reshape(tensor, split), axis=own, epsilon=epsilon)
    return _move(tp.reshape(normal, tensor.shape), offset, scale, axis, caller)


@chained
def instance_norm(
    x: ArrayLike,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    *,
    channel_axis: int = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """Return ``(x - m) / sqrt(v + epsilon) * scale + offset``, with statistics of channels.

    m and v are the mean and variance of each channel of each example, over all other axes:
    ``group_norm`` with as many groups as channels, and with its arguments and errors. x must
    have a third axis.

    ``channel_axis``: the axis of the channels.

    Source: "Instance normalization: the missing ingredient for fast stylization" (Ulyanov et
    al., 2016).

    Examples:
        >>> x = tp.asarray([[[1.0, 10.0], [3.0, 14.0]]])  # batch, places, channels
        >>> tp.nn.instance_norm(x, epsilon=0.0)
        Tensor([[[-1., -1.],
                 [ 1.,  1.]]], dtype=float32, device='cpu')

    """
    caller = "instance_norm"
    tensor, axis = _read(x, channel_axis, caller, at_least=3)
    own = [at for at in range(1, tensor.ndim) if at != axis]
    normal = tp.nn.layer_norm(tensor, axis=own, epsilon=epsilon)
    return _move(normal, offset, scale, axis, caller)


@chained
def rms_norm(
    x: ArrayLike, scale: ArrayLike | None = None, axis: Axis | None = -1, *, epsilon: float = 1e-5
) -> Tensor:
    """Return ``x / sqrt(mean(x**2) + epsilon) * scale``, the mean along ``axis``.

    Args:
        x: of any rank, the features usually last.
        scale: broadcasts to the shape of x; None for 1.
        axis: the axes of one example: an int, several, or None for all.
        epsilon: keeps the square root above 0.

    x and scale are differentiable. Integers become floats first; float16 is computed in float32.

    Raises:
        ShapeError: scale does not broadcast to the shape of x.
        OutOfRangeError: an axis is out of range.

    Source: "Root mean square layer normalization" (Zhang and Sennrich, 2019).

    Examples:
        >>> tp.nn.rms_norm([[1.0, 7.0]], epsilon=0.0).numpy().round(4)
        array([[0.2, 1.4]], dtype=float32)
        >>> tp.nn.rms_norm([[1.0, 7.0]], [10.0, 1.0], epsilon=0.0).numpy().round(4)
        array([[2. , 1.4]], dtype=float32)

    """
    caller = "rms_norm"
    tensor = _read_numbers(x, f"{caller}: x")
    number: Any = attributes.number().canonical(epsilon, {})
    operands = [tensor.dtype]
    if scale is not None:
        _, scale = kinds.operands(tensor, scale, f"{caller}: x", f"{caller}: scale")
        scale = _read_numbers(scale, f"{caller}: scale")
        _check_broadcast(scale, tensor.shape, f"{caller}: scale")
        operands.append(scale.dtype)
    dtype = dt.inexact(dt.promote(operands))
    dt.check_number(number, dtype)
    wide = tensor if tensor.dtype is dt.float64 else tp.astype(tensor, dt.float32, copy=False)
    normal = wide * tp.rsqrt(tp.mean(tp.square(wide), axis=axis, keepdims=True) + number)
    return tp.astype(normal if scale is None else normal * scale, dtype, copy=False)


def _read_numbers(value: Any, what: str) -> Tensor:
    tensor = as_tensor(value, what=what)
    if tensor.dtype not in dt.REAL:
        raise DTypeError(f"{what} must hold real numbers, got {tensor.type}")
    return tensor


def _check_broadcast(parameter: Tensor, shape: Shape, what: str) -> None:
    message = f"{what} must broadcast to the shape of x, {list(shape)}, got {parameter.type}"
    try:
        fits = shapes.broadcast(shape, parameter.shape) == shape
    except ShapeError:
        raise ShapeError(message) from None
    if not fits:
        raise ShapeError(message)


def _read(x: Any, channel_axis: int, caller: str, at_least: int) -> tuple[Tensor, int]:
    """Return x, and the axis of its channels counted from the front."""
    tensor = _read_numbers(x, f"{caller}: x")
    if tensor.ndim < at_least:
        raise ShapeError(f"{caller}: x must have at least rank {at_least}, got {tensor.type}")
    axis = shapes.normalize_axis(channel_axis, tensor.ndim, f"{caller}: channel_axis")
    if not axis:
        raise ShapeError(f"{caller}: channel_axis must not be axis 0, which holds the examples")
    return tensor, axis


def _move(x: Tensor, offset: Any, scale: Any, axis: int, caller: str) -> Tensor:
    """Return ``x * scale + offset``, each with one number per channel."""
    behind = (1,) * (x.ndim - 1 - axis)
    for name, value in (("scale", scale), ("offset", offset)):
        if value is None:
            continue
        parameter = _read_numbers(value, f"{caller}: {name}")
        if parameter.shape != x.shape[axis : axis + 1]:
            raise ShapeError(
                f"{caller}: {name} must have one number for each of {x.shape[axis]} channels, "
                f"got {parameter.type}"
            )
        aligned = tp.reshape(parameter, (*parameter.shape, *behind))
        x = x * aligned if name == "scale" else x + aligned
    return x
