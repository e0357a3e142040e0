"""Matrices, numerics and movement: values and gradients compared with PyTorch's, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.torch_comparison import agree, agree_in_second_order, torch

import tensorplug as tp

pytestmark = pytest.mark.usefixtures("on_the_cpu")
F = torch.nn.functional

RNG = np.random.default_rng(11)


def draw(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2.0, size=shape)


X = draw(4, 3)
SQUARE = draw(2, 3, 3) + 4 * np.eye(3)
IDS = np.array([2, 0, 2, 1, 0])

ids = torch.from_numpy(IDS)

NUMERICS = [
    ("solution of equations", tp.linalg.solve, torch.linalg.solve, (SQUARE, draw(2, 3, 2))),
    ("inverse", lambda x: tp.linalg.inv(x) ** 2, lambda x: torch.linalg.inv(x) ** 2, (SQUARE,)),
    ("determinant", tp.linalg.det, torch.linalg.det, (SQUARE,)),
    (
        "logarithm of a determinant",
        lambda x: tp.linalg.slogdet(x @ tp.matrix_transpose(x)).logabsdet,
        lambda x: torch.logdet(x @ x.mT),
        (SQUARE,),
    ),
    (
        "Cholesky",
        lambda x: tp.linalg.cholesky(x @ tp.matrix_transpose(x)),
        lambda x: torch.linalg.cholesky(x @ x.mT),
        (SQUARE,),
    ),
    (
        "projectors of eigenvectors",
        lambda x: (
            (
                (e := tp.linalg.eigh(x + tp.matrix_transpose(x))).eigenvectors
                * tp.exp(-e.eigenvalues)[..., None, :]
            )
            @ tp.matrix_transpose(e.eigenvectors)
        ),
        lambda x: torch.matrix_exp(-(x + x.mT)),
        (draw(2, 3, 3),),
    ),
    ("singular values", tp.linalg.svdvals, torch.linalg.svdvals, (draw(2, 4, 3),)),
    (
        "orthogonal part",
        lambda x: tp.linalg.qr(x).Q * tp.linalg.qr(x).R,
        lambda x: torch.linalg.qr(x).Q * torch.linalg.qr(x).R,
        (SQUARE,),
    ),
    ("pseudoinverse", tp.linalg.pinv, torch.linalg.pinv, (draw(4, 3),)),
    (
        "power of a matrix",
        lambda x: tp.linalg.matrix_power(x, 5),
        lambda x: torch.linalg.matrix_power(x, 5),
        (SQUARE / 4,),
    ),
    (
        "norms",
        lambda x: tp.stack([tp.linalg.vector_norm(x, ord=p) for p in (1, 2, 3, 0.5)]),
        lambda x: torch.stack([torch.linalg.vector_norm(x, p) for p in (1, 2, 3, 0.5)]),
        (X,),
    ),
    (
        "Einstein sum of three",
        lambda a, b, c: tp.einsum("bij,jk,bkl->bil", a, b, c),
        lambda a, b, c: torch.einsum("bij,jk,bkl->bil", a, b, c),
        (SQUARE, draw(3, 4), draw(2, 4, 2)),
    ),
    (
        "power spectrum",
        lambda x: tp.square(tp.abs(tp.fft.fft(tp.complex(x, tp.zeros_like(x))))),
        lambda x: torch.fft.fft(x).abs() ** 2,
        (X,),
    ),
    (
        "filter in the frequency domain",
        lambda x, k: tp.fft.irfft(tp.fft.rfft(x) * tp.fft.rfft(k), n=8),
        lambda x, k: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(k), n=8),
        (draw(2, 8), draw(8)),
    ),
    (
        "running sums and products",
        lambda x: tp.cumulative_prod(tp.cumulative_sum(x, axis=0), axis=1),
        lambda x: x.cumsum(0).cumprod(1),
        (X,),
    ),
    (
        "running log of sums",
        lambda x: tp.cumulative_log_sum_exp(x, axis=1),
        lambda x: torch.logcumsumexp(x, 1),
        (X,),
    ),
    (
        "log of sums",
        lambda x: tp.log_sum_exp(x, axis=(0, 1)),
        lambda x: torch.logsumexp(x, (0, 1)),
        (X,),
    ),
    (
        "standard deviation",
        lambda x: tp.std(x, axis=0, correction=1) / tp.var(x),
        lambda x: x.std(0) / x.var(correction=0),
        (X,),
    ),
    ("covariance", tp.cov, torch.cov, (X,)),
    (
        "median and quantiles",
        lambda x: tp.median(x, axis=0) * tp.quantile(x, 0.3, axis=0),
        lambda x: torch.quantile(x, 0.5, 0) * torch.quantile(x, 0.3, 0),
        (X,),
    ),
    (
        "elementary functions",
        lambda a, b: tp.atan2(tp.asinh(a), tp.log1p(b)) * tp.hypot(a, b) + tp.logaddexp(a, b),
        lambda a, b: (
            torch.atan2(torch.asinh(a), torch.log1p(b)) * torch.hypot(a, b) + torch.logaddexp(a, b)
        ),
        (X, positive(1, 3)),
    ),
    (
        "broadcasts",
        lambda a, b, c: (a[:, None] * b - c) ** 3 / (1 + tp.abs(b)),
        lambda a, b, c: (a[:, None] * b - c) ** 3 / (1 + b.abs()),
        (X, draw(5, 1), draw(1, 5, 3)),
    ),
    (
        "mixed precision",
        lambda x: tp.astype(tp.astype(x, tp.float32) * 2.0, tp.float64) * x,
        lambda x: (x.float() * 2.0).double() * x,
        (np.round(X * 8) / 8,),
    ),
]

MOVING = [
    (
        "sums of segments",
        lambda x: tp.unsorted_segment_sum(x, IDS, 3) ** 2,
        lambda x: torch.zeros(3, 4, dtype=torch.float64).index_add(0, ids, x) ** 2,
        (draw(5, 4),),
    ),
    (
        "means of segments",
        lambda x: (
            tp.unsorted_segment_sum(x, IDS, 3)
            / tp.astype(tp.bincount(IDS, size=3), tp.float64)[:, None]
        ),
        lambda x: (
            torch.zeros(3, 4, dtype=torch.float64).index_add(0, ids, x)
            / torch.bincount(ids)[:, None]
        ),
        (draw(5, 4),),
    ),
    (
        "scattered updates",
        lambda x, u: tp.tensor_scatter_update(x, [[2], [0]], u) ** 2,
        lambda x, u: x.index_copy(0, torch.tensor([2, 0]), u) ** 2,
        (X, draw(2, 3)),
    ),
    (
        "elements by index",
        lambda x: tp.take_along_axis(x, np.array([[0, 2], [1, 1], [2, 0], [2, 2]]), axis=1) ** 2,
        lambda x: torch.gather(x, 1, torch.tensor([[0, 2], [1, 1], [2, 0], [2, 2]])) ** 2,
        (X,),
    ),
    (
        "sorted and weighted",
        lambda x: tp.sort(x, axis=0, descending=True) * np.arange(1.0, 5)[:, None],
        lambda x: (
            x.sort(0, descending=True)[0] * torch.arange(1.0, 5, dtype=torch.float64)[:, None]
        ),
        (X,),
    ),
    (
        "rolled, flipped, tiled",
        lambda x: tp.tile(tp.roll(tp.flip(x, axis=1), 2, axis=0) * x, (2, 3)),
        lambda x: (x.flip(1).roll(2, 0) * x).tile(2, 3),
        (X,),
    ),
    (
        "triangles and diagonals",
        lambda x: tp.tril(x) @ tp.triu(x, k=1) + tp.linalg.diagonal(x)[..., None],
        lambda x: x.tril() @ x.triu(1) + torch.diagonal(x, dim1=-2, dim2=-1)[..., None],
        (SQUARE,),
    ),
    (
        "depth to pixels",
        lambda x: tp.depth_to_space(x, 2) ** 2,
        lambda x: x.reshape(1, 2, 3, 2, 2, 2).permute(0, 1, 3, 2, 4, 5).reshape(1, 4, 6, 2) ** 2,
        (draw(1, 2, 3, 8),),
    ),
    (
        "differences of neighbours",
        lambda x: tp.diff(x, 2, axis=0) ** 2,
        lambda x: x.diff(2, 0) ** 2,
        (X,),
    ),
]

ALL = [*NUMERICS, *MOVING]


@pytest.mark.parametrize("row", ALL, ids=[row[0] for row in ALL])
def test_values_and_gradients(row: Any) -> None:
    agree(*row[1:])


@pytest.mark.parametrize("row", ALL, ids=[row[0] for row in ALL])
def test_hessian_vector_products(row: Any) -> None:
    agree_in_second_order(*row[1:])
