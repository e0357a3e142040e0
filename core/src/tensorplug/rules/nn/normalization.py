"""Gradients of normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import align, in_front
from tensorplug.ops.elementwise.unary import sqrt
from tensorplug.ops.nn import layer_normalization, normalization
from tensorplug.ops.nn import normalization as ops
from tensorplug.ops.nn.normalization import compute_neighbours_norm, sum_neighbours

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


@rules.vjp(ops.FUSED_BATCH_NORM)
def batch_norm(
    wanted: frozenset[str],
    dy: Tensor,
    x: Tensor,
    scale: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    variance_epsilon: float,
) -> dict[str, Tensor]:
    found = {"offset": dy} if "offset" in wanted else {}
    if wanted == {"offset"}:
        return found
    inverse = 1.0 / sqrt(variance + variance_epsilon)  # of the deviation
    if wanted & {"x", "mean"}:
        along_x = dy * (inverse if scale is None else scale * inverse)
        found |= {"x": along_x, "mean": -along_x}
    if wanted & {"scale", "variance"}:
        normalized = dy * (x - mean) * inverse
        found["scale"] = normalized
    if "variance" in wanted:
        steepness = inverse * inverse * -0.5
        found["variance"] = normalized * (steepness if scale is None else scale * steepness)
    return {name: found[name] for name in wanted}


rules.formulas(
    ops.LRN,
    x=lambda dy, x, out, depth_radius, bias, alpha, beta: dispatch(
        ops.LRN_GRAD, x, out, dy, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta
    ),
)


# With S the sum over neighbours, which is its own transpose, and n = bias + alpha * S(x**2),
# LRNGrad(x, y, dy) = dy * n**-beta - 2 * alpha * beta * x * S(dy * y / n).


@rules.vjp(ops.LRN_GRAD, "dy")
def lrn_grad_wrt_dy(
    ddy: Tensor,
    x: Tensor,
    y: Tensor,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Tensor:
    n = compute_neighbours_norm(x, depth_radius, bias, alpha)
    back = sum_neighbours(ddy * x, depth_radius)
    return ddy * n**-beta - back * (y / n) * (2.0 * alpha * beta)


@rules.vjp(ops.LRN_GRAD, "y")
def lrn_grad_wrt_y(
    ddy: Tensor,
    x: Tensor,
    dy: Tensor,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Tensor:
    n = compute_neighbours_norm(x, depth_radius, bias, alpha)
    return sum_neighbours(ddy * x, depth_radius) * (dy / n) * (-2.0 * alpha * beta)


@rules.vjp(ops.LRN_GRAD, "x")
def lrn_grad_wrt_x(
    ddy: Tensor,
    x: Tensor,
    y: Tensor,
    dy: Tensor,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Tensor:
    n = compute_neighbours_norm(x, depth_radius, bias, alpha)
    back = sum_neighbours(ddy * x, depth_radius)
    direct = ddy * sum_neighbours(dy * y / n, depth_radius)
    wrt_n = (back * y / n * (2.0 * alpha) - ddy * n**-beta) * dy / n * beta
    through_n = x * sum_neighbours(wrt_n, depth_radius)
    return through_n * (2.0 * alpha) - direct * (2.0 * alpha * beta)


rules.batch(layer_normalization.LAYER_NORM)(
    lambda x, scale, offset, *, axis, epsilon, batched, size, out: dispatch(
        layer_normalization.LAYER_NORM,
        in_front(x, "x" in batched, size),
        align(scale, out.rank) if scale is not None and "scale" in batched else scale,
        align(offset, out.rank) if offset is not None and "offset" in batched else offset,
        axis=tuple(place + 1 for place in axis),
        epsilon=epsilon,
    )
)


@rules.batch(normalization.FUSED_BATCH_NORM)
def fused_batch_norm(
    x: Tensor,
    scale: Tensor | None,
    offset: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    *,
    attributes: dict[str, Any],
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    given = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    parameters = [
        align(value, out.rank) if value is not None and name in batched else value
        for name, value in given.items()
    ]
    whole = in_front(x, "x" in batched, size)
    return dispatch(normalization.FUSED_BATCH_NORM, whole, *parameters, **attributes)
