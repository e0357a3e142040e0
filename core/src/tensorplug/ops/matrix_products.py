"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.arrangement import moveaxis
from tensorplug.ops.elementwise.arithmetic import multiply
from tensorplug.ops.elementwise.comparison import logical_and
from tensorplug.ops.elementwise.complexes import conj
from tensorplug.ops.kinds import operands
from tensorplug.ops.movement import permute_dims, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Axis

__all__ = [
    "dot",
    "kron",
    "matmul",
    "outer_product",
    "tensordot",
    "vecdot",
]


def _infer_batch_mat_mul(
    a: TensorType, b: TensorType, *, transpose_a: bool, transpose_b: bool
) -> TensorType:
    if a.rank < 2 or b.rank < 2:
        raise ShapeError("a and b must have at least rank 2")
    rows, inner = a.shape[-2:] if not transpose_a else a.shape[:-3:-1]
    other, columns = b.shape[-2:] if not transpose_b else b.shape[:-3:-1]
    if inner != other:
        raise ShapeError(f"the inner sizes {inner} and {other} differ")
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2])
    return TensorType(a.dtype, (*batch, rows, columns))


BATCH_MAT_MUL = KernelSpec(
    "BatchMatMul",
    ("a", "b"),
    _infer_batch_mat_mul,
    attributes={
        "transpose_a": attributes.flag(default=False),
        "transpose_b": attributes.flag(default=False),
    },
    accepts=dt.NUMERIC,
    promote=("a", "b"),
    linear=("a", "b"),
)


