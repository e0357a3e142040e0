"""The reference for triangular systems: the inverse as a product.

A triangular matrix is ``d (1 - m)`` with a diagonal d and a nilpotent m, so its inverse is
``(1 + m) (1 + m^2) (1 + m^4) ... d^-1``.
"""

from __future__ import annotations

import numpy as np

from tensorplug_conformance.case import Array, Bounded
from tensorplug_conformance.floats import epsilon


def matrix_triangular_solve(
    matrix: Array,
    rhs: Array,
    *,
    lower: bool = True,
    adjoint: bool = False,
    unit_diagonal: bool = False,
) -> Bounded:
    """Multiply by the inverse; an error in a spreads as a^-1 da x."""
    wide = np.clongdouble if matrix.dtype.kind == "c" else np.longdouble
    n = matrix.shape[-1]
    row, column = np.indices((n, n))
    inside = row > column if lower else row < column
    diagonal = np.where(row == column, 1 if unit_diagonal else matrix, 0).astype(wide)
    triangle = np.where(inside, matrix, 0).astype(wide) + diagonal
    scale = np.where(row == column, 1 / np.where(row == column, diagonal, 1), 0)
    power = np.eye(n) - scale @ triangle  # nilpotent
    inverse = np.eye(n) + power
    for _ in range(n.bit_length()):
        power = power @ power
        inverse = inverse @ (np.eye(n) + power)
    inverse = inverse @ scale
    if adjoint:
        triangle, inverse = (np.conj(np.swapaxes(x, -1, -2)) for x in (triangle, inverse))
    value = inverse @ rhs.astype(wide)
    sizes = [
        np.sqrt((np.abs(x) ** 2).sum(axis=(-2, -1), keepdims=True))
        for x in (inverse, triangle, value)
    ]
    eps = 8 * epsilon(matrix) * (n + 2)
    bound = eps * sizes[0] * sizes[1] * (sizes[2] + sizes[0])
    return Bounded(value, np.broadcast_to(bound, value.shape))
