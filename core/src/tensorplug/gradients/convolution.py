"""Gradients of convolution: the three kernels of the family are one another's transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch import dispatch
from tensorplug.ops import convolution as ops
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.shapes import Shape
    from tensorplug.spec import TensorType
    from tensorplug.tensor import Tensor

gradients = GradientTable()

Attributes = dict[str, Any]


@gradients.wrt(ops.CONV2D, "x")
def conv2d_wrt_x(dy: Tensor, filter: Tensor, x_type: TensorType, attributes: Attributes) -> Tensor:
    return _input(dy, filter, x_type.shape, attributes)


@gradients.wrt(ops.CONV2D, "filter")
def conv2d_wrt_filter(
    dy: Tensor, x: Tensor, filter_type: TensorType, attributes: Attributes
) -> Tensor:
    return _filter(x, dy, filter_type.shape, attributes)


@gradients.wrt(ops.CONV2D_BACKPROP_INPUT, "dy")
def backprop_input_wrt_dy(ddy: Tensor, filter: Tensor, attributes: Attributes) -> Tensor:
    return _forward(ddy, filter, attributes)


@gradients.wrt(ops.CONV2D_BACKPROP_INPUT, "filter")
def backprop_input_wrt_filter(
    ddy: Tensor, dy: Tensor, filter_type: TensorType, attributes: Attributes
) -> Tensor:
    return _filter(ddy, dy, filter_type.shape, attributes)


@gradients.wrt(ops.CONV2D_BACKPROP_FILTER, "x")
def backprop_filter_wrt_x(
    ddy: Tensor, dy: Tensor, x_type: TensorType, attributes: Attributes
) -> Tensor:
    return _input(dy, ddy, x_type.shape, attributes)


@gradients.wrt(ops.CONV2D_BACKPROP_FILTER, "dy")
def backprop_filter_wrt_dy(ddy: Tensor, x: Tensor, attributes: Attributes) -> Tensor:
    return _forward(x, ddy, attributes)


def _forward(x: Tensor, filter: Tensor, attributes: Attributes) -> Tensor:
    return dispatch(ops.CONV2D, x, filter, **ops.window_attributes(attributes))


def _input(dy: Tensor, filter: Tensor, shape: Shape, attributes: Attributes) -> Tensor:
    return dispatch(
        ops.CONV2D_BACKPROP_INPUT,
        dy,
        filter,
        **ops.window_attributes(attributes),
        input_shape=shape,
    )


def _filter(x: Tensor, dy: Tensor, shape: Shape, attributes: Attributes) -> Tensor:
    return dispatch(
        ops.CONV2D_BACKPROP_FILTER, x, dy, **ops.window_attributes(attributes), filter_shape=shape
    )
