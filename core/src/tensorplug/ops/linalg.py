"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import attributes, shapes
from tensorplug import dtypes as dt
from tensorplug.dispatch import as_tensor, chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.movement import reshape
from tensorplug.spec import KernelSpec, TensorType

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

__all__ = [
    "matmul",
]


def _matmul(a: TensorType, b: TensorType, *, transpose_a: bool, transpose_b: bool) -> TensorType:
    if a.rank < 2 or b.rank < 2:
        raise ShapeError("both operands must have at least rank 2")
    rows, inner = a.shape[-2:] if not transpose_a else a.shape[:-3:-1]
    other, columns = b.shape[-2:] if not transpose_b else b.shape[:-3:-1]
    if inner != other:
        raise ShapeError(f"the inner sizes {inner} and {other} differ")
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    return TensorType(a.dtype, (*batch, rows, columns))


BATCH_MAT_MUL = KernelSpec(
    "BatchMatMul",
    ("a", "b"),
    _matmul,
    attributes={
        "transpose_a": attributes.flag(default=False),
        "transpose_b": attributes.flag(default=False),
    },
    accepts=dt.NUMERIC,
    promote=("a", "b"),
)


@chained
def matmul(a: Any, b: Any, /, *, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Return the matrix product of the last two axes; the leading ones broadcast.

    A vector is taken as a row on the left and as a column on the right, and that axis is
    removed from the result. The flags transpose the last two axes of an operand first.

    Raises:
        ShapeError: rank 0, inner sizes that differ, or batch shapes that do not broadcast.

    """
    left, right = as_tensor(a, what="matmul: a"), as_tensor(b, what="matmul: b")
    if left.ndim == 0 or right.ndim == 0:
        raise ShapeError(f"matmul needs at least rank 1, got {left.type} and {right.type}")
    row, column = left.ndim == 1, right.ndim == 1
    if not row and not column:
        return dispatch(
            BATCH_MAT_MUL, left, right, transpose_a=transpose_a, transpose_b=transpose_b
        )
    product = dispatch(
        BATCH_MAT_MUL,
        reshape(left, (1, -1)) if row else left,
        reshape(right, (-1, 1)) if column else right,
        transpose_a=transpose_a and not row,
        transpose_b=transpose_b and not column,
    )
    kept = product.shape[:-2] + (() if row else product.shape[-2:-1])
    return reshape(product, kept if column else (*kept, product.shape[-1]))
