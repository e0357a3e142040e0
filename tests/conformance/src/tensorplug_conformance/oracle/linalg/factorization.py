"""References for factorizations, in wide arithmetic and for whole batches at a time.

Gauss-Jordan elimination, Cholesky's recursion and Jacobi's rotations, none of which LAPACK
uses. Where signs or phases are free, the factors must multiply to the matrix and be
orthonormal. Bounds are ``8 * eps * (n + 2)`` times the condition where that matters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug_conformance.case import Bounded, Relation
from tensorplug_conformance.floats import epsilon, finfo

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


def _eps(x: Array) -> Any:
    """Return 8 * eps * (n + 2) for matrices ``x``, where they are computed with."""
    return 8 * epsilon(x) * (max(x.shape[-2:]) + 2)


def _eps_of_parts(x: Array) -> Any:
    """Return what the factors of ``x`` may be off together: each is rounded to its dtype."""
    rounded = np.longdouble(finfo(x.dtype).eps)
    return _eps(x) + (rounded > epsilon(x)) * rounded * (max(x.shape[-2:]) + 2)


def _wide(x: Array) -> Array:
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def _adjoint(x: Array) -> Array:
    return np.asarray(x.swapaxes(-1, -2).conj())


def _norm(x: Array) -> Array:
    """Return the Frobenius norm of matrices, as [..., 1, 1]."""
    return np.asarray(np.sqrt((np.abs(x) ** 2).sum(axis=(-2, -1), keepdims=True)))


def _eliminated(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a^-1 b and the pivots [batch, n], with signs for exchanged rows."""
    count, n = a.shape[:2]
    work = np.concatenate([a, b], axis=2)
    pivots = np.ones((count, n), a.dtype)
    matrices = np.arange(count)
    for at in range(n):
        chosen = at + np.argmax(np.abs(work[:, at:, at]), axis=1)
        moved = work[matrices, chosen].copy()
        work[matrices, chosen] = work[:, at]
        work[:, at] = moved
        pivot = moved[:, at].copy()
        pivots[:, at] = np.where(chosen == at, pivot, -pivot)
        safe = np.where(pivot == 0, 1, pivot)
        work[:, at] /= safe[:, None]
        others = work[:, :, at].copy()
        others[:, at] = 0
        work -= others[:, :, None] * work[:, None, at]
    return work[:, :, n:], pivots


def _inverse(a: Array) -> Array:
    """Return the inverse of wide matrices with any leading axes."""
    n = a.shape[-1]
    flat = a.reshape(-1, n, n) if a.size else np.zeros((0, n, n), a.dtype)
    eye = np.broadcast_to(np.eye(n, dtype=a.dtype), flat.shape)
    return _eliminated(flat, eye)[0].reshape(a.shape)


def matrix_inverse(input: Array, *, adjoint: bool = False) -> Bounded:
    """Eliminate beside the identity; an error in a spreads as a^-1 da a^-1."""
    a = _adjoint(_wide(input)) if adjoint else _wide(input)
    inverse = _inverse(a)
    bound = _eps(input) * _norm(inverse) * _norm(a) * _norm(inverse)
    return Bounded(inverse, np.broadcast_to(bound, inverse.shape))


def matrix_solve(matrix: Array, rhs: Array, *, adjoint: bool = False) -> Bounded:
    """Multiply by the inverse."""
    a = _adjoint(_wide(matrix)) if adjoint else _wide(matrix)
    inverse = _inverse(a)
    value = inverse @ _wide(rhs)
    bound = _eps(matrix) * _norm(inverse) * _norm(a) * (_norm(value) + _norm(inverse))
    return Bounded(value, np.broadcast_to(bound, value.shape))


def _pivots(input: Array) -> Array:
    n = input.shape[-1]
    wide = _wide(input)
    flat = wide.reshape(-1, n, n) if input.size else np.zeros((0, n, n), wide.dtype)
    if not input.size:  # as many determinants as the batch has, all of no rows or none at all
        count = int(np.prod(input.shape[:-2]))
        return np.ones((*input.shape[:-2], n), flat.dtype) if not n or not count else flat
    return _eliminated(flat, flat[:, :, :0])[1].reshape(input.shape[:-1])


