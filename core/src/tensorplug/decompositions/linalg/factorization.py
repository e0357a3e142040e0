"""Factorizations run in LAPACK on the host, for devices without kernels for them."""

from __future__ import annotations

from tensorplug.contract.tables import DecompositionTable
from tensorplug.host_functions import linalg
from tensorplug.ops.linalg import eigenvalues, systems
from tensorplug.ops.linalg import factorization as ops

decompositions: DecompositionTable = DecompositionTable()
decompositions.on_host(ops.CHOLESKY)(linalg.cholesky)
decompositions.on_host(systems.MATRIX_INVERSE)(linalg.matrix_inverse)
decompositions.on_host(systems.MATRIX_SOLVE)(linalg.matrix_solve)
decompositions.on_host(systems.MATRIX_DETERMINANT)(linalg.matrix_determinant)
decompositions.on_host(systems.LOG_MATRIX_DETERMINANT)(linalg.log_matrix_determinant)
decompositions.on_host(ops.PSEUDO_INVERSE)(linalg.pseudo_inverse)
decompositions.on_host(ops.QR)(linalg.qr)
decompositions.on_host(ops.SVD)(linalg.svd)
decompositions.on_host(eigenvalues.SELF_ADJOINT_EIG)(linalg.self_adjoint_eig)
decompositions.on_host(eigenvalues.EIG)(linalg.eig)
