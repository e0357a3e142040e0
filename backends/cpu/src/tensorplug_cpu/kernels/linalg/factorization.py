"""Factorizations by NumPy's LAPACK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.algorithms import host_functions
from tensorplug.plugin import specs
from tensorplug_cpu.arrays import UNROUNDED
from tensorplug_cpu.kernel_table import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import KernelSpec

kernels = Kernels()

_FUNCTIONS: Final[dict[KernelSpec, Callable[..., Any]]] = {
    specs.CHOLESKY: host_functions.linalg.cholesky,
    specs.EIG: host_functions.linalg.eig,
    specs.LOG_MATRIX_DETERMINANT: host_functions.linalg.log_matrix_determinant,
    specs.MATRIX_DETERMINANT: host_functions.linalg.matrix_determinant,
    specs.MATRIX_INVERSE: host_functions.linalg.matrix_inverse,
    specs.MATRIX_SOLVE: host_functions.linalg.matrix_solve,
    specs.PSEUDO_INVERSE: host_functions.linalg.pseudo_inverse,
    specs.QR: host_functions.linalg.qr,
    specs.SELF_ADJOINT_EIG: host_functions.linalg.self_adjoint_eig,
    specs.SVD: host_functions.linalg.svd,
}

for _spec, _function in _FUNCTIONS.items():
    kernels.register(_spec, because="faster", dtypes=UNROUNDED)(_function)
