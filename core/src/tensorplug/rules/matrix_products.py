"""Gradients of matrix products."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorplug.contract.rules import RuleTable
from tensorplug.mapping.derived import align, to_shape
from tensorplug.ops import matrix_products as ops
from tensorplug.ops.elementwise.arithmetic import multiply
from tensorplug.ops.movement import reshape

if TYPE_CHECKING:
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.tensor import Tensor

rules: RuleTable = RuleTable()


def product_wrt_a(dy: Tensor, b: Tensor, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    if transpose_a:
        return ops.matmul(b, dy, transpose_a=transpose_b, transpose_b=True)
    return ops.matmul(dy, b, transpose_b=not transpose_b)


def product_wrt_b(dy: Tensor, a: Tensor, *, transpose_a: bool, transpose_b: bool) -> Tensor:
    if transpose_b:
        return ops.matmul(dy, a, transpose_a=True, transpose_b=transpose_a)
    return ops.matmul(a, dy, transpose_a=not transpose_a)


rules.formulas(ops.BATCH_MAT_MUL, a=product_wrt_a)


@rules.vjp(ops.BATCH_MAT_MUL, "b")
def batch_mat_mul_wrt_b(
    dy: Tensor, a: Tensor, b_type: TensorType, *, transpose_a: bool, transpose_b: bool
) -> Tensor:
    if b_type.rank == 2 and not transpose_a:  # one product over all rows, no sum of products
        a, dy = _stack_rows(a), _stack_rows(dy)
    return product_wrt_b(dy, a, transpose_a=transpose_a, transpose_b=transpose_b)


def _stack_rows(x: Tensor) -> Tensor:
    """Return a stack of matrices as one matrix with all their rows."""
    sizes = x.type.sizes
    return x if x.ndim == 2 else reshape(x, (prod(sizes[:-1]), sizes[-1]))


@rules.batch(ops.BATCH_MAT_MUL)
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
