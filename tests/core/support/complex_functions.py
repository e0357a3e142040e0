"""Functions of complex numbers, composed of many kernels: ours, and PyTorch's or JAX's."""

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


def t_squared(x: Any) -> Any:
    import torch

    weights = torch.linspace(0.5, 2.0, x.numel(), dtype=torch.float64).reshape(x.shape)
    return ((x * x.conj()).real * weights).sum()


def _polar(x: Any) -> Any:
    u, _, vh = L.svd(x, full_matrices=False)
    return u @ vh


def _t_polar(t: Any, x: Any) -> Any:
    u, _, vh = t.linalg.svd(x, full_matrices=False)
    return u @ vh


def _rescaled(x: Any) -> Any:
    u, s, vh = L.svd(x, full_matrices=False)
    return (u * tp.sin(s)) @ vh


def _t_rescaled(t: Any, x: Any) -> Any:
    u, s, vh = t.linalg.svd(x, full_matrices=False)
    return (u * s.sin()) @ vh


def _of_eigh(x: Any) -> Any:
    e, v = L.eigh(hermitian(x))
    return (v * tp.exp(e / 4)) @ adjoint(v)


def _t_of_eigh(t: Any, x: Any) -> Any:
    e, v = t.linalg.eigh((x + x.mH) / 2)
    return (v * (e / 4).exp()) @ v.mH


def _of_eig(x: Any) -> Any:
    e, v = L.eig(x)
    return tp.sum(squared(v[0]) + tp.sum(tp.abs(v[1]) * tp.imag(e) * tp.abs(e)))


def _t_of_eig(t: Any, x: Any) -> Any:
    e, v = t.linalg.eig(x)
    return t_squared(v[0]) + (v[1].abs() * e.imag * e.abs()).sum()


def _of_qr(x: Any) -> Any:
    q, r = L.qr(x)
    return squared(q + 0.3j) + tp.sum(tp.imag(r * (1 + 2j)) * tp.real(r))


def _t_of_qr(t: Any, x: Any) -> Any:
    q, r = t.linalg.qr(x)
    return t_squared(q + 0.3j) + ((r * (1 + 2j)).imag * r.real).sum()