def matrix_determinant(input: Array) -> Bounded:
    """Multiply the pivots; an error da in a spreads as det(a) * trace(a^-1 da).

    An eighth of the usual bound suffices: Frobenius norms overstate a condition n times. Singular
    matrices have no inverse: there the product of the rows' lengths replaces the determinant,
    which is never larger (Hadamard).
    """
    pivots = _pivots(input)
    value = np.prod(pivots, axis=-1)
    a = _wide(input)
    lengths = np.prod(np.sqrt((np.abs(a) ** 2).sum(axis=-1)), axis=-1)
    singular = (pivots == 0).any(axis=-1)
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    solid = np.where(singular[..., None, None], eye, a)
    condition = (_norm(solid) * _norm(_inverse(solid)))[..., 0, 0]
    spread = np.where(singular, lengths, np.abs(value) * np.maximum(condition, 1))
    return Bounded(value, _eps(input) / 8 * spread)


def log_matrix_determinant(input: Array) -> tuple[Bounded, Bounded]:
    """Add the logarithms of the pivots."""
    pivots = _pivots(input)
    sizes = np.abs(pivots)
    with np.errstate(divide="ignore"):
        phases = np.where(sizes == 0, 0, pivots / np.where(sizes == 0, 1, sizes))
        logarithm = np.log(sizes).sum(axis=-1)
    sign = np.prod(phases, axis=-1)
    finite = np.where(np.isfinite(logarithm), logarithm, 0)
    singular = (sizes == 0).any(axis=-1)
    condition = np.ones(sign.shape, np.longdouble)
    if input.size and not singular.any():
        a = _wide(input)
        condition = (_norm(a) * _norm(_inverse(a)))[..., 0, 0]
    bound = _eps(input) * (condition + np.abs(finite))
    complex_bound = bound if input.dtype.kind == "c" else 0 * bound
    return Bounded(sign, complex_bound), Bounded(logarithm, bound)


def _hermitian(input: Array) -> Array:
    """Return the wide mean with the adjoint: a gradient is that of a Hermitian matrix."""
    a = _wide(input)
    return (a + _adjoint(a)) / 2


def cholesky(input: Array) -> Bounded:
    """Go down the columns, each from those before it."""
    a = _hermitian(input)
    n = a.shape[-1]
    lower = np.zeros_like(a)
    for k in range(n):
        done = lower[..., k, :k]
        lower[..., k, k] = np.sqrt(a[..., k, k].real - (np.abs(done) ** 2).sum(axis=-1))
        below = a[..., k + 1 :, k] - (lower[..., k + 1 :, :k] @ done.conj()[..., None])[..., 0]
        lower[..., k + 1 :, k] = below / lower[..., k, k, None]
    condition = _norm(a) * _norm(_inverse(a))
    return Bounded(lower, np.broadcast_to(_eps(input) * _norm(lower) * condition, lower.shape))


def pseudo_inverse(input: Array, rtol: Array | None) -> Bounded:  # noqa: ARG001  # cases with it say what is right
    """Solve the normal equations; for matrices of full rank."""
    a = _wide(input)
    h = _adjoint(a)
    value = _inverse(h @ a) @ h if a.shape[-2] >= a.shape[-1] else h @ _inverse(a @ h)
    bound = _eps(input) * _norm(value) * _norm(a) * _norm(value)
    return Bounded(value, np.broadcast_to(bound, value.shape))


def _eigenvalues(a: Array) -> Array:
    """Return the eigenvalues of wide Hermitian matrices by Jacobi's rotations, sorted."""
    if a.dtype.kind == "c":  # each occurs twice in the real matrix of twice the size
        top = np.concatenate([a.real, -a.imag], axis=-1)
        bottom = np.concatenate([a.imag, a.real], axis=-1)
        return _eigenvalues(np.concatenate([top, bottom], axis=-2))[..., ::2]
    a = a.copy()
    n = a.shape[-1]
    enough = finfo(a.dtype).eps ** 2 * (a * a).sum()
    for _ in range(12):
        if (np.tril(a, -1) ** 2).sum() <= enough:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                _rotate(a, p, q)
    return np.sort(np.diagonal(a, axis1=-2, axis2=-1), axis=-1)


def _rotate(a: Array, p: int, q: int) -> None:
    """Make a[p, q] zero by rotating rows and columns p and q."""
    angle = np.arctan2(2 * a[..., p, q], a[..., q, q] - a[..., p, p]) / 2
    c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
    row_p, row_q = a[..., p, :].copy(), a[..., q, :].copy()
    a[..., p, :], a[..., q, :] = c * row_p - s * row_q, s * row_p + c * row_q
    column_p, column_q = a[..., :, p].copy(), a[..., :, q].copy()
    a[..., :, p], a[..., :, q] = c * column_p - s * column_q, s * column_p + c * column_q


