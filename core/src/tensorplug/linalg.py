"""Linear algebra, as the array API standard's extension ``linalg`` has it, and what tfjs adds."""

from __future__ import annotations

from tensorplug.ops.linalg.factorization import (
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from tensorplug.ops.linalg.matrices import (
    band_part,
    cross,
    diagonal,
    gram_schmidt,
    matrix_power,
    matrix_rank,
    outer,
    trace,
)
from tensorplug.ops.linalg.norms import euclidean_norm, matrix_norm, norm, vector_norm
from tensorplug.ops.matrix_products import matmul, tensordot, vecdot
from tensorplug.ops.movement import matrix_transpose

__all__ = [
    "band_part",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "euclidean_norm",
    "gram_schmidt",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