# What; ours; PyTorch's, given torch; the arguments. All give real scalars.
LOSSES: list[tuple[str, Any, Any, tuple[np.ndarray, ...]]] = [
    ("squared modulus", squared, lambda _, z: t_squared(z), (Z,)),
    (
        "real part of a square",
        lambda z: tp.sum(tp.real(z**2)),
        lambda _, z: (z**2).real.sum(),
        (Z,),
    ),
    ("moduli", lambda z: tp.sum(tp.abs(z) * X), lambda t, z: (z.abs() * t.tensor(X)).sum(), (Z,)),
    ("signs", lambda z: squared(tp.sign(z) + 1), lambda t, z: t_squared(t.sgn(z) + 1), (Z,)),
    (
        "angles",
        lambda z: tp.sum(tp.atan2(tp.imag(z), tp.real(z)) * X),
        lambda t, z: (z.angle() * t.tensor(X)).sum(),
        (Z,),
    ),
    (
        "conjugates",
        lambda z, w: tp.sum(tp.imag(tp.conj(z) * w + tp.conj(w) ** 2 * z)),
        lambda _, z, w: (z.conj() * w + w.conj() ** 2 * z).imag.sum(),
        (Z, W),
    ),
    ("quotient", lambda z, w: squared(z / w), lambda _, z, w: t_squared(z / w), (Z, W)),
    ("power", lambda z, w: squared(z**w), lambda _, z, w: t_squared(z**w), (Z, W / 2)),
    (
        "real base, complex exponent",
        lambda x, w: squared(x**w),
        lambda _, x, w: t_squared(x.to(w.dtype) ** w),
        (X, W / 2),
    ),
    (
        "real and complex",
        lambda x, z: squared(x * z + x),
        lambda _, x, z: t_squared(x * z + x),
        (X, Z),
    ),
    (
        "real by broadcasting",
        lambda x, z: squared(x[:, None] * z - z / x[0]),
        lambda _, x, z: t_squared(x[:, None] * z - z / x[0]),
        (X, Z),
    ),
    (
        "parts",
        lambda z: tp.sum(tp.exp(tp.real(z)) * tp.sin(tp.imag(z))),
        lambda _, z: (z.real.exp() * z.imag.sin()).sum(),
        (Z,),
    ),
    (
        "elementary functions",
        lambda z: squared(tp.sqrt(z) + tp.log(z) * tp.tanh(z) - tp.asinh(z) / tp.cosh(z)),
        lambda _, z: t_squared(z.sqrt() + z.log() * z.tanh() - z.asinh() / z.cosh()),
        (Z,),
    ),
    (
        "expm1 and log1p",
        lambda z: squared(tp.expm1(z) * tp.log1p(z)),
        lambda _, z: t_squared(z.expm1() * z.log1p()),
        (Z,),
    ),
    ("product", lambda z: squared(tp.prod(z)), lambda _, z: t_squared(z.prod()), (Z,)),
    (
        "running product",
        lambda z: squared(tp.cumulative_prod(z)),
        lambda _, z: t_squared(z.cumprod(0)),
        (Z,),
    ),
    ("mean", lambda z: squared(z - tp.mean(z)), lambda _, z: t_squared(z - z.mean()), (Z,)),
    (
        "chosen",
        lambda z, w: squared(tp.where(tp.abs(z) > 1, z * w, tp.conj(w))),
        lambda t, z, w: t_squared(t.where(z.abs() > 1, z * w, w.conj())),
        (Z, W),
    ),
    (
        "gathered",
        lambda z: squared(tp.take(z, np.array([1, 1, 3]))),
        lambda _, z: t_squared(z[[1, 1, 3]]),
        (Z,),
    ),
    (
        "inner product",
        lambda z, w: squared(tp.vecdot(z, w)),
        lambda t, z, w: t_squared(t.vdot(z, w)),
        (Z, W),
    ),
    (
        "matrix products",
        lambda a, b: squared(tp.matmul(a, adjoint(b)) @ tp.matrix_transpose(a)),
        lambda _, a, b: t_squared(a @ b.mH @ a.mT),
        (SQUARE, OTHER),
    ),
    (
        "real matrix, complex vector",
        lambda a, z: squared(a @ z),
        lambda _, a, z: t_squared(a.to(z.dtype) @ z),
        (RNG.normal(size=(3, 5)), Z),
    ),
    (
        "Einstein sum",
        lambda a, b: squared(tp.einsum("bij,jk,bkl->bil", a, b, tp.conj(a))),
        lambda t, a, b: t_squared(t.einsum("bij,jk,bkl->bil", a, b, a.conj())),
        (BATCH, OTHER),
    ),
    (
        "power spectrum",
        lambda z: squared(tp.fft.fft(z)),
        lambda t, z: t_squared(t.fft.fft(z)),
        (SIGNAL,),
    ),
    (
        "filtered",
        lambda x: tp.sum(tp.fft.irfft(tp.fft.rfft(x) ** 2, n=6) * REAL_SIGNAL),
        lambda t, x: (t.fft.irfft(t.fft.rfft(x) ** 2, n=6) * t.tensor(REAL_SIGNAL)).sum(),
        (REAL_SIGNAL,),
    ),
    (
        "inverse of half a spectrum",
        lambda z: tp.sum(tp.fft.irfft(z, n=9) ** 2),
        lambda t, z: (t.fft.irfft(z, n=9) ** 2).sum(),
        (SIGNAL,),
    ),
    *(
        (
            f"vector norm {order}",
            lambda z, order=order: L.vector_norm(z, ord=order),
            lambda t, z, order=order: t.linalg.vector_norm(z, ord=order),
            (Z,),
        )
        for order in (2, 1, 3, 0.5, -1, float("inf"), -float("inf"))
    ),
    *(
        (
            f"matrix norm {order}",
            lambda a, order=order: L.matrix_norm(a, ord=order),
            lambda t, a, order=order: t.linalg.matrix_norm(a, ord=order),
            (SQUARE,),
        )
        for order in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf"))
    ),
    ("inverse", lambda a: squared(L.inv(a)), lambda t, a: t_squared(t.linalg.inv(a)), (BATCH,)),
    (
        "solution",
        lambda a, b: squared(L.solve(a, b)),
        lambda t, a, b: t_squared(t.linalg.solve(a, b)),
        (SQUARE, OTHER),
    ),
    (
        "determinant",
        lambda a: squared(L.det(a)),
        lambda t, a: t_squared(t.linalg.det(a)),
        (BATCH,),
    ),
    (
        "logarithm of a determinant",
        lambda a: squared(L.slogdet(a)[0] + 2j) + tp.sum(L.slogdet(a)[1] ** 2),
        lambda t, a: t_squared(t.linalg.slogdet(a)[0] + 2j) + (t.linalg.slogdet(a)[1] ** 2).sum(),
        (BATCH,),
    ),
    (
        "pseudo-inverse, tall",
        lambda a: squared(L.pinv(a)),
        lambda t, a: t_squared(t.linalg.pinv(a)),
        (TALL,),
    ),
    (
        "pseudo-inverse, wide",
        lambda a: squared(L.pinv(a)),
        lambda t, a: t_squared(t.linalg.pinv(a)),
        (WIDE,),
    ),
    (
        "Cholesky",
        lambda a: squared(L.cholesky(definite(a)) + 1j),
        lambda t, a: t_squared(t.linalg.cholesky(a @ a.mH + 3 * t.eye(3)) + 1j),
        (OTHER,),
    ),
    ("QR, tall", _of_qr, _t_of_qr, (TALL,)),
    ("QR, square", _of_qr, _t_of_qr, (SQUARE,)),
    ("QR, wide", _of_qr, _t_of_qr, (WIDE,)),
    *(
        (
            f"singular values, {name}",
            lambda a: tp.sum(tp.exp(L.svdvals(a) / 3)),
            lambda t, a: (t.linalg.svdvals(a) / 3).exp().sum(),
            (a,),
        )
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE))
    ),
    *(
        (
            f"polar factor, {name}",
            lambda a: squared(_polar(a) + 0.3j),
            lambda t, a: t_squared(_t_polar(t, a) + 0.3j),
            (a,),
        )
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("batch", BATCH))
    ),
    *(
        (
            f"rescaled singular values, {name}",
            lambda a: squared(_rescaled(a) + 0.3j),
            lambda t, a: t_squared(_t_rescaled(t, a) + 0.3j),
            (a,),
        )
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE))
    ),
    (
        "eigenvalues, Hermitian",
        lambda a: tp.sum(L.eigvalsh(hermitian(a)) ** 3),
        lambda t, a: (t.linalg.eigvalsh((a + a.mH) / 2) ** 3).sum(),
        (SQUARE,),
    ),
    (
        "function of a Hermitian matrix",
        lambda a: squared(_of_eigh(a) + 0.3j),
        lambda t, a: t_squared(_t_of_eigh(t, a) + 0.3j),
        (SQUARE,),
    ),
    (
        "eigenvalues",
        lambda a: squared(tp.sum(L.eigvals(a) ** 2) + 1j),
        lambda t, a: t_squared((t.linalg.eigvals(a) ** 2).sum() + 1j),
        (SQUARE,),
    ),
    ("eigenvectors", _of_eig, _t_of_eig, (SQUARE,)),
    ("eigenvectors of a real matrix", _of_eig, _t_of_eig, (SQUARE.real + 2 * np.tri(3, k=-1),)),
]

