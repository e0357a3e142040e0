"""Geometry and kernel specs of all convolutions.

A convolution has three kernels, each linear in both inputs: the convolution itself and its
transposes in x and in the filter, which are its gradients. They take the same attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.contract import attributes as kinds
from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.contract.windows import (
    arranged,
    axes_attribute,
    channel_axis,
    pad_attribute,
    rounding_attribute,
    spatial_axes,
    windows,
)
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.indexing.slicing import split
from tensorplug.ops.joining import concat
from tensorplug.ops.matrix_products import matmul
from tensorplug.ops.movement import expand_dims, permute_dims, reshape, squeeze

if TYPE_CHECKING:
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import Attribute, InputTypes
    from tensorplug.contract.windows import Padding, Windows
    from tensorplug.dispatch.tensor import Tensor

Attributes = Mapping[str, Any]
Convolve = Callable[["Tensor", "Tensor"], "Tensor"]

_NAMES = ("strides", "data_format", "dilations", "dim_rounding_mode", "pad")


def _read_operands(known: InputTypes) -> tuple[Shape, Shape]:
    """Return the shape of x and the taps; gradient kernels have one of them as an attribute."""
    x = known["x"].sizes if "x" in known else known["input_shape"]
    filter = known["filter"].sizes if "filter" in known else known["filter_shape"]
    return x, filter[:-2]


def options(axes: int, *formats: str) -> dict[str, Attribute]:
    """Return the attributes of a window that moves over ``axes`` spatial axes."""
    return {
        "strides": axes_attribute(axes),
        "data_format": kinds.choice(*formats, default=formats[0]),
        "dilations": axes_attribute(axes, 1),
        "dim_rounding_mode": rounding_attribute(),
        "pad": pad_attribute(axes, _read_operands),
    }


def window_attributes(attributes: Attributes) -> dict[str, Any]:
    """Return the values of the window's attributes."""
    return {name: attributes[name] for name in _NAMES}


def geometry(
    x: Shape,
    filter: Shape,
    *,
    strides: Shape,
    pad: Padding,
    data_format: str,
    dilations: Shape,
    dim_rounding_mode: str | None = "floor",
) -> Windows:
    """Return the windows of a convolution of shapes ``x`` and ``filter``.

    Raises:
        ShapeError: ranks or channels do not fit.

    """
    rank = len(data_format)
    if len(x) != rank or len(filter) != rank:
        raise ShapeError(f"x and filter must have rank {rank}, got {list(x)} and {list(filter)}")
    channels, spatial = x[channel_axis(data_format)], spatial_axes(data_format)
    if channels != filter[-2]:
        raise ShapeError(_unequal_channels(channels, filter, data_format))
    sizes = tuple(x[axis] for axis in spatial)
    return windows(sizes, filter[:-2], strides, dilations, pad, dim_rounding_mode, spatial)


def _unequal_channels(channels: int, filter: Shape, data_format: str) -> str:
    """Return a message that helps a caller who has another layout, or groups, in mind."""
    *_, expected, filters = filter
    message = (
        f"x has {channels} channels, but the filter has {expected}; x is in {data_format} order"
    )
    groups, rest = divmod(channels, expected) if expected else (0, 0)
    if groups and not rest and not filters % groups:
        message += f"; a convolution with groups={groups} would fit"
    return message


def windows_of(x: Shape, filter: Shape, attributes: Attributes) -> Windows:
    """Return ``geometry`` from the attributes of any of the kernels.

    ``x``: the shape of the images; ``filter``: the shape of the filters.
    """
    return geometry(x, filter, **window_attributes(attributes))


class Family(NamedTuple):
    """The specs of a convolution's three kernels.

    ``forward``, and its gradients: ``backprop_input``, ``backprop_filter``. ``output_shape`` takes
    the shapes of x and of the filter, and the attributes.
    """

    forward: KernelSpec
    backprop_input: KernelSpec
    backprop_filter: KernelSpec
    output_shape: Callable[[Shape, Shape, Attributes], Shape]


