"""Tangents of layer normalization (see ``gradients.layer_normalization``).

The normalized numbers are the gradient of a function, so their Jacobian is symmetric, and so are
the second derivatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import TangentTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.nn import layer_normalization as ops

if TYPE_CHECKING:
    from typing import Any

    from tensorplug.dispatch.tensor import Tensor

tangents: TangentTable = TangentTable()
tangents.symmetric(ops.LAYER_NORM_GRAD, "dy", "x")


@tangents.wrt(ops.LAYER_NORM, "x")
def along_x(x_dot: Tensor, x: Tensor, scale: Tensor | None, axis: Any, epsilon: float) -> Tensor:
    found = dispatch(ops.LAYER_NORM_GRAD, x_dot, x, axis=axis, epsilon=epsilon)
    return found if scale is None else found * scale


@tangents.wrt(ops.LAYER_NORM, "scale")
def along_scale(scale_dot: Tensor, x: Tensor, axis: Any, epsilon: float) -> Tensor:
    return dispatch(ops.LAYER_NORM, x, None, None, axis=axis, epsilon=epsilon) * scale_dot


@tangents.wrt(ops.LAYER_NORM, "offset")
def along_offset(offset_dot: Tensor) -> Tensor:
    return offset_dot
