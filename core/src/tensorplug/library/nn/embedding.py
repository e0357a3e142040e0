"""Embedding of numbered things as rows of a table. It lives in ``tensorplug.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorplug as tp
from tensorplug.errors import DTypeError, OutOfRangeError, ShapeError
from tensorplug.plugin import as_tensor, shapes
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["embedding"]


def embedding(table: ArrayLike, indices: ArrayLike, *, padding_index: int | None = None) -> Tensor:
    """Return the rows of ``table`` that ``indices`` names: ``table[indices]``.

    Args:
        table: [rows, features], differentiable: the gradient of a row is the sum over its
            places in ``indices``, and 0 for a row that does not occur.
        indices: integers of any shape. Negative ones count from the end.
        padding_index: an index whose results are 0, whatever the table holds. Its row gets no
            gradient.

    Returns:
        ``[*indices.shape, features]``.

    Raises:
        ShapeError: the table does not have rank 2.
        DTypeError: the table does not hold numbers, or the indices are not integers.
        OutOfRangeError: ``padding_index`` names no row; or, on devices that can raise, an index
            names none.

    Source: PyTorch's functional.embedding.

    Examples:
        >>> table = tp.asarray([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> tp.nn.embedding(table, [[1, 2], [-1, 0]]).shape
        (2, 2, 2)
        >>> tp.nn.embedding(table, [2, 0, 2])
        Tensor([[3., 4.],
                [0., 0.],
                [3., 4.]], dtype=float32, device='cpu')
        >>> tp.nn.embedding(table, [1, 2], padding_index=2)
        Tensor([[1., 2.],
                [0., 0.]], dtype=float32, device='cpu')

    """
    weights = as_tensor(table, what="embedding: table")
    if weights.ndim != 2:
        raise ShapeError(f"embedding: table must be [rows, features], got {weights.type}")
    if weights.dtype not in dt.NUMERIC:
        raise DTypeError(f"embedding: table must hold numbers, got {weights.type}")
    at = as_tensor(indices, what="embedding: indices")
    if at.dtype not in dt.INTEGER:
        raise DTypeError(f"embedding: indices must be integers, got {at.type}")
    vectors = tp.take(weights, at, axis=0)
    if padding_index is None:
        return vectors
    rows, row = weights.shape[0], shapes.index(padding_index, "embedding: padding_index")
    if not -rows <= row < rows:
        raise OutOfRangeError(f"embedding: padding_index {row} is out of range for {rows} rows")
    return tp.where(tp.expand_dims(_names_row(at, row % rows, rows), axis=-1), 0, vectors)


def _names_row(indices: Tensor, row: int, rows: int) -> Tensor:
    """Return where the indices name ``row``, counted from the front or from the end."""
    small = indices.dtype.itemsize < dt.default_int.itemsize  # and may not hold the number
    wide = tp.astype(indices, dt.default_int) if small else indices
    named = tp.equal(wide, row)
    if wide.dtype not in dt.SIGNED:
        return named
    return tp.logical_or(named, tp.equal(wide, row - rows))
