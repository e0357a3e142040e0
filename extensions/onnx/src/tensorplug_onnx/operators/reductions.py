"""Operators that combine elements along axes: sums, extremes, norms, softmax, running sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_onnx.operators.elementwise import is_integer
from tensorplug_onnx.rules import rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

# Takes x, the axes (None for all), keepdims and the namespace.
_Reduction = Any


def _sum(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:
    return xp.sum(x, axis=axes, dtype=x.dtype, keepdims=keepdims)


def _product(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:
    return xp.prod(x, axis=axes, dtype=x.dtype, keepdims=keepdims)


def _mean(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:
    return xp.astype(xp.mean(x, axis=axes, keepdims=keepdims), x.dtype)


def _sum_of_magnitudes(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:
    return _sum(xp.abs(x), axes, keepdims=keepdims, xp=xp)


def _sum_of_squares(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:
    return _sum(x * x, axes, keepdims=keepdims, xp=xp)


def _extreme(name: str) -> _Reduction:
    def reduction(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:
        if x.size:
            return getattr(xp, name)(x, axis=axes, keepdims=keepdims)
        shape = np.sum(np.empty(x.shape), axis=axes, keepdims=keepdims).shape
        return xp.full(shape, _end(x, upper=name == "min", xp=xp), dtype=x.dtype)

    return reduction


def _end(x: Any, *, upper: bool, xp: ModuleType) -> Any:
    """Return the end of the range of a dtype: the extreme of no elements."""
    if str(x.dtype) == "bool":
        return upper
    if is_integer(x):
        info = xp.iinfo(x.dtype)
        return info.max if upper else info.min
    return math.inf if upper else -math.inf


def _of_floats(function: Callable[..., Any]) -> _Reduction:
    """Return a reduction that computes integers as floats, and rounds towards zero."""

    def reduction(x: Any, axes: Any, *, keepdims: bool, xp: ModuleType) -> Any:  # noqa: ARG001
        x = tp.asarray(x)
        floats = tp.astype(x, tp.float64) if is_integer(x) else x
        return tp.astype(function(floats, axis=axes, keepdims=keepdims), x.dtype)

    return reduction


def _log_sum(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return tp.log(tp.sum(x, axis=axis, keepdims=keepdims))


def _with_attribute(function: _Reduction) -> Callable[..., Any]:
    def reduce(x: Any, *, axes: Iterable[int] = (), keepdims: int = 1, xp: ModuleType) -> Any:
        return function(x, tuple(axes) or None, keepdims=bool(keepdims), xp=xp)

    return reduce


def _with_input(function: _Reduction) -> Callable[..., Any]:
    def reduce(
        x: Any,
        axes: Any = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
        xp: ModuleType,
    ) -> Any:
        if axes is not None and axes.ndim != 1:
            raise ValueError(f"the axes have rank {axes.ndim}, must have rank 1")
        chosen = () if axes is None else tuple(axes.tolist())
        every = not chosen and not noop_with_empty_axes
        return function(x, None if every else chosen, keepdims=bool(keepdims), xp=xp)

    return reduce


_REDUCTIONS: Final[dict[str, _Reduction]] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceMax": _extreme("max"),
    "ReduceMin": _extreme("min"),
    "ReduceProd": _product,
    "ReduceL1": _sum_of_magnitudes,
    "ReduceL2": _of_floats(tp.linalg.vector_norm),
    "ReduceLogSum": _of_floats(_log_sum),
    "ReduceLogSumExp": _of_floats(tp.log_sum_exp),
    "ReduceSumSquare": _sum_of_squares,
}
for _op_type, _function in _REDUCTIONS.items():
    rule(_op_type)(_with_attribute(_function))
    _since = 13 if _op_type == "ReduceSum" else 18
    rule(_op_type, since=_since, host=(1,))(_with_input(_function))


def _place_of_extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def place(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        if not select_last_index:
            found = function(x, axis=axis, keepdims=bool(keepdims))
        else:
            found = function(tp.flip(x, axis=axis), axis=axis, keepdims=bool(keepdims))
            found = x.shape[axis] - 1 - found
        return tp.astype(found, tp.int64)

    return place


rule("ArgMax")(_place_of_extreme(tp.argmax))
rule("ArgMin")(_place_of_extreme(tp.argmin))


def _running(function: Callable[..., Any]) -> Callable[..., Any]:
    def running(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
        return function(x, axis.item(), exclusive=bool(exclusive), reverse=bool(reverse))

    return running


rule("CumSum", host=(1,))(_running(tp.cumsum))
rule("CumProd", host=(1,))(_running(tp.cumprod))


def _hardmax(x: Any, axis: int) -> Any:
    """Return 1 at the first of the largest elements, 0 elsewhere."""
    first = tp.argmax(x, axis=axis, keepdims=True)
    others = [1] * (x.ndim - 1)
    places = tp.reshape(tp.arange(x.shape[axis], dtype=first.dtype), (-1, *others))
    return tp.astype(tp.equal(tp.moveaxis(places, 0, axis), first), x.dtype)


def _along_axis(function: Callable[..., Any]) -> Callable[..., Any]:
    def normalized(x: Any, *, axis: int = -1) -> Any:
        return function(x, axis)

    return normalized


def _of_matrix(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the axes from ``axis`` on, taken as one."""

    def normalized(x: Any, *, axis: int = 1) -> Any:
        if not -x.ndim <= axis <= x.ndim:
            raise ValueError(f"attribute 'axis' is {axis}, the input has rank {x.ndim}")
        first = axis + x.ndim if axis < 0 else axis
        flat = (math.prod(x.shape[:first]), math.prod(x.shape[first:]))
        return tp.reshape(function(tp.reshape(x, flat), -1), x.shape)

    return normalized


_NORMALIZED: Final[dict[str, Callable[..., Any]]] = {
    "Softmax": tp.nn.softmax,
    "LogSoftmax": tp.nn.log_softmax,
    "Hardmax": _hardmax,
}
for _op_type, _normalize in _NORMALIZED.items():
    rule(_op_type)(_of_matrix(_normalize))
    rule(_op_type, since=13)(_along_axis(_normalize))
