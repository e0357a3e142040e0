"""Reductions along axes. ``axis`` is None for all axes, an int, or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import attributes, inference, shapes
from tensorplug import dtypes as dt
from tensorplug.dispatch import as_tensor, chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.elementwise import astype
from tensorplug.ops.movement import reshape
from tensorplug.spec import KernelSpec, TensorType

if TYPE_CHECKING:
    from tensorplug.tensor import Tensor

__all__ = [
    "all",
    "any",
    "argmax",
    "max",
    "mean",
    "min",
    "prod",
    "sum",
]

_AXES = {"axis": attributes.axes("x"), "keep_dims": attributes.flag(default=False)}


def _accumulated(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
    dtype = dt.default_int if x.dtype is dt.bool_ else x.dtype
    return TensorType(dtype, shapes.reduce(x.shape, axis, keep_dims=keep_dims))


def _not_empty(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
    result = inference.reduced(x, axis=axis, keep_dims=keep_dims)
    if result.size and not x.size:
        raise ShapeError("the reduced axes are empty, and this reduction has no value for that")
    return result


SUM = KernelSpec("Sum", ("x",), _accumulated, attributes=_AXES, accepts=dt.FIXED)
PROD = KernelSpec("Prod", ("x",), _accumulated, attributes=_AXES, accepts=dt.FIXED)
MEAN = KernelSpec(
    "Mean",
    ("x",),
    inference.reduced,
    attributes=_AXES,
    accepts=dt.FIXED,
    promote=("x",),
    inexact=True,
)
_EXTREME = {
    "reduction_indices": attributes.axes("x"),
    "keep_dims": attributes.flag(default=False),
}


def _extreme(x: TensorType, *, reduction_indices: tuple[int, ...], keep_dims: bool) -> TensorType:
    return _not_empty(x, axis=reduction_indices, keep_dims=keep_dims)


MAX = KernelSpec("Max", ("x",), _extreme, attributes=_EXTREME, accepts=dt.REAL)
MIN = KernelSpec(
    "Min",
    ("x",),
    _not_empty,
    attributes=_AXES,
    accepts=dt.REAL,
)
ANY = KernelSpec("Any", ("x",), inference.reduced, attributes=_AXES, accepts=dt.BOOL)
ALL = KernelSpec("All", ("x",), inference.reduced, attributes=_AXES, accepts=dt.BOOL)


def _arg(x: TensorType, *, axis: int) -> TensorType:
    _not_empty(x, axis=(axis,), keep_dims=False)
    return TensorType(dt.default_int, shapes.reduce(x.shape, (axis,), keep_dims=False))


ARG_MAX = KernelSpec(
    "ArgMax", ("x",), _arg, attributes={"axis": attributes.axis("x", 0)}, accepts=dt.REAL
)


@chained
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum of the elements along ``axis``; 0 where there are none.

    Booleans are counted in int32; other dtypes stay, and integers wrap. ``dtype`` converts
    the elements first.
    """
    tensor = x if dtype is None else astype(x, dt.of(dtype, "sum"))
    return dispatch(SUM, tensor, axis=axis, keep_dims=keepdims)


@chained
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product of the elements along ``axis``; 1 where there are none."""
    tensor = x if dtype is None else astype(x, dt.of(dtype, "prod"))
    return dispatch(PROD, tensor, axis=axis, keep_dims=keepdims)


@chained
def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the arithmetic mean along ``axis``; NaN where there are no elements.

    Integers and booleans become float32 first.
    """
    return dispatch(MEAN, x, axis=axis, keep_dims=keepdims)


@chained
def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the largest element along ``axis``; NaN if there is a NaN.

    Raises:
        ShapeError: when a reduced axis is empty.

    """
    return dispatch(MAX, x, reduction_indices=axis, keep_dims=keepdims)


@chained
def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element along ``axis``; NaN if there is a NaN.

    Raises:
        ShapeError: when a reduced axis is empty.

    """
    return dispatch(MIN, x, axis=axis, keep_dims=keepdims)


@chained
def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether any element along ``axis`` is True (not zero); False if there are none."""
    return dispatch(ANY, astype(x, dt.bool_), axis=axis, keep_dims=keepdims)


@chained
def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements along ``axis`` are True (not zero); True if there are none."""
    return dispatch(ALL, astype(x, dt.bool_), axis=axis, keep_dims=keepdims)


@chained
def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index (int32) of the first largest element along ``axis``.

    Without ``axis``, of the flattened tensor. A NaN counts as largest.

    Raises:
        ShapeError: when the axis is empty.

    """
    tensor = as_tensor(x, what="argmax: x")
    if axis is None:
        index = dispatch(ARG_MAX, reshape(tensor, (-1,)), axis=0)
        return reshape(index, (1,) * tensor.ndim) if keepdims else index
    index = dispatch(ARG_MAX, tensor, axis=axis)
    if not keepdims:
        return index
    at = shapes.normalize_axis(axis, tensor.ndim)
    return reshape(index, shapes.reduce(tensor.shape, (at,), keep_dims=True))
