"""Reductions along axes. ``axis`` is None for all axes, an int, or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, inference, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ShapeError
from tensorplug.ops.default_integers import accumulates, gives_indices
from tensorplug.ops.elementwise.casting import astype

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, Axis, DTypeLike

__all__ = ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "sum"]


_AXES = {"axis": attributes.axes("x"), "keep_dims": attributes.flag(default=False)}


def _infer_accumulated(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
    dtype = dt.kernel_int if x.dtype is dt.bool_ else x.dtype
    return TensorType(dtype, shapes.reduce(x.shape, axis, keep_dims=keep_dims))


def _infer_not_empty(x: TensorType, *, axis: tuple[int, ...], keep_dims: bool) -> TensorType:
    result = inference.reduced(x, axis=axis, keep_dims=keep_dims)
    if result.size and not x.size:
        raise ShapeError("the reduced axes must not be empty")
    return result


SUM = KernelSpec(
    "Sum",
    ("x",),
    _infer_accumulated,
    attributes=_AXES,
    accepts=dt.FIXED,
    linear=("x",),
    leading=("axis",),
)
PROD = KernelSpec(
    "Prod",
    ("x",),
    _infer_accumulated,
    attributes=_AXES,
    accepts=dt.FIXED,
    leading=("axis",),
)
MEAN = KernelSpec(
    "Mean",
    ("x",),
    inference.reduced,
    attributes=_AXES,
    accepts=dt.FIXED,
    promote=("x",),
    inexact=True,
    linear=("x",),
    leading=("axis",),
)
_EXTREME = {
    "reduction_indices": attributes.axes("x"),
    "keep_dims": attributes.flag(default=False),
}


def _infer_extreme(
    x: TensorType, *, reduction_indices: tuple[int, ...], keep_dims: bool
) -> TensorType:
    return _infer_not_empty(x, axis=reduction_indices, keep_dims=keep_dims)


ORDERED = dt.REAL | dt.BOOL  # dtypes with an order; False comes before True

MAX = KernelSpec(
    "Max",
    ("x",),
    _infer_extreme,
    attributes=_EXTREME,
    accepts=ORDERED,
    leading=("reduction_indices",),
)
MIN = KernelSpec(
    "Min",
    ("x",),
    _infer_not_empty,
    attributes=_AXES,
    accepts=ORDERED,
    leading=("axis",),
)
ANY = KernelSpec(
    "Any",
    ("x",),
    inference.reduced,
    attributes=_AXES,
    accepts=dt.BOOL,
    leading=("axis",),
)
ALL = KernelSpec(
    "All",
    ("x",),
    inference.reduced,
    attributes=_AXES,
    accepts=dt.BOOL,
    leading=("axis",),
)

_WIDENED = {  # the dtypes in which small integers are added and multiplied
    **dict.fromkeys((dt.int8, dt.int16), dt.kernel_int),
    **dict.fromkeys((dt.uint8, dt.uint16), dt.uint32),
}


def widen(x: Any, dtype: Any, caller: str) -> Any:
    """Return ``x`` in ``dtype``, for the sum or product ``caller``.

    Without ``dtype``, smaller integers are widened to 32 bits, as the standard requires.
    """
    if dtype is not None:
        return astype(x, dt.of(dtype, caller))
    own = getattr(x, "dtype", None)
    if not isinstance(own, dt.DType):  # not a tensor yet
        x = as_tensor(x, what=f"{caller}: x")
        own = x.dtype
    wide = _WIDENED.get(own)
    return x if wide is None else astype(x, wide)


@chained
@accumulates(dt.INTEGER | dt.BOOL)
def sum(
    x: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the sum of the elements along ``axis``; 0 if there are none.

    Without ``dtype``, booleans and integers of 8 and 16 bits are added in int32, unsigned ones
    in uint32; other dtypes stay. Integers wrap. ``dtype`` converts the elements first.
    (The array API standard's ``sum``; the kernel Sum keeps all dtypes but bool.)

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.sum([[1, 2], [3, 4]])
        Tensor(10, dtype=int32, device='cpu')
        >>> tp.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
        Tensor([4., 6.], dtype=float32, device='cpu')
        >>> tp.sum([[1.0, 2.0], [3.0, 4.0]], axis=-1, keepdims=True)
        Tensor([[3.],
                [7.]], dtype=float32, device='cpu')
        >>> tp.sum([True, False, True])  # the number of True
        Tensor(2, dtype=int32, device='cpu')

    """
    return dispatch(SUM, widen(x, dtype, "sum"), axis=axis, keep_dims=keepdims)