def _held(name: str, value: Array, expected: Array, bound: Any) -> tuple[str, Array, Bounded]:
    return name, value, Bounded(expected, np.broadcast_to(bound, expected.shape))


def _orthonormal(name: str, columns: Array, eps: Any) -> tuple[str, Array, Bounded]:
    gram = _adjoint(columns) @ columns
    identity = np.broadcast_to(np.eye(gram.shape[-1], dtype=gram.dtype), gram.shape)
    return _held(name, gram, identity, eps)


def self_adjoint_eig(input: Array, *, compute_v: bool = True) -> Relation:
    """Compare values with Jacobi's; vectors are orthonormal, and a v = v e."""
    a, eps = _hermitian(input), _eps_of_parts(input)
    values = _eigenvalues(a)

    def check(e: Array, v: Array) -> Any:
        yield _held("eigenvalues", _wide(e), values, (eps * _norm(a))[..., 0])
        if compute_v:
            v = _wide(v)
            yield _orthonormal("orthonormal eigenvectors", v, eps)
            yield _held("a v = v e", a @ v, v * _wide(e)[..., None, :], eps * _norm(a))

    return Relation(check, values)


def svd(input: Array, *, compute_uv: bool = True, full_matrices: bool = False) -> Relation:  # noqa: ARG001  # the shapes say it
    """Compare values with the roots of Jacobi's for the smaller Gram matrix."""
    a, eps = _wide(input), _eps_of_parts(input)
    tall = a.shape[-2] >= a.shape[-1]
    gram = _adjoint(a) @ a if tall else a @ _adjoint(a)
    values = np.sqrt(np.maximum(_eigenvalues(gram), 0))[..., ::-1]

    def check(s: Array, u: Array, vh: Array) -> Any:
        # The roots of numbers near 0 are accurate only to the root of the wide eps.
        slack = eps + np.sqrt(np.finfo(np.longdouble).eps)
        yield _held("singular values", _wide(s), values, (slack * _norm(a))[..., 0])
        yield _held("their order", np.minimum(s[..., :-1] - s[..., 1:], 0), 0 * s[..., 1:], 0)
        if compute_uv:
            u, vh = _wide(u), _wide(vh)
            few = s.shape[-1]
            product = (u[..., :few] * _wide(s)[..., None, :]) @ vh[..., :few, :]
            yield _held("u s vh", product, a, eps * _norm(a))
            yield _orthonormal("orthonormal u", u, eps)
            yield _orthonormal("orthonormal v", _adjoint(vh), eps)

    return Relation(check, values)


def qr(input: Array, *, full_matrices: bool = False) -> Relation:  # noqa: ARG001  # the shapes say it
    """Orthonormal, triangular, and their product is the matrix."""
    a, eps = _wide(input), _eps_of_parts(input)

    def check(q: Array, r: Array) -> Any:
        q, r = _wide(q), _wide(r)
        yield _held("q r", q @ r, a, eps * _norm(a))
        yield _orthonormal("orthonormal q", q, eps)
        yield _held("r below the diagonal", np.tril(r, -1), 0 * r, 0)

    return Relation(check)


def eig(input: Array, *, compute_v: bool = True) -> Relation:
    """Sums of powers of the eigenvalues are traces of powers; a v = v e with |v| = 1."""
    a, eps = _wide(input), _eps_of_parts(input)

    def check(e: Array, v: Array) -> Any:
        e = _wide(e)
        power = a
        for k in range(1, a.shape[-1] + 1):
            traces = np.trace(power, axis1=-2, axis2=-1).astype(np.clongdouble)
            size = k * a.shape[-1] * _norm(a)[..., 0, 0] ** k
            yield _held(f"sum of powers {k}", (e**k).sum(axis=-1), traces, eps * size)
            power = power @ a
        if compute_v:
            v = _wide(v)
            product = a.astype(v.dtype) @ v
            yield _held("a v = v e", product, v * e[..., None, :], eps * _norm(a))
            lengths = (np.abs(v) ** 2).sum(axis=-2)
            yield _held("lengths of v", lengths, np.ones(lengths.shape), eps)

    return Relation(check)
