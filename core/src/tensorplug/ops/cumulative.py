"""Running sums and products along an axis, and differences of neighbours."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from tensorplug.contract import attributes, shapes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch.calls import as_tensor, chained, dispatch
from tensorplug.errors import ArgumentError, ShapeError
from tensorplug.ops.creation import full
from tensorplug.ops.default_integers import accumulates
from tensorplug.ops.elementwise.arithmetic import subtract
from tensorplug.ops.elementwise.comparison import not_equal
from tensorplug.ops.elementwise.powers import logaddexp
from tensorplug.ops.extents import slice
from tensorplug.ops.joining import concat
from tensorplug.ops.kinds import floating
from tensorplug.ops.movement import broadcast_to
from tensorplug.ops.reduction import widen

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import ArrayLike, DTypeLike

__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_log_sum_exp",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
]


def _infer_running(x: TensorType) -> TensorType:
    return TensorType(dt.kernel_int if x.dtype is dt.bool_ else x.dtype, x.shape)


_ATTRIBUTES = {
    "axis": attributes.axis("x", 0),
    "exclusive": attributes.flag(default=False),
    "reverse": attributes.flag(default=False),
}
CUMSUM = KernelSpec(
    "Cumsum",
    ("x",),
    _infer_running,
    attributes=_ATTRIBUTES,
    accepts=dt.FIXED,
    linear=("x",),
    leading=("axis",),
)
CUMPROD = KernelSpec(
    "Cumprod",
    ("x",),
    _infer_running,
    attributes=_ATTRIBUTES,
    accepts=dt.FIXED,
    leading=("axis",),
)


@chained
@accumulates(dt.BOOL)
def cumsum(
    x: ArrayLike, /, axis: int = 0, *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Return the running sums ``y[i] = x[0] + ... + x[i]`` along ``axis``.

    ``exclusive`` omits ``x[i]`` itself, so that the first sum is 0. ``reverse`` runs from the
    end. The result has the type of ``x``, but booleans are counted in int32. Integers wrap. See
    ``cumulative_sum`` for the standard's form, which widens small integers.

    Raises:
        ShapeError: rank 0, or an axis out of range.
        DTypeError: strings.

    Source: TensorFlow's Cumsum.

    Examples:
        >>> tp.cumsum([1, 2, 3])
        Tensor([1, 3, 6], dtype=int32, device='cpu')
        >>> tp.cumsum([1, 2, 3], exclusive=True)
        Tensor([0, 1, 3], dtype=int32, device='cpu')
        >>> tp.cumsum([1, 2, 3], reverse=True)
        Tensor([6, 5, 3], dtype=int32, device='cpu')
        >>> tp.cumsum([[True, False], [True, True]])
        Tensor([[1, 0],
                [2, 1]], dtype=int32, device='cpu')

    """
    return dispatch(CUMSUM, x, axis=axis, exclusive=exclusive, reverse=reverse)


