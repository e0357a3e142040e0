"""Factorizations by NumPy's LAPACK. float16 is computed in float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tensorplug.errors import LinAlgError

Array = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])


def _ours(function: F) -> F:
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


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _like(result: Any, x: Array) -> Array:
    """Return ``result``, rounded to float16 if ``x`` has that dtype."""
    return np.asarray(result, np.float16) if x.dtype == np.float16 else np.asarray(result)


def _adjoint(x: Array) -> Array:
    return x.swapaxes(-1, -2).conj()


@_ours
def cholesky(input: Array) -> Array:
    """Return the lower factor."""
    return _like(np.linalg.cholesky(_wide(input)), input)


@_ours
def matrix_inverse(input: Array, *, adjoint: bool) -> Array:
    """Return the inverse of the matrices, or of their conjugate transposes if ``adjoint``."""
    wide = _wide(input)
    return _like(np.linalg.inv(_adjoint(wide) if adjoint else wide), input)


@_ours
def matrix_solve(matrix: Array, rhs: Array, *, adjoint: bool) -> Array:
    """Solve for all columns of ``rhs``."""
    wide = _wide(matrix)
    return _like(np.linalg.solve(_adjoint(wide) if adjoint else wide, _wide(rhs)), rhs)


@_ours
def matrix_determinant(input: Array) -> Array:
    """Return the determinants."""
    return _like(np.linalg.det(_wide(input)), input)


@_ours
def log_matrix_determinant(input: Array) -> tuple[Array, Array]:
    """Return signs and logarithms."""
    sign, logarithm = np.linalg.slogdet(_wide(input))
    return _like(sign, input), _like(logarithm, input)


@_ours
def pseudo_inverse(input: Array, rtol: Array | None) -> Array:
    """Return the Moore-Penrose pseudo-inverses."""
    # The default for float16 is its own eps, not that of float32.
    limit = max(input.shape[-2:]) * np.finfo(input.dtype).eps if rtol is None else rtol
    return _like(np.linalg.pinv(_wide(input), rtol=limit), input)


@_ours
def qr(input: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    """Return Q and R."""
    q, r = np.linalg.qr(_wide(input), mode="complete" if full_matrices else "reduced")
    return _like(q, input), _like(r, input)


@_ours
def svd(input: Array, *, compute_uv: bool, full_matrices: bool) -> tuple[Array, Array, Array]:
    """Return singular values and vectors; the vectors are empty unless ``compute_uv``."""
    wide = _wide(input)
    if not compute_uv:
        empty = np.empty(0, input.dtype)
        return _like(np.linalg.svd(wide, compute_uv=False), input), empty, empty
    u, s, vh = np.linalg.svd(wide, full_matrices=full_matrices)
    return _like(s, input), _like(u, input), _like(vh, input)


@_ours
def self_adjoint_eig(input: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of Hermitian matrices."""
    wide = _wide(input)
    if not compute_v:
        return _like(np.linalg.eigvalsh(wide), input), np.empty(0, input.dtype)
    e, v = np.linalg.eigh(wide)
    return _like(e, input), _like(v, input)


@_ours
def eig(input: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors, complex even where NumPy returns real ones."""
    wide = _wide(input)
    dtype = np.result_type(wide.dtype, np.complex64)
    if not compute_v:
        return np.linalg.eigvals(wide).astype(dtype), np.empty(0, dtype)
    e, v = np.linalg.eig(wide)
    return e.astype(dtype), v.astype(dtype)
