"""Order: the largest entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import attributes
from tensorplug import dtypes as dt
from tensorplug.dispatch import chained, dispatch_several
from tensorplug.errors import ShapeError
from tensorplug.spec import KernelSpec, TensorType

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

__all__ = [
    "topk",
]


def _top_k(x: TensorType, *, k: int) -> tuple[TensorType, TensorType]:
    if x.rank == 0:
        raise ShapeError("x must have at least rank 1")
    if k > x.shape[-1]:
        raise ShapeError(f"k is {k}, but the last axis has length {x.shape[-1]}")
    shape = (*x.shape[:-1], k)
    return TensorType(x.dtype, shape), TensorType(dt.default_int, shape)


TOP_K = KernelSpec(
    "TopK",
    ("x",),
    _top_k,
    attributes={
        "k": attributes.integer(1, at_least=0),
        "sorted": attributes.flag(default=True),
    },
    outputs=("values", "indices"),
    accepts=dt.REAL,
)


@chained
def topk(x: Any, /, k: int = 1, *, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest entries of the last axis and their indices (int32).

    Largest first, the lowest index first among equals; a NaN counts as largest. (TensorFlow's
    TopKV2.) ``sorted=False`` permits any order; the backends here sort all the same.

    Raises:
        ShapeError: rank 0, or ``k`` larger than the last axis.

    """
    values, indices = dispatch_several(TOP_K, x, k=k, sorted=sorted)
    return values, indices
