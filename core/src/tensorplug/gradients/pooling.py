"""Gradients of pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.dispatch import dispatch
from tensorplug.ops import pooling as ops
from tensorplug.ops.elementwise import where
from tensorplug.ops.patches import first_matches, taps
from tensorplug.tables import GradientTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

gradients = GradientTable()
gradients.stop(ops.MAX_POOL_GRAD, "input", "output")  # they only choose places


@gradients.wrt(ops.MAX_POOL, "x")
def max_pool(dy: Tensor, x: Tensor, out: Tensor, attributes: dict[str, Any]) -> Tensor:
    return dispatch(ops.MAX_POOL_GRAD, dy, x, out, **attributes)


@gradients.wrt(ops.MAX_POOL_GRAD, "dy")
def max_pool_grad(
    ddy: Tensor, input: Tensor, output: Tensor, attributes: dict[str, Any]
) -> Tensor:
    windows = ops.geometry(input.shape, **attributes)
    total = None
    for chosen, tap in zip(
        first_matches(input, output, windows), taps(ddy, windows, 0), strict=True
    ):
        part = where(chosen, tap, 0.0)
        total = part if total is None else total + part
    assert total is not None  # a window has at least one tap
    return total
