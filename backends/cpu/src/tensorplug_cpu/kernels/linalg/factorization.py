"""Factorizations by NumPy's LAPACK."""

from __future__ import annotations

from tensorplug.algorithms import host_functions
from tensorplug.plugin import KernelTable, specs
from tensorplug_cpu.arrays import UNROUNDED

kernels = KernelTable()

kernels.register(specs.CHOLESKY, dtypes=UNROUNDED)(host_functions.linalg.cholesky)
kernels.register(specs.MATRIX_INVERSE, dtypes=UNROUNDED)(host_functions.linalg.matrix_inverse)
kernels.register(specs.MATRIX_SOLVE, dtypes=UNROUNDED)(host_functions.linalg.matrix_solve)
kernels.register(specs.MATRIX_DETERMINANT, dtypes=UNROUNDED)(
    host_functions.linalg.matrix_determinant
)
kernels.register(specs.LOG_MATRIX_DETERMINANT, dtypes=UNROUNDED)(
    host_functions.linalg.log_matrix_determinant
)
kernels.register(specs.PSEUDO_INVERSE, dtypes=UNROUNDED)(host_functions.linalg.pseudo_inverse)
kernels.register(specs.QR, dtypes=UNROUNDED)(host_functions.linalg.qr)
kernels.register(specs.SVD, dtypes=UNROUNDED)(host_functions.linalg.svd)
kernels.register(specs.SELF_ADJOINT_EIG, dtypes=UNROUNDED)(host_functions.linalg.self_adjoint_eig)
kernels.register(specs.EIG, dtypes=UNROUNDED)(host_functions.linalg.eig)
