"""Pooling over the taps of its windows."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from tensorplug.ops import pooling as ops
from tensorplug.ops.elementwise import maximum, where
from tensorplug.ops.patches import first_matches, lowest, taps, untap
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.MAX_POOL)
def max_pool(x: Tensor, *, attributes: dict[str, Any]) -> Tensor:
    windows = ops.geometry(x.shape, **attributes)
    return reduce(maximum, taps(x, windows, lowest(x.dtype)))


@decompositions.of(ops.MAX_POOL_GRAD)
def max_pool_grad(
    dy: Tensor, input: Tensor, output: Tensor, *, attributes: dict[str, Any]
) -> Tensor:
    windows = ops.geometry(input.shape, **attributes)
    chosen = first_matches(input, output, windows)
    return untap([where(each, dy, 0.0) for each in chosen], windows)
