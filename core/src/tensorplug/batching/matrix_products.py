"""Batching of matrix products: examples are further matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug.contract.batching import BatchingTable
from tensorplug.mapping.derived import align, to_shape
from tensorplug.ops import matrix_products as ops
from tensorplug.ops.elementwise import multiply

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

batching: BatchingTable = BatchingTable()


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
    inner = a.shape[-2] if transpose_a else a.shape[-1]
    if "b" not in batched and b.ndim == 2 and not transpose_a and inner:
        rows = to_shape(a, (a.size // inner, inner))  # one product of all rows
        return to_shape(ops.matmul(rows, b, transpose_b=transpose_b), (size, *out.shape))
    a = align(a, out.rank) if "a" in batched else a
    b = align(b, out.rank) if "b" in batched else b
    if inner == 1:  # outer products, as of gradients of each example
        column = to_shape(a, (*a.shape[:-2], out.shape[-2], 1))
        row = to_shape(b, (*b.shape[:-2], 1, out.shape[-1]))
        return multiply(column, row)
    return ops.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
