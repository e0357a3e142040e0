"""Factorizations by NumPy's LAPACK, of the dtypes that it has: no narrow floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tensorplug.errors import LinAlgError

Array = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])
_FEW_AXES = 32  # of matrices; those of three results together are below NumPy's limit
_BLOCK = 64  # rows or columns; larger blocks cost more than the products between them


def _raise_our_errors(function: F) -> F:
    """Decorate a function to raise our error in place of NumPy's, and to silence warnings."""

    @wraps(function)
    def call(*args: Any, **attributes: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return function(*args, **attributes)
        except np.linalg.LinAlgError as error:
            text = str(error)
            raise LinAlgError(text[:1].lower() + text[1:]) from None

    return call  # type: ignore[return-value]  # same parameters, same result


def _as_one_stack(function: F) -> F:
    """Decorate a function that NumPy computes for fewer than 64 axes only.

    It counts the axes of all results together. So matrices with many leading axes become one
    stack, and the results get the leading axes back.
    """

    @wraps(function)
    def call(input: Array, *limits: Any, **attributes: Any) -> Any:
        if input.ndim <= _FEW_AXES:
            return function(input, *limits, **attributes)
        leading = input.shape[:-2]
        count = math.prod(leading)
        results = function(
            input.reshape(count, *input.shape[-2:]),
            *(None if x is None else np.broadcast_to(x, leading).reshape(count) for x in limits),
            **attributes,
        )
        if isinstance(results, tuple):  # empty ones of rank 1 stand for vectors not asked for
            return tuple(x.reshape(leading + x.shape[1:]) if x.ndim > 1 else x for x in results)
        return results.reshape(leading + results.shape[1:])

    return call  # type: ignore[return-value]  # same parameters, same result


def _take_adjoint(x: Array) -> Array:
    return x.swapaxes(-1, -2).conj()


def _check_finite(x: Array) -> None:
    """Refuse matrices for which LAPACK's iterations may never end, as `gesdd` with infinities."""
    if not np.isfinite(x).all():
        raise np.linalg.LinAlgError("the algorithm does not converge: x has NaN or infinities")


@_raise_our_errors
def cholesky(input: Array) -> Array:
    """Return the lower factor."""
    factor = np.linalg.cholesky(input)
    # LAPACK may overlook a NaN; whatever is not finite reaches the diagonal of its row.
    if not np.isfinite(np.diagonal(factor, axis1=-2, axis2=-1)).all():
        raise np.linalg.LinAlgError("matrix is not positive definite")
    return factor


@_raise_our_errors
def matrix_inverse(input: Array, *, adjoint: bool) -> Array:
    """Return the inverse of the matrices, or of their conjugate transposes if ``adjoint``."""
    return np.asarray(np.linalg.inv(_take_adjoint(input) if adjoint else input))


@_raise_our_errors
def matrix_solve(matrix: Array, rhs: Array, *, adjoint: bool) -> Array:
    """Solve for all columns of ``rhs``."""
    return np.asarray(np.linalg.solve(_take_adjoint(matrix) if adjoint else matrix, rhs))


@_raise_our_errors
def matrix_triangular_solve(
    matrix: Array, rhs: Array, *, lower: bool, adjoint: bool, unit_diagonal: bool
) -> Array:
    """Substitute backwards, block by block.

    A lower triangle with its rows and columns in reverse order is an upper one.
    """
    a, b = matrix, rhs
    if adjoint:
        a, lower = _take_adjoint(a), not lower
    if lower:
        a, b = a[..., ::-1, ::-1], b[..., ::-1, :]
    if not unit_diagonal and not np.diagonal(a, axis1=-2, axis2=-1).all():
        raise np.linalg.LinAlgError("singular matrix: an element of the diagonal is 0")
    size, columns = b.shape[-2:]
    if size <= _BLOCK:
        x = _substitute(a, b, unit_diagonal)
    else:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        x = np.array(np.broadcast_to(b, (*batch, size, columns)))
        for stop in range(size, 0, -_BLOCK):
            start = max(stop - _BLOCK, 0)
            rows, here = x[..., start:stop, :], a[..., start:stop, :]
            rows -= here[..., stop:] @ x[..., stop:, :]
            rows[...] = _substitute(here[..., start:stop], rows, unit_diagonal)
    return np.asarray(x[..., ::-1, :] if lower else x)


def _substitute(a: Array, b: Array, unit_diagonal: bool) -> Array:  # noqa: FBT001
    """Solve for the upper triangles of ``a``; LAPACK exchanges no rows of them."""
    size = a.shape[-1]
    upper = np.triu(a)
    if unit_diagonal:
        upper[..., range(size), range(size)] = 1
    return np.linalg.solve(upper, b)


@_raise_our_errors
@_as_one_stack
def lu(input: Array) -> tuple[Array, Array]:
    """Eliminate a few columns at a time in all matrices; products do the rest.

    Returns:
        The factors in one matrix, without the diagonal of the lower one, and the numbers of the
        rows in their new order.

    """
    *leading, rows, columns = input.shape
    count, few = math.prod(leading), min(rows, columns)
    work = np.array(input).reshape(count, rows, columns)
    order = np.tile(np.arange(rows, dtype=np.int32), (count, 1))
    for start in range(0, few, _BLOCK):
        stop = min(start + _BLOCK, few)
        for at in range(start, stop):
            _eliminate(work, order, at, stop)
        if stop < columns:
            square, beside = work[:, start:stop, start:stop], work[:, start:stop, stop:]
            beside[...] = matrix_triangular_solve(
                square, beside, lower=True, adjoint=False, unit_diagonal=True
            )
            work[:, stop:, stop:] -= work[:, stop:, start:stop] @ beside
    return work.reshape(input.shape), order.reshape(*leading, rows)


def _eliminate(work: Array, order: Array, at: int, stop: int) -> None:
    """Move the largest element of a column to the diagonal; subtract up to column ``stop``."""
    matrices = np.arange(len(work))
    chosen = at + np.abs(work[:, at:, at]).argmax(axis=1)
    for rows in (work, order):
        moved = rows[matrices, chosen]
        rows[matrices, chosen] = rows[:, at]
        rows[:, at] = moved
    pivots = work[:, at, at, None]
    below = work[:, at + 1 :, at]
    below /= np.where(pivots == 0, 1, pivots)  # a column of zeros stays as it is
    work[:, at + 1 :, at + 1 : stop] -= below[:, :, None] * work[:, at, None, at + 1 : stop]


@_raise_our_errors
def matrix_determinant(input: Array) -> Array:
    """Return the determinants."""
    return np.asarray(np.linalg.det(input))


@_raise_our_errors
def log_matrix_determinant(input: Array) -> tuple[Array, Array]:
    """Return signs and logarithms."""
    sign, logarithm = np.linalg.slogdet(input)
    return np.asarray(sign), np.asarray(logarithm)


@_raise_our_errors
@_as_one_stack
def pseudo_inverse(input: Array, rtol: Array | None) -> Array:
    """Return the Moore-Penrose pseudo-inverses."""
    _check_finite(input)
    limit = max(input.shape[-2:]) * np.finfo(input.dtype).eps if rtol is None else rtol
    return np.asarray(np.linalg.pinv(input, rtol=limit))


@_raise_our_errors
def qr(input: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    """Return Q and R."""
    q, r = np.linalg.qr(input, mode="complete" if full_matrices else "reduced")
    return q, r


@_raise_our_errors
@_as_one_stack
def svd(input: Array, *, compute_uv: bool, full_matrices: bool) -> tuple[Array, Array, Array]:
    """Return singular values and vectors; the vectors are empty unless ``compute_uv``."""
    _check_finite(input)
    if not compute_uv:
        empty = np.empty(0, input.dtype)
        return np.linalg.svd(input, compute_uv=False), empty, empty
    u, s, vh = np.linalg.svd(input, full_matrices=full_matrices)
    return s, u, vh


@_raise_our_errors
@_as_one_stack
def self_adjoint_eig(input: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read."""
    if not np.isfinite(input).all():
        _check_finite(np.tril(input))
    if not compute_v:
        return np.linalg.eigvalsh(input), np.empty(0, input.dtype)
    e, v = np.linalg.eigh(input)
    return e, v


@_raise_our_errors
@_as_one_stack
def eig(input: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors, complex even where NumPy returns real ones."""
    _check_finite(input)
    dtype = np.result_type(input.dtype, np.complex64)
    if not compute_v:
        return np.linalg.eigvals(input).astype(dtype), np.empty(0, dtype)
    e, v = np.linalg.eig(input)
    return e.astype(dtype), v.astype(dtype)
