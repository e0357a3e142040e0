"""Tangents of pooling: means are linear, and maxima take the tangents at their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.gradients.pooling import max_pool_3d_grad, max_pool_grad, pick_largest
from tensorplug.ops.nn.convolution import pooling as ops
from tensorplug.ops.nn.convolution.dilated_pooling import POOL, pool_geometry

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.dispatch.tensor import Tensor

    Attributes = dict[str, Any]

tangents: TangentTable = TangentTable()
tangents.linear(ops.AVG_POOL, "x")
tangents.linear(ops.AVG_POOL_3D, "x")
for _spec in (
    *(ops.AVG_POOL_GRAD, ops.AVG_POOL_3D_GRAD),
    *(ops.MAX_POOL_GRAD, ops.MAX_POOL_3D_GRAD),
):
    tangents.linear(_spec, "dy")


@tangents.wrt(ops.MAX_POOL, "x")
def max_pool(x_dot: Tensor, x: Tensor, out: Tensor, attributes: Attributes) -> Tensor:
    return max_pool_grad(x_dot, x, out, attributes)


@tangents.wrt(ops.MAX_POOL_3D, "x")
def max_pool_3d(x_dot: Tensor, x: Tensor, out: Tensor, attributes: Attributes) -> Tensor:
    return max_pool_3d_grad(x_dot, x, out, attributes)


@tangents.wrt(ops.MAX_POOL_WITH_ARGMAX, "x")
def max_pool_with_argmax(
    x_dot: Tensor, x: Tensor, result: Tensor, filter_size: Any, strides: Any, pad: Any
) -> list[Tensor | None]:
    options = {"filter_size": filter_size, "strides": strides, "pad": pad}
    windows = ops.geometry(x.shape, dim_rounding_mode=None, **options)
    return [pick_largest(x_dot, x, result, windows), None]


@tangents.wrt(POOL, "input")
def pool(
    input_dot: Tensor, input: Tensor, out: Tensor, pooling_type: str, attributes: Attributes
) -> Tensor:
    if pooling_type == "avg":
        return dispatch(POOL, input_dot, **attributes)
    return pick_largest(input_dot, input, out, pool_geometry(input.shape, **attributes))