@chained
def matmul(
    a: ArrayLike, b: ArrayLike, /, *, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    """Return the matrix product over the last two axes; the leading axes broadcast.

    A vector counts as a row on the left and as a column on the right; the result lacks that
    axis. The flags transpose the last two axes of an operand first. Dtypes are promoted; integers
    wrap. (The array API standard's ``matmul``; the flags are those of TensorFlow.js.)

    ``b``: the right operand, as ``a`` is the left one; ``transpose_a``: whether to transpose
    ``a``; ``transpose_b``: whether to transpose ``b``.

    Raises:
        ShapeError: rank 0, different inner sizes, or batch shapes that do not broadcast.
        DTypeError: booleans or strings.

    Examples:
        >>> a = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> tp.matmul(a, [[0.0, 1.0], [1.0, 0.0]])
        Tensor([[2., 1.],
                [4., 3.]], dtype=float32, device='cpu')
        >>> a @ tp.asarray([1.0, 10.0])
        Tensor([21., 43.], dtype=float32, device='cpu')
        >>> tp.matmul(tp.ones((5, 2, 3)), tp.ones((3, 4))).shape
        (5, 2, 4)
        >>> tp.matmul(a, tp.ones((3, 2)))
        Traceback (most recent call last):
            ...
        tensorplug.errors.ShapeError: ...: the inner sizes 2 and 3 differ

    """
    left, right = as_tensor(a, what="matmul: a"), as_tensor(b, what="matmul: b")
    if left.ndim == 0 or right.ndim == 0:
        raise ShapeError(
            f"matmul: the operands must have at least rank 1, got {left.type} and {right.type}"
        )
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


@chained
def dot(t1: ArrayLike, t2: ArrayLike, /) -> Tensor:
    """Return the product of two vectors, of a matrix and a vector, or of two matrices.

    Dtypes are promoted. (TensorFlow.js's dot; ``matmul`` for higher ranks.)

    ``t1``: the left operand; ``t2``: the right one.

    Raises:
        ShapeError: an operand of rank 0 or above 2, or different inner sizes.
        DTypeError: booleans or strings.

    Examples:
        >>> tp.dot([1, 2, 3], [4, 5, 6])
        Tensor(32, dtype=int32, device='cpu')
        >>> tp.dot([[1, 2], [3, 4]], [1, 10])
        Tensor([21, 43], dtype=int32, device='cpu')

    """
    left, right = as_tensor(t1, what="dot: t1"), as_tensor(t2, what="dot: t2")
    if left.ndim not in (1, 2) or right.ndim not in (1, 2):
        raise ShapeError(
            f"dot: the operands must have rank 1 or 2, got {left.type} and {right.type}"
        )
    return matmul(left, right)


def outer_product(v1: ArrayLike, v2: ArrayLike, /) -> Tensor:
    """Return the products ``v1[i] * v2[j]`` of two vectors.

    The result is a matrix of the promoted dtype. The standard's name for it is ``linalg.outer``.
    (TensorFlow.js's outerProduct.)

    Raises:
        ShapeError: an operand that is not a vector.
        DTypeError: booleans or strings.

    Examples:
        >>> tp.outer_product([1, 2], [3, 4, 5])
        Tensor([[ 3,  4,  5],
                [ 6,  8, 10]], dtype=int32, device='cpu')

    """
    left, right = as_tensor(v1, what="outer_product: v1"), as_tensor(v2, what="outer_product: v2")
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(
            f"outer_product: v1 and v2 must be vectors, got {left.type} and {right.type}"
        )
    return reshape(left, (-1, 1)) * right


def kron(a: ArrayLike, b: ArrayLike, /) -> Tensor:
    """Return the Kronecker product: ``b`` times each element of ``a``, arranged in blocks.

    ``out[i * n + k, j * m + l] = a[i, j] * b[k, l]`` for ``b`` of shape [n, m], and likewise for
    other ranks.

    Args:
        a: numbers or booleans.
        b: likewise; the operand of lower rank gets axes of length 1 in front, and the dtypes
            are promoted.

    Returns:
        A tensor whose sizes are the products of the operands' sizes. For booleans it tells
        whether both elements are true.

    Raises:
        DTypeError: strings, or dtypes that cannot be promoted.

    Source: NumPy's kron.

    Examples:
        >>> tp.kron([1, 10], [1, 2, 3])
        Tensor([ 1,  2,  3, 10, 20, 30], dtype=int32, device='cpu')
        >>> tp.kron([[1, 0], [0, 1]], [[1, 2]])
        Tensor([[1, 2, 0, 0],
                [0, 0, 1, 2]], dtype=int32, device='cpu')

    """
    left, right = operands(a, b, "kron: a", "kron: b")
    rank = max(left.ndim, right.ndim)
    blocks = (1,) * (rank - left.ndim) + left.shape
    cells = (1,) * (rank - right.ndim) + right.shape
    spread = [size for block in blocks for size in (block, 1)]
    repeated = [size for cell in cells for size in (1, cell)]
    both = left.dtype is dt.bool_ and right.dtype is dt.bool_
    product = (logical_and if both else multiply)(reshape(left, spread), reshape(right, repeated))
    return reshape(product, [n * m for n, m in zip(blocks, cells, strict=True)])


def vecdot(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor:
    """Return the dot products of vectors along ``axis``: ``sum of conj(x1) * x2``.

    The other axes broadcast; dtypes are promoted.

    Raises:
        ShapeError: an axis out of range, different lengths, or a non-negative axis for operands of
            different ranks.
        DTypeError: booleans or strings.

    Source: the array API standard 2025.12.

    Examples:
        >>> tp.vecdot([[1, 2], [3, 4]], [10, 1])
        Tensor([12, 34], dtype=int32, device='cpu')
        >>> tp.vecdot([1j, 1.0], [1j, 2.0])  # x1 is conjugated
        Tensor(3.+0.j, dtype=complex64, device='cpu')

    """
    left, right = as_tensor(x1, what="vecdot: x1"), as_tensor(x2, what="vecdot: x2")
    caller = f"vecdot of {left.type} and {right.type}"
    axes = [shapes.normalize_axis(axis, x.ndim, f"{caller}: axis") for x in (left, right)]
    if left.shape[axes[0]] != right.shape[axes[1]]:
        raise ShapeError(f"{caller}: the vectors have different lengths")
    if axis >= 0 and left.ndim != right.ndim:
        raise ShapeError(f"{caller}: if the ranks differ, axis must be negative, got {axis}")
    a, b = (moveaxis(x, place, -1) for x, place in zip((left, right), axes, strict=True))
    if a.dtype in dt.COMPLEX:
        a = conj(a)
    rows, columns = reshape(a, (*a.shape[:-1], 1, a.shape[-1])), reshape(b, (*b.shape, 1))
    product = matmul(rows, columns)
    return reshape(product, product.shape[:-2])


def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: int | Sequence[Axis] = 2) -> Tensor:
    """Return the sums of products over pairs of axes.

    Args:
        x1: a tensor; its other axes come first in the result.
        x2: a tensor; its other axes come last in the result.
        axes: the number of last axes of ``x1`` and first axes of ``x2`` to sum over; or two
            sequences, of axes of ``x1`` and of the corresponding axes of ``x2``.

    Raises:
        ShapeError: different lengths, or an axis out of range.
        ArgumentError: ``axes`` has another form.
        DTypeError: booleans or strings.

    Source: the array API standard 2025.12.

    Examples:
        >>> a = tp.ones((2, 3, 4))
        >>> tp.tensordot(a, tp.ones((3, 4, 5))).shape
        (2, 5)
        >>> tp.tensordot(a, tp.ones((4, 3)), axes=([1, 2], [1, 0]))
        Tensor([12., 12.], dtype=float32, device='cpu')
        >>> tp.tensordot([1, 2], [3, 4], axes=0)
        Tensor([[3, 4],
                [6, 8]], dtype=int32, device='cpu')

    """
    left, right = as_tensor(x1, what="tensordot: x1"), as_tensor(x2, what="tensordot: x2")
    caller = f"tensordot of {left.type} and {right.type}"
    first, second = _pair_axes(left, right, axes, caller)
    if [left.shape[at] for at in first] != [right.shape[at] for at in second]:
        raise ShapeError(f"{caller}: the axes {first} and {second} have different lengths")
    rows = [at for at in range(left.ndim) if at not in first]
    columns = [at for at in range(right.ndim) if at not in second]
    inner = prod(left.shape[at] for at in first)
    kept = [left.shape[at] for at in rows], [right.shape[at] for at in columns]
    product = matmul(
        reshape(permute_dims(left, [*rows, *first]), (prod(kept[0]), inner)),
        reshape(permute_dims(right, [*second, *columns]), (inner, prod(kept[1]))),
    )
    return reshape(product, [*kept[0], *kept[1]])


def _pair_axes(left: Tensor, right: Tensor, axes: Any, caller: str) -> tuple[list[int], list[int]]:
    """Return the axes of both operands that are summed over."""
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            raise ArgumentError(
                f"{caller}: axes must be a number or two sequences, got {quoted(axes)}"
            )
        listed = [shapes.as_ints(axis, f"{caller}: axes") for axis in axes]
        if len(listed[0]) != len(listed[1]):
            raise ArgumentError(
                f"{caller}: axes must name as many axes of x1 as of x2, got {quoted(axes)}"
            )
        first = [shapes.normalize_axis(at, left.ndim, f"{caller}: axes") for at in listed[0]]
        second = [shapes.normalize_axis(at, right.ndim, f"{caller}: axes") for at in listed[1]]
        if len({*first}) != len(first) or len({*second}) != len(second):
            raise ShapeError(f"{caller}: axes {axes!r} name an axis twice")
        return first, second
    count = shapes.index(axes, f"{caller}: axes")
    if not 0 <= count <= min(left.ndim, right.ndim):
        raise ShapeError(
            f"{caller}: axes must be between 0 and {min(left.ndim, right.ndim)}, got {count}"
        )
    return list(range(left.ndim - count, left.ndim)), list(range(count))