@chained
@accumulates(dt.INTEGER | dt.BOOL)
def prod(
    x: ArrayLike,
    /,
    axis: Axis | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the product of the elements along ``axis``; 1 if there are none.

    Dtypes are as for ``sum``: integers of 8 and 16 bits are multiplied in 32 bits, and all
    integers wrap. (The array API standard's ``prod``.)

    ``x``: numbers of any shape; ``dtype``: in which to multiply; ``keepdims``: whether reduced
    axes stay, with length 1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.prod([[1.0, 2.0], [3.0, 4.0]], axis=1)
        Tensor([ 2., 12.], dtype=float32, device='cpu')
        >>> tp.prod([])
        Tensor(1., dtype=float32, device='cpu')

    """
    return dispatch(PROD, widen(x, dtype, "prod"), axis=axis, keep_dims=keepdims)


@chained
def mean(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the arithmetic mean along ``axis``; NaN if there are no elements.

    Integers and booleans become float32 first. (The array API standard's ``mean``, which does
    not specify integers.)

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: strings.

    Examples:
        >>> tp.mean([[1, 2], [3, 4]])
        Tensor(2.5, dtype=float32, device='cpu')
        >>> tp.mean([[1, 2], [3, 4]], axis=0)
        Tensor([2., 3.], dtype=float32, device='cpu')
        >>> x = tp.asarray([[1.0, 3.0], [5.0, 9.0]])
        >>> x - x.mean(axis=1, keepdims=True)
        Tensor([[-1.,  1.],
                [-2.,  2.]], dtype=float32, device='cpu')

    """
    return dispatch(MEAN, x, axis=axis, keep_dims=keepdims)


@chained
def max(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the largest element along ``axis``, in the dtype of ``x``; NaN if there is a NaN.

    The gradient is shared equally among the largest elements. (The array API standard's
    ``max``.)

    ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        ShapeError: a reduced axis is empty.
        DTypeError: complex numbers or strings.

    Examples:
        >>> tp.max([[1, 5], [7, 2]])
        Tensor(7, dtype=int32, device='cpu')
        >>> tp.max([[1, 5], [7, 2]], axis=1)
        Tensor([5, 7], dtype=int32, device='cpu')
        >>> tp.max([1.0, tp.nan, 3.0])  # see nanmax
        Tensor(nan, dtype=float32, device='cpu')

    """
    return dispatch(MAX, x, reduction_indices=axis, keep_dims=keepdims)


@chained
def min(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the smallest element along ``axis``, in the dtype of ``x``; NaN if there is a NaN.

    The gradient is shared equally among the smallest elements. (The array API standard's
    ``min``.)

    ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        ShapeError: a reduced axis is empty.
        DTypeError: complex numbers or strings.

    Examples:
        >>> tp.min([[1, 5], [7, 2]], axis=0)
        Tensor([1, 2], dtype=int32, device='cpu')
        >>> tp.min([1.0, tp.nan, 3.0])  # see nanmin
        Tensor(nan, dtype=float32, device='cpu')

    """
    return dispatch(MIN, x, axis=axis, keep_dims=keepdims)


@chained
def any(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return whether any element along ``axis`` is True or nonzero; False if there are none.

    NaN is nonzero. (The array API standard's ``any``.)

    ``x``: numbers or booleans of any shape; ``keepdims``: whether reduced axes stay, with length
    1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.any([[0, 0], [0, 3]], axis=1)
        Tensor([False,  True], dtype=bool, device='cpu')
        >>> tp.any([])
        Tensor(False, dtype=bool, device='cpu')

    """
    return dispatch(ANY, astype(x, dt.bool_), axis=axis, keep_dims=keepdims)


@chained
def all(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return whether all elements along ``axis`` are True or nonzero; True if there are none.

    NaN is nonzero. (The array API standard's ``all``.)

    ``x``: numbers or booleans of any shape; ``keepdims``: whether reduced axes stay, with length
    1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.all([[1, 0], [2, 3]], axis=1)
        Tensor([False,  True], dtype=bool, device='cpu')
        >>> tp.all([])
        Tensor(True, dtype=bool, device='cpu')

    """
    return dispatch(ALL, astype(x, dt.bool_), axis=axis, keep_dims=keepdims)


@chained
@gives_indices()
def count_nonzero(x: ArrayLike, /, axis: Axis | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the number of nonzero elements along ``axis`` (int32). NaN is nonzero.

    (The array API standard's ``count_nonzero``.)

    ``x``: numbers of any shape; ``keepdims``: whether reduced axes stay, with length 1.

    Raises:
        DTypeError: strings.
        ShapeError: an axis is out of range or named twice.

    Examples:
        >>> tp.count_nonzero([[0, 7], [0, 0]], axis=0)
        Tensor([0, 1], dtype=int32, device='cpu')
        >>> tp.count_nonzero(tp.asarray([0.5, 2.0, 3.0]) > 1)
        Tensor(2, dtype=int32, device='cpu')

    """
    return dispatch(SUM, astype(x, dt.bool_), axis=axis, keep_dims=keepdims)