@chained
@accumulates(dt.BOOL)
def cumprod(
    x: ArrayLike, /, axis: int = 0, *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Return the running products ``y[i] = x[0] * ... * x[i]`` along ``axis``.

    ``exclusive`` omits ``x[i]`` itself, so that the first product is 1. ``reverse`` runs from
    the end. The result has the type of ``x``, but booleans become int32. Integers wrap. See
    ``cumulative_prod`` for the standard's form, which widens small integers.

    Raises:
        ShapeError: rank 0, or an axis out of range.
        DTypeError: strings.

    Source: TensorFlow's Cumprod.

    Examples:
        >>> tp.cumprod([1.0, 2.0, 3.0])
        Tensor([1., 2., 6.], dtype=float32, device='cpu')
        >>> tp.cumprod([[1, 2], [3, 4]], axis=1)
        Tensor([[ 1,  2],
                [ 3, 12]], dtype=int32, device='cpu')
        >>> tp.cumprod([2, 3, 4], exclusive=True, reverse=True)
        Tensor([12,  4,  1], dtype=int32, device='cpu')

    """
    return dispatch(CUMPROD, x, axis=axis, exclusive=exclusive, reverse=reverse)


@accumulates(dt.INTEGER | dt.BOOL)
def cumulative_sum(
    x: ArrayLike,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running sums along ``axis``, which may be omitted for rank 1.

    Args:
        x: a tensor of rank 1 or more.
        axis: the axis to add along.
        dtype: converts the elements first; by default small integers are widened as in ``sum``.
        include_initial: whether to put a 0 in front.

    Raises:
        ArgumentError: ``axis`` is missing and the rank is above 1.
        ShapeError: rank 0, or an axis out of range.
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.cumulative_sum([1, 2, 3])
        Tensor([1, 3, 6], dtype=int32, device='cpu')
        >>> tp.cumulative_sum([[1, 2], [3, 4]], axis=1, include_initial=True)
        Tensor([[0, 1, 3],
                [0, 3, 7]], dtype=int32, device='cpu')
        >>> tp.cumulative_sum(tp.asarray([100, 100], dtype="int8"))
        Tensor([100, 200], dtype=int32, device='cpu')

    """
    starts = flag(include_initial, "cumulative_sum: include_initial")
    wide = widen(x, dtype, "cumulative_sum")
    result = _accumulate(CUMSUM, "cumulative_sum", wide, axis)
    return _prepend_initial(result, axis, 0) if starts else result


@accumulates(dt.INTEGER | dt.BOOL)
def cumulative_prod(
    x: ArrayLike,
    /,
    axis: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running products along ``axis``, which may be omitted for rank 1.

    ``include_initial`` puts a 1 in front. The rest is as for ``cumulative_sum``.

    ``x``: numbers of any shape; ``dtype``: of the result.

    Source: the array API standard.

    Examples:
        >>> tp.cumulative_prod([1, 2, 3, 4])
        Tensor([ 1,  2,  6, 24], dtype=int32, device='cpu')
        >>> tp.cumulative_prod([0.5, 0.5], include_initial=True)
        Tensor([1.  , 0.5 , 0.25], dtype=float32, device='cpu')

    """
    starts = flag(include_initial, "cumulative_prod: include_initial")
    wide = widen(x, dtype, "cumulative_prod")
    result = _accumulate(CUMPROD, "cumulative_prod", wide, axis)
    return _prepend_initial(result, axis, 1) if starts else result


def cumulative_log_sum_exp(
    x: ArrayLike, /, axis: int | None = None, *, include_initial: bool = False
) -> Tensor:
    """Return the running ``log(sum(exp(x)))`` along ``axis``, without overflow.

    It never computes sums of exponentials, but joins running values with ``logaddexp``, in log2(n)
    steps for length n. So does its gradient: equal infinities that are joined get half each.

    Args:
        x: real numbers of rank 1 or more; integers become float32.
        axis: the axis to add along; may be omitted for rank 1.
        include_initial: whether to put minus infinity in front.

    Raises:
        ArgumentError: ``axis`` is missing and the rank is above 1.
        ShapeError: rank 0, or an axis out of range.
        DTypeError: complex numbers or strings.

    Source: TensorFlow's cumulative_logsumexp, PyTorch's logcumsumexp.

    Examples:
        >>> tp.cumulative_log_sum_exp([0.0, 0.0, 0.0]).numpy().round(4)  # log of 1, 2, 3
        array([0.    , 0.6931, 1.0986], dtype=float32)
        >>> tp.cumulative_log_sum_exp([-1000.0, -1000.0]).numpy().round(2)
        array([-1000.  ,  -999.31], dtype=float32)

    """
    caller = "cumulative_log_sum_exp"
    starts = flag(include_initial, f"{caller}: include_initial")
    tensor = floating(x, f"{caller}: x")
    at = _choose_axis(tensor, axis, caller)
    result, step, length = tensor, 1, tensor.shape[at]
    while step < length:
        # The first ones stay: a neutral -inf beside an infinity would take half of its slope.
        ends = ((0, step), (step, length - step), (0, length - step))
        first, later, earlier = (_take_part(result, at, *end) for end in ends)
        result = concat([first, logaddexp(later, earlier)], axis=at)
        step *= 2
    return _prepend_initial(result, at, -inf) if starts else result


def _accumulate(spec: KernelSpec, caller: str, x: Any, axis: int | None) -> Tensor:
    tensor = as_tensor(x, what=f"{caller}: x")
    return dispatch(spec, tensor, axis=_choose_axis(tensor, axis, caller))


def _choose_axis(tensor: Tensor, axis: int | None, caller: str) -> int:
    if axis is None and tensor.ndim > 1:
        raise ArgumentError(f"{caller}: axis is required for rank above 1, got x of {tensor.type}")
    return _normalize_axis(tensor, 0 if axis is None else axis, caller)


def _prepend_initial(result: Tensor, axis: int | None, initial: float) -> Tensor:
    at = shapes.normalize_axis(axis or 0, result.ndim)
    first = (*result.shape[:at], 1, *result.shape[at + 1 :])
    return concat([full(first, initial, dtype=result.dtype), result], axis=at)


def _normalize_axis(tensor: Tensor, axis: int, caller: str) -> int:
    if not tensor.ndim:
        raise ShapeError(f"{caller}: x must have at least rank 1, got {tensor.type}")
    return shapes.normalize_axis(axis, tensor.ndim, f"{caller}: axis")


def diff(
    x: ArrayLike,
    /,
    n: int = 1,
    axis: int = -1,
    *,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Tensor:
    """Return the differences ``x[i + 1] - x[i]`` along ``axis``, applied ``n`` times.

    Args:
        x: a tensor of rank 1 or more, of length m along ``axis``; the result has length
            ``max(m - n, 0)`` there. For booleans it tells whether neighbours differ.
        n: number of repetitions; for 0 the result is x, with nothing prepended or appended.
        axis: the axis to subtract along.
        prepend: a number, or a tensor that may differ from x in its length along ``axis``; it
            is put in front of x first.
        append: likewise, after x.

    Raises:
        ArgumentError: a negative n.
        ShapeError: rank 0, an axis out of range, shapes that do not fit.
        DTypeError: strings.

    Source: the array API standard.

    Examples:
        >>> tp.diff([1, 4, 9, 16])
        Tensor([3, 5, 7], dtype=int32, device='cpu')
        >>> tp.diff([1, 4, 9, 16], 2)
        Tensor([2, 2], dtype=int32, device='cpu')
        >>> tp.diff([1, 4, 9], prepend=0)
        Tensor([1, 3, 5], dtype=int32, device='cpu')
        >>> tp.diff([[1, 2], [5, 9]], axis=0)
        Tensor([[4, 7]], dtype=int32, device='cpu')

    """
    tensor = as_tensor(x, what="diff: x")
    at = _normalize_axis(tensor, axis, "diff")
    times = shapes.index(n, "diff: n")
    if times < 0:
        raise ArgumentError(f"diff: n must not be negative, got {times}")
    ends = [
        _read_end(prepend, tensor, at, "diff: prepend"),
        _read_end(append, tensor, at, "diff: append"),
    ]
    if not times:
        return tensor
    parts = [part for part in (ends[0], tensor, ends[1]) if part is not None]
    result = concat(parts, axis=at) if len(parts) > 1 else tensor
    for _ in range(min(times, result.shape[at])):
        count = result.shape[at] - 1
        later, earlier = (_take_part(result, at, first, count) for first in (1, 0))
        differ = not_equal if result.dtype is dt.bool_ else subtract
        result = differ(later, earlier)
    return result


def _read_end(value: Any, x: Tensor, axis: int, what: str) -> Tensor | None:
    if value is None:
        return None
    value = dt.as_number(value)
    tensor = as_tensor(value, x.dtype if isinstance(value, int | float) else None, what=what)
    if tensor.ndim:
        return tensor
    return broadcast_to(tensor, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def _take_part(x: Tensor, axis: int, first: int, count: int) -> Tensor:
    begin, size = [0] * x.ndim, list(x.shape)
    begin[axis], size[axis] = first, count
    return slice(x, begin, size)
