"""Linear algebra, as the array API standard's extension ``linalg`` has it, and what tfjs adds."""

from __future__ import annotations

from tensorplug.ops.linalg import matmul
from tensorplug.ops.movement import matrix_transpose

__all__ = ["matmul", "matrix_transpose"]