def family(
    names: tuple[str, str, str],
    attributes: Mapping[str, Attribute],
    outputs: Callable[[Shape], int],
) -> Family:
    """Return the specs called ``names``; ``outputs`` counts a filter's output channels."""

    def output_shape(x: Shape, filter: Shape, attributes: Attributes) -> Shape:
        sizes = tuple(window.out for window in windows_of(x, filter, attributes))
        return arranged(x[0], sizes, outputs(filter), attributes["data_format"])

    def check(dy: TensorType, x: Shape, filter: Shape, attributes: Attributes) -> None:
        expected = output_shape(x, filter, attributes)
        if dy.shape != expected:
            raise ShapeError(f"dy must have shape {list(expected)}")

    def forward(x: TensorType, filter: TensorType, *, attributes: Attributes) -> TensorType:
        return TensorType(x.dtype, output_shape(x.shape, filter.shape, attributes))

    def backprop_input(
        dy: TensorType, filter: TensorType, *, attributes: Attributes, input_shape: Shape
    ) -> TensorType:
        check(dy, input_shape, filter.shape, attributes)
        return TensorType(dy.dtype, input_shape)

    def backprop_filter(
        x: TensorType, dy: TensorType, *, attributes: Attributes, filter_shape: Shape
    ) -> TensorType:
        check(dy, x.shape, filter_shape, attributes)
        return TensorType(dy.dtype, filter_shape)

    def spec(
        name: str, inputs: tuple[str, str], infer: Any, more: Attributes, **facts: Any
    ) -> KernelSpec:
        return KernelSpec(
            name,
            inputs,
            infer,
            attributes={**more, **attributes},  # pad needs the attributes before it
            accepts=dt.FLOATING,
            promote=inputs,
            linear=inputs,
            **facts,
        )

    of_input, of_filter = {"input_shape": kinds.shape()}, {"filter_shape": kinds.shape()}
    return Family(
        spec(names[0], ("x", "filter"), forward, {}, fold=("x",)),
        spec(names[1], ("dy", "filter"), backprop_input, of_input),
        spec(names[2], ("x", "dy"), backprop_filter, of_filter),
        output_shape,
    )


def per_image(what: str, x: Any, rank: int, convolve: Callable[[Tensor], Tensor]) -> Tensor:
    """Return ``convolve(x)``. If x is an image without a batch axis, so is the result."""
    tensor = as_tensor(x, what=f"{what}: x")
    if tensor.ndim != rank - 1:
        return convolve(tensor)
    return squeeze(convolve(expand_dims(tensor, axis=0)), axis=0)


