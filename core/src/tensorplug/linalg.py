"""Linear algebra, as the array API standard's extension ``linalg`` has it, and what tfjs adds."""

from __future__ import annotations

from tensorplug import ops
from tensorplug.ops.matrix_products import matmul as matmul
from tensorplug.ops.matrix_products import tensordot as tensordot
from tensorplug.ops.matrix_products import vecdot as vecdot
from tensorplug.ops.movement import matrix_transpose as matrix_transpose

_public = ops.public("linalg")
globals().update(_public)
__all__ = sorted(["matmul", "matrix_transpose", "tensordot", "vecdot", *_public])
