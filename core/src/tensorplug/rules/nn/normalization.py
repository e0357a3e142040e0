"""Gradients of normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.rules import RuleTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.mapping.derived import aligned, in_front
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
    gradients = {"offset": dy} if "offset" in wanted else {}
    if wanted == {"offset"}:
        return gradients
    inverse = 1.0 / sqrt(variance + variance_epsilon)  # of the deviation
    if wanted & {"x", "mean"}:
        along_x = dy * (inverse if scale is None else scale * inverse)
        gradients |= {"x": along_x, "mean": -along_x}
    if wanted & {"scale", "variance"}:
        normalized = dy * (x - mean) * inverse
        gradients["scale"] = normalized
    if "variance" in wanted:
        steepness = inverse * inverse * -0.5
        gradients["variance"] = normalized * (steepness if scale is None else scale * steepness)
    return {name: gradients[name] for name in wanted}


rules.formulas(
    ops.LRN, x=lambda dy, x, out, attributes: dispatch(ops.LRN_GRAD, x, out, dy, **attributes)
)


# With S the sum over neighbours, which is its own transpose, and n = bias + alpha * S(x**2),
# LRNGrad(x, y, dy) = dy * n**-beta - 2 * alpha * beta * x * S(dy * y / n).
@rules.vjp(ops.LRN_GRAD)
def lrn_grad(
    wanted: frozenset[str],
    ddy: Tensor,
    x: Tensor,
    y: Tensor,
    dy: Tensor,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> dict[str, Tensor]:
    n = compute_neighbours_norm(x, depth_radius, bias, alpha)
    back = sum_neighbours(ddy * x, depth_radius)
    slopes: dict[str, Tensor] = {}
    if "dy" in wanted:
        slopes["dy"] = ddy * n**-beta - back * (y / n) * (2.0 * alpha * beta)
    if "y" in wanted:
        slopes["y"] = back * (dy / n) * (-2.0 * alpha * beta)
    if "x" in wanted:
        direct = ddy * sum_neighbours(dy * y / n, depth_radius)
        wrt_n = (back * y / n * (2.0 * alpha) - ddy * n**-beta) * dy / n * beta
        through_n = x * sum_neighbours(wrt_n, depth_radius)
        slopes["x"] = through_n * (2.0 * alpha) - direct * (2.0 * alpha * beta)
    return slopes


rules.batch(layer_normalization.LAYER_NORM)(
    lambda x, scale, offset, *, axis, epsilon, batched, size, out: dispatch(
        layer_normalization.LAYER_NORM,
        in_front(x, "x" in batched, size),
        *aligned(out.rank, batched, scale=scale, offset=offset),
        axis=tuple(number + 1 for number in axis),
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
    numbers = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    parameters = aligned(out.rank, batched, **numbers)
    whole = in_front(x, "x" in batched, size)
    return dispatch(normalization.FUSED_BATCH_NORM, whole, *parameters, **attributes)
