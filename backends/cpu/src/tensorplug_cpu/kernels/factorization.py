"""Factorizations by NumPy's LAPACK."""

from __future__ import annotations

from tensorplug.contract.tables import KernelTable
from tensorplug.host_functions import linalg
from tensorplug.ops.linalg import factorization as ops

kernels = KernelTable()

kernels.register(ops.CHOLESKY)(linalg.cholesky)
kernels.register(ops.MATRIX_INVERSE)(linalg.matrix_inverse)
kernels.register(ops.MATRIX_SOLVE)(linalg.matrix_solve)
kernels.register(ops.MATRIX_DETERMINANT)(linalg.matrix_determinant)
kernels.register(ops.LOG_MATRIX_DETERMINANT)(linalg.log_matrix_determinant)
kernels.register(ops.PSEUDO_INVERSE)(linalg.pseudo_inverse)
kernels.register(ops.QR)(linalg.qr)
kernels.register(ops.SVD)(linalg.svd)
kernels.register(ops.SELF_ADJOINT_EIG)(linalg.self_adjoint_eig)
kernels.register(ops.EIG)(linalg.eig)
