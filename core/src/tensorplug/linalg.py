"""Linear algebra, as the array API standard's extension ``linalg`` has it, and what tfjs adds."""

from __future__ import annotations

from tensorplug.introspection import families
from tensorplug.ops import matrix_products, movement

_public = {
    **families.public("linalg"),
    "matmul": matrix_products.matmul,
    "matrix_transpose": movement.matrix_transpose,
    "tensordot": matrix_products.tensordot,
    "vecdot": matrix_products.vecdot,
}
globals().update(_public)
__all__ = sorted(_public)