def in_groups(
    what: str,
    x: Tensor,
    filter: Any,
    groups: Any,
    channels: int,
    convolve: Convolve,
    depthwise: Convolve | None = None,
    attributes: Attributes | None = None,
) -> Tensor:
    """Return the convolution of each group of channels with its part of the filter.

    ``channels`` is the axis of the channels in x; ``convolve`` takes x and a filter, and so does
    ``depthwise``, which does all groups of one channel at once. ``attributes``: of the window;
    with them, a filter of one tap is one product of matrices for all groups.

    Raises:
        ArgumentError: ``groups`` is not a positive integer.
        ShapeError: the groups do not divide the channels, or the filter does not fit them.

    """
    count = _count(what, groups)
    taps = as_tensor(filter, what=f"{what}: filter")
    if count == 1 or x.ndim != taps.ndim:  # ranks that do not fit are refused there
        return convolve(x, taps)
    own, out = x.shape[channels], taps.shape[-1]
    if taps.shape[-2] * count != own or out % count:
        raise ShapeError(
            f"{what}: for {count} groups of the {own} channels of x, the filter must be "
            f"[..., {own} / {count}, a multiple of {count}], got {taps.type}"
        )
    if depthwise is not None and count == own:
        return depthwise(x, reshape(taps, (*taps.shape[:-2], own, out // own)))
    floating = x.dtype in dt.FLOATING and taps.dtype in dt.FLOATING  # others are refused there
    if attributes is not None and floating and _is_mixing(taps.shape, attributes):
        return _mixed(x, taps, count, channels)
    parts = zip(split(x, count, axis=channels), split(taps, count, axis=-1), strict=True)
    return concat([convolve(part, own_taps) for part, own_taps in parts], axis=channels)


def _count(what: str, groups: Any) -> int:
    count = shapes.index(groups, f"{what}: groups")
    if count < 1:
        raise ArgumentError(f"{what}: groups must be at least 1, got {count}")
    return count


def _is_mixing(filter: Shape, attributes: Attributes) -> bool:
    """Return whether every element is made of the channels at its own place.

    True only for attributes that are surely valid; the kernel judges the others.
    """
    axes = len(filter) - 2
    steps = [attributes["strides"], attributes["dilations"]]
    pad, data_format = attributes["pad"], attributes["data_format"]
    if pad.__class__ in (tuple, list):
        padded = list(pad) != [(0, 0)] * (axes + 2)
    else:
        padded = not (pad.__class__ in (str, int) and pad in ("valid", "same", 0))
    return (
        filter[:axes] == (1,) * axes
        and all(step.__class__ in (int, tuple) and step in (1, (1,) * axes) for step in steps)
        and not padded
        and attributes["dim_rounding_mode"] is None
        and data_format in ("NHWC", "NCHW")
    )


def _mixed(x: Tensor, taps: Tensor, groups: int, channels: int) -> Tensor:
    """Return the convolution of groups with a filter of one tap, by one batched product."""
    images = moveaxis(x, channels, -1)
    own, out = taps.shape[-2:]
    rows = reshape(images, (prod(images.shape[:-1]), groups, own))
    matrices = reshape(taps, (own, groups, out // groups))
    by_group = matmul(permute_dims(rows, (1, 0, 2)), permute_dims(matrices, (1, 0, 2)))
    joined = reshape(permute_dims(by_group, (1, 0, 2)), (*images.shape[:-1], out))
    return moveaxis(joined, -1, channels)


def transposed(
    what: str,
    spec: KernelSpec,
    x: Any,
    filter: Any,
    output_shape: Any,
    groups: Any,
    depthwise: KernelSpec | None = None,
    **attributes: Any,
) -> Tensor:
    """Return the transposed convolution by kernel ``spec``, without a batch axis if x has none.

    ``depthwise``: the kernel of as many groups as the result has channels.

    Raises:
        ArgumentError: ``groups`` is not a positive integer.
        ShapeError: the groups do not divide the channels, or the filter does not fit them.

    """
    shape = shapes.as_shape(output_shape, f"{what}: output_shape")
    rank = len(spec.attributes["data_format"].default)
    count = _count(what, groups)
    taps = filter if count == 1 else as_tensor(filter, what=f"{what}: filter")

    def convolve(images: Tensor) -> Tensor:
        full = (1, *shape) if len(shape) == rank - 1 else shape
        if count == 1 or not images.ndim == taps.ndim == len(full) == rank:  # refused there
            return dispatch(spec, images, taps, input_shape=full, **attributes)
        channels = 1 if attributes["data_format"] in ("NCHW", "NCDHW") else -1
        own, out = images.shape[channels], full[channels]
        if taps.shape[-2] * count != out or taps.shape[-1] != own or own % count:
            raise ShapeError(
                f"{what}: for {count} groups of the {own} channels of x and the {out} of the "
                f"result, both multiples of {count}, the filter must be [..., {out} / {count}, "
                f"{own}], got {taps.type}"
            )
        if depthwise is not None and count == out:
            by_channel = reshape(taps, (*taps.shape[:-2], out, own // out))
            return dispatch(depthwise, images, by_channel, input_shape=full, **attributes)
        part = [*full]
        part[channels] = out // count
        parts = zip(split(images, count, axis=channels), split(taps, count, axis=-1), strict=True)
        found = [dispatch(spec, *each, input_shape=part, **attributes) for each in parts]
        return concat(found, axis=channels)

    return per_image(what, x, rank, convolve)
