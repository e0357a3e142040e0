"""Batching of matrix products: examples are further matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.batching import BatchingTable
from tensorplug.mapping.derived import align, to_shape
from tensorplug.ops import matrix_products as ops

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

batching = BatchingTable()


@batching.of(ops.BATCH_MAT_MUL)
def batch_mat_mul(
    a: Tensor,
    b: Tensor,
    *,
    transpose_a: bool,
    transpose_b: bool,
    batched: frozenset[str],
    size: int,
    out: TensorType,
) -> Tensor:
    if "b" not in batched and b.ndim == 2 and not transpose_a:  # one product of all rows
        inner = a.shape[-1]
        rows = to_shape(a, (a.size // inner if inner else size * out.size, inner))
        if inner:
            product = ops.matmul(rows, b, transpose_b=transpose_b)
            return to_shape(product, (size, *out.shape))
    a = align(a, out.rank) if "a" in batched else a
    b = align(b, out.rank) if "b" in batched else b
    return ops.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
