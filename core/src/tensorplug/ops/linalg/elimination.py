"""Gaussian elimination with exchanges of rows. Leading axes are a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tensorplug.contract import arguments
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import dispatch_multiple
from tensorplug.errors import ShapeError
from tensorplug.ops.diagonals import eye, tril, triu
from tensorplug.ops.elementwise.casting import astype
from tensorplug.ops.elementwise.comparison import equal
from tensorplug.ops.extents import slice as slice_
from tensorplug.ops.movement import expand_dims
from tensorplug.ops.ranges import arange

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["lu"]


def _infer_lu(input: TensorType) -> tuple[TensorType, TensorType]:
    if input.rank < 2:
        raise ShapeError(f"the operand must have at least rank 2, got {input}")
    return input, TensorType(dt.int32, input.shape[:-1])


# TensorFlow's takes square matrices only.
LU = KernelSpec(
    "Lu",
    ("input",),
    _infer_lu,
    outputs=("lu", "p"),
    accepts=dt.NUMERIC,
    promote=("input",),
    inexact=True,
    leading=(),
)


class LUResult(NamedTuple):
    """The result of ``lu``."""

    P: Tensor
    L: Tensor
    U: Tensor


def lu(x: ArrayLike, /, *, p_indices: bool = False) -> LUResult:
    """Return a permutation P, lower triangular L and upper triangular U with ``P @ L @ U = x``.

    L has ones on its diagonal, and no element above 1 in modulus. Of the candidates for a pivot
    the largest is taken; which one of several, the device decides.

    Args:
        x: [..., m, n]; integers become float32.
        p_indices: whether to return the permutation as the numbers [..., m] of the rows of x, in
            int32, with ``L @ U = x[P]``, instead of a matrix. (For a batch,
            ``take_along_axis(x, P[..., None], axis=-2)``.)

    Returns:
        P [..., m, m], L [..., m, k] and U [..., k, n] with k = min(m, n), in the dtype of x. A
        singular matrix has them too, with zeros on the diagonal of U.

    The gradient needs leading columns that are linearly independent. ``solve``, ``det`` and
    ``inv`` eliminate by themselves.

    Raises:
        ShapeError: the rank is below 2.
        ArgumentError: ``p_indices`` is not a bool.

    Source: SciPy's lu; the kernel is TensorFlow's Lu.

    Examples:
        >>> P, L, U = tp.linalg.lu([[1.0, 2.0], [2.0, 8.0]])
        >>> L
        Tensor([[1. , 0. ],
                [0.5, 1. ]], dtype=float32, device='cpu')
        >>> U
        Tensor([[ 2.,  8.],
                [ 0., -2.]], dtype=float32, device='cpu')
        >>> P @ L @ U
        Tensor([[1., 2.],
                [2., 8.]], dtype=float32, device='cpu')
        >>> tp.linalg.lu([[1.0, 2.0], [2.0, 8.0]], p_indices=True).P
        Tensor([1, 0], dtype=int32, device='cpu')

    """
    as_numbers = arguments.flag(p_indices, "lu: p_indices")
    packed, order = dispatch_multiple(LU, x)
    *batch, rows, columns = packed.shape
    few, begin = min(rows, columns), [0] * packed.ndim
    left = slice_(packed, begin, [*batch, rows, few]) if few < columns else packed
    upper = slice_(packed, begin, [*batch, few, columns]) if few < rows else packed
    lower = tril(left, k=-1) + eye(rows, few, dtype=packed.dtype)
    if as_numbers:
        return LUResult(astype(order, dt.default_int, copy=False), lower, triu(upper))
    # Row order[i] of the matrix is row i of the product.
    moved = equal(
        expand_dims(arange(rows, dtype=order.dtype), axis=1), expand_dims(order, axis=-2)
    )
    return LUResult(astype(moved, packed.dtype), lower, triu(upper))
