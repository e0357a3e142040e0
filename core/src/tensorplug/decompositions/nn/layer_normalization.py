"""Layer normalization from primitives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract.tables import DecompositionTable
from tensorplug.ops.elementwise.unary import sqrt
from tensorplug.ops.nn import layer_normalization as ops
from tensorplug.ops.nn.normalization import moments
from tensorplug.ops.reduction import mean

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

decompositions: DecompositionTable = DecompositionTable(reads=("axis",))


@decompositions.of(ops.LAYER_NORM)
def layer_norm(
    x: Tensor, scale: Tensor | None, offset: Tensor | None, *, axis: Any, epsilon: float
) -> Tensor:
    result, _ = _normalize(x, axis, epsilon)
    result = result if scale is None else result * scale
    return result if offset is None else result + offset


@decompositions.of(ops.LAYER_NORM_GRAD)
def layer_norm_grad(dy: Tensor, x: Tensor, *, axis: Any, epsilon: float) -> Tensor:
    z, deviation = _normalize(x, axis, epsilon)
    along = mean(dy * z, axis=axis, keepdims=True)
    return (dy - mean(dy, axis=axis, keepdims=True) - z * along) / deviation


def _normalize(x: Tensor, axis: Any, epsilon: float) -> tuple[Tensor, Tensor]:
    centre, variance = moments(x, axis, keepdims=True)
    deviation = sqrt(variance + epsilon)
    return (x - centre) / deviation, deviation
