"""The positions of the largest and the least elements: specs and public functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.ops.default_integers import gives_indices
from tensorplug.ops.movement import reshape
from tensorplug.ops.reduction import ORDERED, _infer_not_empty

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike


__all__ = ["argmax", "argmin"]


def _infer_arg(x: TensorType, *, axis: int) -> TensorType:
    _infer_not_empty(x, axis=(axis,), keep_dims=False)
    return TensorType(dt.kernel_int, shapes.reduce(x.shape, (axis,), keep_dims=False))


_ARG = {"axis": attributes.axis("x", 0)}
ARG_MAX = KernelSpec(
    "ArgMax",
    ("x",),
    _infer_arg,
    attributes=_ARG,
    accepts=ORDERED,
    leading=("axis",),
)
ARG_MIN = KernelSpec(
    "ArgMin",
    ("x",),
    _infer_arg,
    attributes=_ARG,
    accepts=ORDERED,
    leading=("axis",),
)


@chained
@gives_indices()
def argmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index (int32) of the first largest element along ``axis``.

    Without ``axis`` it is that of the flattened tensor. NaN counts as largest. (The array API
    standard's ``argmax``.)

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        ShapeError: the axis is empty.
        DTypeError: complex numbers or strings.

    Examples:
        >>> scores = [[0.1, 0.7, 0.2], [0.5, 0.0, 0.5]]
        >>> tp.argmax(scores, axis=1)  # the first of equals
        Tensor([1, 0], dtype=int32, device='cpu')
        >>> tp.argmax(scores)
        Tensor(1, dtype=int32, device='cpu')

    """
    return _index_of(ARG_MAX, x, "argmax", axis, keepdims=keepdims)


@chained
@gives_indices()
def argmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index (int32) of the first smallest element along ``axis``.

    Without ``axis`` it is that of the flattened tensor. NaN counts as smallest, so its index is
    returned. (The array API standard's ``argmin``.)

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        ShapeError: the axis is empty.
        DTypeError: complex numbers or strings.

    Examples:
        >>> tp.argmin([[4, 2], [1, 1]], axis=1)
        Tensor([1, 0], dtype=int32, device='cpu')
        >>> tp.argmin([4.0, tp.nan, 1.0])
        Tensor(1, dtype=int32, device='cpu')

    """
    return _index_of(ARG_MIN, x, "argmin", axis, keepdims=keepdims)


def _index_of(
    spec: KernelSpec, x: Any, caller: str, axis: int | None, *, keepdims: bool
) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    flag(keepdims, f"{caller}: keepdims")
    if axis is None:
        index = dispatch(spec, reshape(tensor, (-1,) if tensor.size else (0,)), axis=0)
        return reshape(index, (1,) * tensor.ndim) if keepdims else index
    index = dispatch(spec, tensor, axis=axis)
    if not keepdims:
        return index
    at = shapes.normalize_axis(axis, tensor.ndim)
    return reshape(index, shapes.reduce(tensor.shape, (at,), keep_dims=True))
