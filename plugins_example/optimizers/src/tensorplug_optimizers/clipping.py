"""Keeping gradients from growing beyond bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import tensorplug as tp
from tensorplug.plugin import ArgumentError, tree
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug import Tensor


_EPSILON: Final = 1e-6  # PyTorch's


def global_norm(gradients: Any) -> Tensor:
    """Return the length of all leaves of a tree of tensors taken as one vector, of rank 0.

    In float32 for narrower floats. A tree without leaves has norm 0.
    """
    squares = [_sum_of_squares(gradient) for gradient in tree.flatten(gradients)[0]]
    return tp.sqrt(sum(squares[1:], squares[0])) if squares else tp.asarray(0.0)


def clip_by_global_norm(gradients: Any, max_norm: float) -> tuple[Any, Tensor]:
    """Return gradients whose ``global_norm`` is ``max_norm`` at most, and what it was before.

    All are multiplied by ``min(1, max_norm / (norm + 1e-6))``, as PyTorch's ``clip_grad_norm_``
    does: their direction stays. If the norm is infinite, infinite gradients become NaN and others
    0; if it is NaN, all become NaN: look at the norm.

    Raises:
        ArgumentError: ``max_norm`` is not positive.

    """
    if not max_norm > 0:
        raise ArgumentError(f"clip_by_global_norm: max_norm must be positive, got {max_norm!r}")
    norm = global_norm(gradients)
    factor = tp.minimum(max_norm / (norm + _EPSILON), 1.0)

    def clipped(gradient: Tensor) -> Tensor:
        return (gradient * factor.astype(dt.real_part(gradient.dtype), copy=False)).astype(
            gradient.dtype, copy=False
        )

    return tp.tree_map(clipped, gradients), norm


def _sum_of_squares(x: Tensor) -> Tensor:
    size = tp.abs(x)
    return tp.sum(tp.square(size.astype(size.dtype.compute, copy=False)))
