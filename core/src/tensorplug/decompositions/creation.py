"""Creation from Fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.ops import creation as ops
from tensorplug.tables import DecompositionTable

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

decompositions = DecompositionTable()


@decompositions.of(ops.ZEROS_LIKE)
def zeros_like(x: Tensor) -> Tensor:
    return ops.zeros(x.shape, dtype=x.dtype)


@decompositions.of(ops.ONES_LIKE)
def ones_like(x: Tensor) -> Tensor:
    return ops.ones(x.shape, dtype=x.dtype)
