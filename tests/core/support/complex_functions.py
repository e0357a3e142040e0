"""Functions of complex matrices in which the phases of factors, which are any, cancel."""

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
TALL = drawn(4, 2)
WIDE = drawn(2, 4)
BATCH = drawn(2, 3, 3) + 2 * np.eye(3)


def adjoint(x: Any) -> Any:
    return tp.conj(tp.matrix_transpose(x))


def hermitian(x: Any) -> Any:
    return (x + adjoint(x)) / 2


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


# What; the function; its argument. All give real scalars.
LOSSES: list[tuple[str, Any, np.ndarray]] = [
    ("QR, tall", _of_qr, TALL),
    ("QR, square", _of_qr, SQUARE),
    ("QR, wide", _of_qr, WIDE),
    *(
        (f"polar factor, {name}", lambda a: squared(_polar(a) + 0.3j), a)
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("batch", BATCH))
    ),
    *(
        (f"rescaled singular values, {name}", lambda a: squared(_rescaled(a) + 0.3j), a)
        for name, a in (("square", SQUARE), ("tall", TALL), ("wide", WIDE))
    ),
    ("function of a Hermitian matrix", lambda a: squared(_of_eigh(a) + 0.3j), SQUARE),
    ("eigenvectors", _of_eig, SQUARE),
    ("eigenvectors of a real matrix", _of_eig, SQUARE.real + 2 * np.tri(3, k=-1)),
]
