"""Gradients of normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.dispatch.calls import dispatch
from tensorplug.ops.elementwise import sqrt
from tensorplug.ops.nn import normalization as ops
from tensorplug.ops.nn.normalization import compute_neighbours_norm, sum_neighbours

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

gradients: GradientTable = GradientTable()


@gradients.of(ops.FUSED_BATCH_NORM)
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


@gradients.wrt(ops.LRN, "x")
def lrn(
    dy: Tensor,
    x: Tensor,
    out: Tensor,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Tensor:
    return dispatch(
        ops.LRN_GRAD, x, out, dy, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta
    )


# With S the sum over neighbours, which is its own transpose, and n = bias + alpha * S(x**2),
# LRNGrad(x, y, dy) = dy * n**-beta - 2 * alpha * beta * x * S(dy * y / n).


@gradients.wrt(ops.LRN_GRAD, "dy")
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


@gradients.wrt(ops.LRN_GRAD, "y")
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


@gradients.wrt(ops.LRN_GRAD, "x")
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
