"""The reference for Gaussian elimination: Doolittle's sums, each element once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded, Relation
from tensorplug_conformance.floats import epsilon, finfo

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def _factors(packed: Array) -> tuple[Array, Array]:
    few = min(packed.shape[-2:])
    lower = np.tril(packed[..., :few], -1) + np.eye(packed.shape[-2], few)
    return lower, np.triu(packed[..., :few, :])


def _sizes(x: Array) -> Array:
    """Return the Frobenius norms of matrices, as [..., 1, 1]."""
    return np.asarray(np.sqrt((np.abs(x) ** 2).sum(axis=(-2, -1), keepdims=True)))


def _packed(a: Array) -> Array:
    """Return both factors of matrices whose largest elements of columns choose the pivots.

    Element by element: each row of the upper factor, then each column of the lower one. Rows are
    exchanged as a whole before their column is divided.
    """
    packed = a.copy()
    rows, columns = a.shape[-2:]
    for k in range(min(rows, columns)):
        done = packed[..., k:, :k] @ packed[..., :k, k, None]
        column = a[..., k:, k] - done[..., 0]
        chosen = k + np.argmax(np.abs(column), axis=-1)[..., None, None]
        turned = np.where(np.arange(rows) == k, chosen[..., 0], np.arange(rows))
        turned = np.where(np.arange(rows) == chosen[..., 0], k, turned)[..., None]
        a, packed = (np.take_along_axis(x, turned, axis=-2) for x in (a, packed))
        over = packed[..., k, None, :k] @ packed[..., :k, k:]
        packed[..., k, k:] = a[..., k, k:] - over[..., 0, :]
        below = packed[..., k + 1 :, :k] @ packed[..., :k, k, None]
        pivot = packed[..., k, k, None]
        quotient = (a[..., k + 1 :, k] - below[..., 0]) / np.where(pivot == 0, 1, pivot)
        packed[..., k + 1 :, k] = quotient
    return packed


def lu(input: Array) -> Relation:
    """Compare the product with the rows; they are all there; nothing is above 1.

    The largest of the moduli, or of the sums of both parts' moduli, chooses a pivot: of complex
    numbers a quotient may then be sqrt(2).
    """
    wide: Any = np.clongdouble if input.dtype.kind == "c" else np.longdouble
    a = input.astype(wide)
    rounded = np.longdouble(finfo(input.dtype).eps)
    eps = (8 * epsilon(input) + (rounded > epsilon(input)) * rounded) * (max(a.shape[-2:]) + 2)
    most = np.sqrt(2) if input.dtype.kind == "c" else 1.0

    def check(lu: Array, p: Array) -> Any:
        numbers = np.broadcast_to(np.arange(a.shape[-2]), p.shape)
        yield "all rows", np.sort(p, axis=-1), Bounded(numbers, np.zeros(p.shape))
        lower, upper = _factors(lu.astype(wide))
        moved = np.take_along_axis(a, p[..., None].astype(np.int64), axis=-2)
        bound = eps * _sizes(lower) * _sizes(upper)
        yield "l u", lower @ upper, Bounded(moved, np.broadcast_to(bound, moved.shape))
        above = np.maximum(np.abs(lower) - most, 0)
        yield "moduli of l", above, Bounded(0 * above, np.full(above.shape, eps))

    return Relation(check, _packed(a))
