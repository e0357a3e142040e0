"""Functions of complex numbers, composed of many kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorplug as tp

L = tp.linalg

RNG = np.random.default_rng(18)


def drawn(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


Z = drawn(5)
W = drawn(5)
X = RNG.uniform(0.5, 2.0, 5)
SQUARE = drawn(3, 3) + 3 * np.diag([1.0, 2.0, 3.0])
OTHER = drawn(3, 3)
TALL = drawn(4, 2)
WIDE = drawn(2, 4)
BATCH = drawn(2, 3, 3) + 2 * np.eye(3)
SIGNAL = drawn(3, 6)
REAL_SIGNAL = RNG.normal(size=(3, 6))
WEIGHTS = np.array([0.5, -1.0, 2.0])


def adjoint(x: Any) -> Any:
    return tp.conj(tp.matrix_transpose(x))


def hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def definite(x: Any) -> Any:
    return x @ adjoint(x) + 3 * np.eye(3)


def squared(x: Any) -> Any:
    """The sum of |x|**2, unevenly weighted, so that no term hides another."""
    weights = np.linspace(0.5, 2.0, x.size).reshape(x.shape)
    return tp.sum(tp.real(x * tp.conj(x)) * weights)


def _polar(x: Any) -> Any:
    u, _, vh = L.svd(x, full_matrices=False)
    return u @ vh


def _rescaled(x: Any) -> Any:
    u, s, vh = L.svd(x, full_matrices=False)
    return (u * tp.sin(s)) @ vh


def _of_eigh(x: Any) -> Any:
    e, v = L.eigh(hermitian(x))
    return (v * tp.exp(e / 4)) @ adjoint(v)


def _of_eig(x: Any) -> Any:
    e, v = L.eig(x)
    return tp.sum(squared(v[0]) + tp.sum(tp.abs(v[1]) * tp.imag(e) * tp.abs(e)))


def _of_qr(x: Any) -> Any:
    q, r = L.qr(x)
    return squared(q + 0.3j) + tp.sum(tp.imag(r * (1 + 2j)) * tp.real(r))


# What; the function; its arguments. All give real scalars.
LOSSES: list[tuple[str, Any, tuple[np.ndarray, ...]]] = [
    ("squared modulus", squared, (Z,)),
    ("real part of a square", lambda z: tp.sum(tp.real(z**2)), (Z,)),
    ("moduli", lambda z: tp.sum(tp.abs(z) * X), (Z,)),
    ("signs", lambda z: squared(tp.sign(z) + 1), (Z,)),
    ("angles", lambda z: tp.sum(tp.atan2(tp.imag(z), tp.real(z)) * X), (Z,)),
    ("conjugates", lambda z, w: tp.sum(tp.imag(tp.conj(z) * w + tp.conj(w) ** 2 * z)), (Z, W)),
    ("quotient", lambda z, w: squared(z / w), (Z, W)),
    ("power", lambda z, w: squared(z**w), (Z, W / 2)),
    ("real base, complex exponent", lambda x, w: squared(x**w), (X, W / 2)),
    ("real and complex", lambda x, z: squared(x * z + x), (X, Z)),
    ("real by broadcasting", lambda x, z: squared(x[:, None] * z - z / x[0]), (X, Z)),
    ("parts", lambda z: tp.sum(tp.exp(tp.real(z)) * tp.sin(tp.imag(z))), (Z,)),
    (
        "elementary functions",
        lambda z: squared(tp.sqrt(z) + tp.log(z) * tp.tanh(z) - tp.asinh(z) / tp.cosh(z)),
        (Z,),
    ),
    ("expm1 and log1p", lambda z: squared(tp.expm1(z) * tp.log1p(z)), (Z,)),
    ("product", lambda z: squared(tp.prod(z)), (Z,)),
    ("running product", lambda z: squared(tp.cumulative_prod(z)), (Z,)),
    ("mean", lambda z: squared(z - tp.mean(z)), (Z,)),
    ("chosen", lambda z, w: squared(tp.where(tp.abs(z) > 1, z * w, tp.conj(w))), (Z, W)),
    ("gathered", lambda z: squared(tp.take(z, np.array([1, 1, 3]))), (Z,)),
    ("inner product", lambda z, w: squared(tp.vecdot(z, w)), (Z, W)),
    (
        "matrix products",
        lambda a, b: squared(tp.matmul(a, adjoint(b)) @ tp.matrix_transpose(a)),
        (SQUARE, OTHER),
    ),
    ("real matrix, complex vector", lambda a, z: squared(a @ z), (RNG.normal(size=(3, 5)), Z)),
    (
        "Einstein sum",
        lambda a, b: squared(tp.einsum("bij,jk,bkl->bil", a, b, tp.conj(a))),
        (BATCH, OTHER),
    ),
    ("power spectrum", lambda z: squared(tp.fft.fft(z)), (SIGNAL,)),
    (
        "filtered",
        lambda x: tp.sum(tp.fft.irfft(tp.fft.rfft(x) ** 2, n=6) * REAL_SIGNAL),
        (REAL_SIGNAL,),
    ),
    ("inverse of half a spectrum", lambda z: tp.sum(tp.fft.irfft(z, n=9) ** 2), (SIGNAL,)),
    *(
        (f"vector norm {order}", lambda z, order=order: L.vector_norm(z, ord=order), (Z,))
        for order in (2, 1, 3, 0.5, -1, float("inf"), -float("inf"))
    ),
    *(
        (f"matrix norm {order}", lambda a, order=order: L.matrix_norm(a, ord=order), (SQUARE,))
        for order in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf"))
    ),
    ("inverse", lambda a: squared(L.inv(a)), (BATCH,)),
    ("solution", lambda a, b: squared(L.solve(a, b)), (SQUARE, OTHER)),
    ("determinant", lambda a: squared(L.det(a)), (BATCH,)),
    (
        "logarithm of a determinant",
        lambda a: squared(L.slogdet(a)[0] + 2j) + tp.sum(L.slogdet(a)[1] ** 2),
        (BATCH,),
    ),
    ("pseudo-inverse, tall", lambda a: squared(L.pinv(a)), (TALL,)),
    ("pseudo-inverse, wide", lambda a: squared(L.pinv(a)), (WIDE,)),
    ("Cholesky", lambda a: squared(L.cholesky(definite(a)) + 1j), (OTHER,)),
    ("QR, tall", _of_qr, (TALL,)),
    ("QR, square", _of_qr, (SQUARE,)),
    ("QR, wide", _of_qr, (WIDE,)),
    *(
        (f"singular values, {name}", lambda a: tp.sum(tp.exp(L.svdvals(a) / 3)), (a,))
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE))
    ),
    *(
        (f"polar factor, {name}", lambda a: squared(_polar(a) + 0.3j), (a,))
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("batch", BATCH))
    ),
    *(
        (f"rescaled singular values, {name}", lambda a: squared(_rescaled(a) + 0.3j), (a,))
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE))
    ),
    ("eigenvalues, Hermitian", lambda a: tp.sum(L.eigvalsh(hermitian(a)) ** 3), (SQUARE,)),
    ("function of a Hermitian matrix", lambda a: squared(_of_eigh(a) + 0.3j), (SQUARE,)),
    ("eigenvalues", lambda a: squared(tp.sum(L.eigvals(a) ** 2) + 1j), (SQUARE,)),
    ("eigenvectors", _of_eig, (SQUARE,)),
    ("eigenvectors of a real matrix", _of_eig, (SQUARE.real + 2 * np.tri(3, k=-1),)),
]

# What; the function. Holomorphic, elementwise.
HOLOMORPHIC: list[tuple[str, Any]] = [
    ("cube", lambda z: z**3),
    ("exponential", tp.exp),
    ("rational", lambda z: (z + 1) / (z * z - 2j)),
    ("root", tp.sqrt),
    ("logarithm", tp.log),
    ("power", lambda z: z ** (0.5 + 1j)),
    ("exponent", lambda z: (1 + 2j) ** z),
    ("trigonometric", lambda z: tp.tan(z) * tp.cos(z)),
    ("inverse sine", tp.asin),
    ("inverse cosine", tp.acos),
    ("inverse tangent", tp.atan),
    ("area functions", lambda z: tp.asinh(z) * tp.atanh(z)),
    ("area cosine", tp.acosh),
    ("expm1", tp.expm1),
    ("log1p", tp.log1p),
    ("sigmoid", tp.nn.sigmoid),
    ("reciprocal", tp.reciprocal),
]
