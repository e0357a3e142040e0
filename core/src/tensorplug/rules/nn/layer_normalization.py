"""Gradients of layer normalization.

Let z = (x - mean(x)) * r with r = 1 / sqrt(variance(x) + epsilon) and means along the axes. Then

    LayerNormGrad(dy, x) = r * (dy - mean(dy) - z * mean(z * dy))

which is a symmetric matrix times dy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise.powers import rsqrt
from tensorplug.ops.nn import layer_normalization as ops
from tensorplug.ops.nn.normalization import moments
from tensorplug.ops.reduction import mean

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()
rules.formulas(
    ops.LAYER_NORM,
    x=lambda dy, x, scale, attributes: dispatch(
        ops.LAYER_NORM_GRAD, dy if scale is None else dy * scale, x, **attributes
    ),
    scale=lambda dy, x, attributes: dy * dispatch(ops.LAYER_NORM, x, None, None, **attributes),
    offset=lambda dy: dy,
)
rules.formulas(
    ops.LAYER_NORM_GRAD,
    dy=lambda ddy, x, attributes: dispatch(ops.LAYER_NORM_GRAD, ddy, x, **attributes),
)


@rules.vjp(ops.LAYER_NORM_GRAD, "x")
def layer_norm_grad_wrt_x(ddy: Tensor, dy: Tensor, x: Tensor, axis: Any, epsilon: float) -> Tensor:
    # Of sum(ddy * LayerNormGrad(dy, x)), which depends on x through r and through z.
    centre, variance = moments(x, axis, keepdims=True)
    r = rsqrt(variance + epsilon)
    z = (x - centre) * r
    of_dy, of_ddy = _take_mean(z * dy, axis), _take_mean(z * ddy, axis)
    in_common = (
        _take_mean(dy * ddy, axis) - _take_mean(dy, axis) * _take_mean(ddy, axis) - of_dy * of_ddy
    )
    through_z = dispatch(
        ops.LAYER_NORM_GRAD, of_dy * ddy + of_ddy * dy, x, axis=axis, epsilon=epsilon
    )
    return -r * (r * z * in_common + through_z)


def _take_mean(x: Tensor, axis: Any) -> Tensor:
    return mean(x, axis=axis, keepdims=True)


# Tangents: the normalized numbers are the gradient of a function, so their Jacobian is symmetric,
# and so are the second derivatives.


@rules.jvp(ops.LAYER_NORM, "x")
def along_x(x_dot: Tensor, x: Tensor, scale: Tensor | None, axis: Any, epsilon: float) -> Tensor:
    along = dispatch(ops.LAYER_NORM_GRAD, x_dot, x, axis=axis, epsilon=epsilon)
    return along if scale is None else along * scale


rules.jvp(ops.LAYER_NORM, "scale")(
    lambda scale_dot, x, attributes: (
        dispatch(ops.LAYER_NORM, x, None, None, **attributes) * scale_dot
    )
)
rules.jvp(ops.LAYER_NORM, "offset")(lambda offset_dot: offset_dot)
