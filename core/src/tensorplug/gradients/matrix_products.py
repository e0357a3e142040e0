"""Gradients of matrix products."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract.tables import GradientTable
from tensorplug.ops import matrix_products as ops
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

gradients: GradientTable = GradientTable()


@gradients.wrt(ops.BATCH_MAT_MUL, "a")
def batch_mat_mul_wrt_a(dy: Tensor, b: Tensor, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    if transpose_a:
        return ops.matmul(b, dy, transpose_a=transpose_b, transpose_b=True)
    return ops.matmul(dy, b, transpose_b=not transpose_b)


@gradients.wrt(ops.BATCH_MAT_MUL, "b")
def batch_mat_mul_wrt_b(
    dy: Tensor, a: Tensor, b_type: TensorType, *, transpose_a: bool, transpose_b: bool
) -> Tensor:
    if b_type.rank == 2 and not transpose_a:  # one product over all rows, no sum of products
        a, dy = _stack_rows(a), _stack_rows(dy)
    if transpose_b:
        return ops.matmul(dy, a, transpose_a=True, transpose_b=transpose_a)
    return ops.matmul(a, dy, transpose_a=not transpose_a)


def _stack_rows(x: Tensor) -> Tensor:
    """Return a stack of matrices as one matrix with all their rows."""
    return x if x.ndim == 2 else reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
