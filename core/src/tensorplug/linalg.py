"""Linear algebra, as the array API standard's extension ``linalg`` has it, and what tfjs adds."""

from __future__ import annotations

from tensorplug import ops

_public = ops.public("linalg")
globals().update(_public)
__all__ = sorted(["matmul", "matrix_transpose", "tensordot", "vecdot", *_public])
