"""Tensors made from nothing but attributes, and from the type of another tensor."""

from __future__ import annotations

from math import ceil, isfinite, trunc
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import attributes, inference
from tensorplug import dtypes as dt
from tensorplug.dispatch import as_tensor, dispatch, dispatch_unary
from tensorplug.errors import ArgumentError
from tensorplug.ops.movement import identity
from tensorplug.spec import KernelSpec, TensorType

if TYPE_CHECKING:
    from tensorplug.dtypes import DType, Scalar
    from tensorplug.shapes import Shape
    from tensorplug.tensor import Tensor

__all__ = [
    "arange",
    "asarray",
    "full",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def _fill(*, shape: Shape, value: Scalar, dtype: DType | None) -> TensorType:
    wanted = dtype or dt.of_scalar(value, None)
    dt.check_number(value, wanted)
    return TensorType(wanted, shape)


FILL = KernelSpec(
    "Fill",
    (),
    _fill,
    attributes={
        "shape": attributes.shape(),
        "value": attributes.number(),
        "dtype": attributes.optional(attributes.dtype()),
    },
)


def range_length(start: float, stop: float, step: float) -> int:
    """Return how many numbers lie in the half-open interval [start, stop) at this step.

    Raises:
        ArgumentError: when there are infinitely many, or no telling.

    """
    if any(isinstance(each, complex) or not isfinite(each) for each in (start, stop, step)):
        raise ArgumentError(
            f"start, stop and step must be finite real numbers, got {start!r}, {stop!r}, {step!r}"
        )
    if step == 0:
        raise ArgumentError("step must not be 0")
    return max(0, ceil((stop - start) / step))


def _ends(start: float, stop: float, step: float) -> tuple[float, ...]:
    """Return the first and the last number of a range; nothing if it is empty."""
    count = range_length(start, stop, step)
    return (start, start + step * (count - 1)) if count else ()


def _range(*, start: float, stop: float, step: float, dtype: DType) -> TensorType:
    for each in _ends(start, stop, step):
        if dtype in dt.INTEGER:  # in between lie only numbers that fit too
            dt.check_number(trunc(each), dtype)
    return TensorType(dtype, (range_length(start, stop, step),))


RANGE = KernelSpec(
    "Range",
    (),
    _range,
    attributes={
        "start": attributes.number(),
        "stop": attributes.number(),
        "step": attributes.number(1),
        "dtype": attributes.dtype("float32"),
    },
)

ZEROS_LIKE = KernelSpec("ZerosLike", ("x",), inference.same, accepts=dt.FIXED)
ONES_LIKE = KernelSpec("OnesLike", ("x",), inference.same, accepts=dt.FIXED)


def asarray(obj: Any, /, *, dtype: Any = None, copy: bool | None = None) -> Tensor:
    """Return ``obj`` as a tensor on the current device.

    Args:
        obj: a tensor, a Python number, nested lists of them, a NumPy array, or anything that
            NumPy can read as an array.
        dtype: of the result. By default an array keeps its own, Python floats become float32,
            ints int32 (int64 if they do not fit), bools bool.
        copy: True gives a tensor a new handle (tensors are values, so they share the data),
            False refuses where a copy is needed; data from outside is always copied, so that
            later writes to it are not seen.

    Raises:
        ShapeError: ragged lists.
        DTypeError: object arrays, or a dtype the device does not have.
        ArgumentError: a number that does not fit ``dtype``; ``copy=False`` where one is needed.

    """
    wanted = None if dtype is None else dt.of(dtype, "asarray")
    tensor = as_tensor(obj, wanted, what="asarray: obj")
    if copy is False and tensor is not obj:
        raise ArgumentError("asarray: copy=False was said, but another dtype or device needs one")
    return identity(tensor) if copy and tensor is obj else tensor


def full(shape: Any, fill_value: Scalar, *, dtype: Any = None) -> Tensor:
    """Return a tensor of ``shape`` filled with one number.

    ``dtype`` defaults to the number's default dtype.
    """
    wanted = None if dtype is None else dt.of(dtype, "full")
    return dispatch(FILL, shape=shape, value=fill_value, dtype=wanted)


def zeros(shape: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of ``shape`` filled with 0, float32 by default."""
    wanted = dt.default_float if dtype is None else dt.of(dtype, "zeros")
    return full(shape, 0, dtype=wanted)


def ones(shape: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of ``shape`` filled with 1, float32 by default."""
    wanted = dt.default_float if dtype is None else dt.of(dtype, "ones")
    return full(shape, 1, dtype=wanted)


def zeros_like(x: Any, /) -> Tensor:
    """Return zeros of the shape and dtype of ``x``."""
    return dispatch_unary(ZEROS_LIKE, x)


def ones_like(x: Any, /) -> Tensor:
    """Return ones of the shape and dtype of ``x``."""
    return dispatch_unary(ONES_LIKE, x)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None
) -> Tensor:
    """Return the numbers from ``start`` to before ``stop`` in steps of ``step``.

    With one number, it is the stop and the start is 0. By default int32 if all are integers
    (int64 if the numbers do not fit), else float32.

    Raises:
        ArgumentError: the step is 0, or a number does not fit into ``dtype``.

    """
    first, last = (0, start) if stop is None else (start, stop)
    if dtype is None:
        dtype = _range_dtype(first, last, step)
    return dispatch(RANGE, start=first, stop=last, step=step, dtype=dt.of(dtype, "arange"))


def _range_dtype(*given: Any) -> DType:
    if not all(isinstance(each, int | np.integer) for each in given):
        return dt.default_float
    start, stop, step = map(int, given)
    limits = np.iinfo(dt.default_int.name)
    ends = _ends(start, stop, step) if step else ()  # the op refuses a step of 0
    fits = all(limits.min <= each <= limits.max for each in ends)
    return dt.default_int if fits else dt.int64
