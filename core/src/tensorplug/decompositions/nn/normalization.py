"""Normalization from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.unary import sqrt
from tensorplug.ops.nn import normalization as ops
from tensorplug.ops.nn.normalization import compute_neighbours_norm, sum_neighbours

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable()


@decompositions.of(ops.FUSED_BATCH_NORM, reads=())
def batch_norm(
    x: Tensor,
    scale: Tensor | None,
    offset: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    *,
    variance_epsilon: float,
) -> Tensor:
    deviation = sqrt(variance + variance_epsilon)
    result = (x - mean) * (1.0 / deviation if scale is None else scale / deviation)
    return result if offset is None else result + offset


@decompositions.of(ops.LRN)
def lrn(x: Tensor, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    return x * compute_neighbours_norm(x, depth_radius, bias, alpha) ** -beta


@decompositions.of(ops.LRN_GRAD)
def lrn_grad(
    x: Tensor,
    y: Tensor,
    dy: Tensor,
    *,
    depth_radius: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Tensor:
    norm = compute_neighbours_norm(x, depth_radius, bias, alpha)
    shared = sum_neighbours(dy * y / norm, depth_radius)
    return dy * norm**-beta - x * shared * (2.0 * alpha * beta)
