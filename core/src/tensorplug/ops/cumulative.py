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
from tensorplug.ops.comparison import not_equal
from tensorplug.ops.creation import full
from tensorplug.ops.default_integers import accumulates
from tensorplug.ops.elementwise import subtract
from tensorplug.ops.kinds import floating
from tensorplug.ops.movement import broadcast_to, concat, slice
from tensorplug.ops.powers import logaddexp
from tensorplug.ops.reduction import widen
from tensorplug.ops.scans import scan

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor

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
CUMSUM = KernelSpec("Cumsum", ("x",), _infer_running, attributes=_ATTRIBUTES, accepts=dt.FIXED)
CUMPROD = KernelSpec("Cumprod", ("x",), _infer_running, attributes=_ATTRIBUTES, accepts=dt.FIXED)


@chained
@accumulates(dt.BOOL)
def cumsum(x: Any, /, axis: int = 0, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the running sums ``y[i] = x[0] + ... + x[i]`` along ``axis``.

    ``exclusive`` omits ``x[i]`` itself, so that the first sum is 0. ``reverse`` runs from the
    end. The result has the type of ``x``, but booleans are counted in int32. Integers wrap.
    (TensorFlow's Cumsum; see ``cumulative_sum`` for the standard's form.)

    Raises:
        ShapeError: rank 0, or an axis out of range.

    """
    return dispatch(CUMSUM, x, axis=axis, exclusive=exclusive, reverse=reverse)


@chained
@accumulates(dt.BOOL)
def cumprod(x: Any, /, axis: int = 0, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the running products ``y[i] = x[0] * ... * x[i]`` along ``axis``.

    ``exclusive`` omits ``x[i]`` itself, so that the first product is 1. ``reverse`` runs from
    the end. The result has the type of ``x``, but booleans become int32. Integers wrap.
    (TensorFlow's Cumprod; see ``cumulative_prod`` for the standard's form.)

    Raises:
        ShapeError: rank 0, or an axis out of range.

    """
    return dispatch(CUMPROD, x, axis=axis, exclusive=exclusive, reverse=reverse)


@accumulates(dt.INTEGER | dt.BOOL)
def cumulative_sum(
    x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
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

    Source: the array API standard.

    """
    starts = flag(include_initial, "cumulative_sum: include_initial")
    wide = widen(x, dtype, "cumulative_sum")
    result = _accumulate(CUMSUM, "cumulative_sum", wide, axis)
    return _prepend_initial(result, axis, 0) if starts else result


@accumulates(dt.INTEGER | dt.BOOL)
def cumulative_prod(
    x: Any, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the running products along ``axis``, which may be omitted for rank 1.

    ``include_initial`` puts a 1 in front. The rest is as for ``cumulative_sum``.
    """
    starts = flag(include_initial, "cumulative_prod: include_initial")
    wide = widen(x, dtype, "cumulative_prod")
    result = _accumulate(CUMPROD, "cumulative_prod", wide, axis)
    return _prepend_initial(result, axis, 1) if starts else result


def cumulative_log_sum_exp(
    x: Any, /, axis: int | None = None, *, include_initial: bool = False
) -> Tensor:
    """Return the running ``log(sum(exp(x)))`` along ``axis``, without overflow.

    It never computes the sums of powers, but joins running values by ``logaddexp``, in log2(n)
    steps for length n.

    Args:
        x: real numbers of rank 1 or more; integers become float32.
        axis: the axis to add along; may be omitted for rank 1.
        include_initial: whether to put minus infinity in front.

    Raises:
        ArgumentError: ``axis`` is missing and the rank is above 1.
        ShapeError: rank 0, or an axis out of range.
        DTypeError: complex numbers or strings.

    (TensorFlow's cumulative_logsumexp, PyTorch's logcumsumexp.)

    """
    caller = "cumulative_log_sum_exp"
    starts = flag(include_initial, f"{caller}: include_initial")
    tensor = floating(x, f"{caller}: x")
    at = _choose_axis(tensor, axis, caller)
    result = scan(tensor, logaddexp, -inf, axis=at, exclusive=False, reverse=False)
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
    x: Any, /, n: int = 1, axis: int = -1, *, prepend: Any = None, append: Any = None
) -> Tensor:
    """Return the differences ``x[i + 1] - x[i]`` along ``axis``, applied ``n`` times.

    Args:
        x: a tensor of rank 1 or more, of length m along ``axis``; the result has length
            ``max(m - n, 0)`` there. For booleans it is whether neighbours differ.
        n: number of repetitions; for 0 the result is x, without what is prepended or appended.
        axis: the axis to subtract along.
        prepend: a number, or a tensor that may differ from x in its length along ``axis``; it
            is put in front of x first.
        append: likewise, after x.

    Raises:
        ArgumentError: a negative n.
        ShapeError: rank 0, an axis out of range, shapes that do not fit.

    Source: the array API standard.

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