# What; f of tensors; f of JAX's arrays, given jax.numpy; the argument. Holomorphic, elementwise.
HOLOMORPHIC: list[tuple[str, Any, Any]] = [
    ("cube", lambda z: z**3, lambda _, z: z**3),
    ("exponential", tp.exp, lambda j, z: j.exp(z)),
    ("rational", lambda z: (z + 1) / (z * z - 2j), lambda _, z: (z + 1) / (z * z - 2j)),
    ("root", tp.sqrt, lambda j, z: j.sqrt(z)),
    ("logarithm", tp.log, lambda j, z: j.log(z)),
    ("power", lambda z: z ** (0.5 + 1j), lambda _, z: z ** (0.5 + 1j)),
    ("exponent", lambda z: (1 + 2j) ** z, lambda _, z: (1 + 2j) ** z),
    ("trigonometric", lambda z: tp.tan(z) * tp.cos(z), lambda j, z: j.tan(z) * j.cos(z)),
    ("inverse sine", tp.asin, lambda j, z: j.arcsin(z)),
    ("inverse cosine", tp.acos, lambda j, z: j.arccos(z)),
    ("inverse tangent", tp.atan, lambda j, z: j.arctan(z)),
    (
        "area functions",
        lambda z: tp.asinh(z) * tp.atanh(z),
        lambda j, z: j.arcsinh(z) * j.arctanh(z),
    ),
    # JAX's own has the derivative of the other branch where the real part is negative.
    ("area cosine", tp.acosh, lambda j, z: j.log(z + j.sqrt(z - 1) * j.sqrt(z + 1))),
    ("expm1", tp.expm1, lambda j, z: j.expm1(z)),
    ("log1p", tp.log1p, lambda j, z: j.log1p(z)),
    ("sigmoid", tp.nn.sigmoid, lambda j, z: 1 / (1 + j.exp(-z))),
    ("reciprocal", tp.reciprocal, lambda _, z: 1 / z),
]
