"""Evenly spaced numbers: specs, ``arange`` and ``linspace``."""

from __future__ import annotations

from math import ceil, isfinite, trunc
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import attributes
from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.spec import Attribute, KernelSpec, TensorType
from tensorplug.dispatch.calls import (
    dispatch,
    run_on,
)
from tensorplug.errors import ArgumentError, DTypeError
from tensorplug.ops.conversion import asarray
from tensorplug.ops.creation import zeros
from tensorplug.ops.spacing import make_integers, spread

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType, Scalar
    from tensorplug.contract.spec import InputTypes
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import (
        ArrayLike,
        DTypeLike,
        SupportsArray,
    )


__all__ = ["arange", "linspace"]


def range_length(start: float, stop: float, step: float) -> int:
    """Return the number of elements of the half-open range [start, stop) with this step.

    Raises:
        ArgumentError: an argument is not a finite real number, or the step is 0.

    """
    if any(isinstance(bound, complex) or not isfinite(bound) for bound in (start, stop, step)):
        raise ArgumentError(
            f"start, stop and step must be finite real numbers, got {quoted(start)}, {stop!r}, "
            f"{step!r}"
        )
    if step == 0:
        raise ArgumentError("step must not be 0")
    return max(0, ceil((stop - start) / step))


def _find_ends(start: float, stop: float, step: float) -> tuple[float, ...]:
    """Return the first and the last number of a range, or () if it is empty."""
    count = range_length(start, stop, step)
    return (start, start + step * (count - 1)) if count else ()


def _infer_range(*, start: float, stop: float, step: float, dtype: DType) -> TensorType:
    for end in _find_ends(start, stop, step):
        if dtype in dt.INTEGER:  # all numbers between them fit too
            dt.check_number(trunc(end), dtype)
    return TensorType(dtype, (range_length(start, stop, step),))


def _read_step(value: Any, known: InputTypes) -> Any:
    """Return the step. The default, 1, becomes -1 if the range descends."""
    step = attributes.number().canonical(value, known)
    start, stop = known["start"], known["stop"]
    real = not any(isinstance(bound, complex) for bound in (start, stop))
    return -step if step == 1 and real and stop < start else step


RANGE = KernelSpec(
    "Range",
    (),
    _infer_range,
    attributes={
        "start": attributes.number(),
        "stop": attributes.number(),
        "step": Attribute(_read_step, 1, "int, float or complex; 1 becomes -1 where stop < start"),
        "dtype": attributes.dtype("float32"),
    },
)


def _infer_lin_space(*, start: Scalar, stop: Scalar, num: int, dtype: DType) -> TensorType:
    if dtype not in dt.INEXACT:
        raise DTypeError(f"dtype must be floating or complex, got {dtype}")
    for bound in (start, stop):
        dt.check_number(bound, dtype)
    return TensorType(dtype, (num,))


LIN_SPACE = KernelSpec(
    "LinSpace",
    (),
    _infer_lin_space,
    attributes={
        "start": attributes.number(),
        "stop": attributes.number(),
        "num": attributes.integer(at_least=0),
        "endpoint": attributes.flag(default=True),
        "dtype": attributes.dtype("float32"),
    },
)


def arange(
    start: float | SupportsArray,
    /,
    stop: float | SupportsArray | None = None,
    step: float | SupportsArray = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return the numbers from ``start`` up to, but not including, ``stop`` in steps of ``step``.

    A single argument is the stop; the start is then 0. The default dtype is int32 if all are
    integers (int64 if the numbers do not fit), else float32. The arguments may be tensors or
    arrays of rank 0, which are read.

    ``device``: the device of the result; the current one by default.

    Raises:
        ArgumentError: the step is 0, or a number is not finite or does not fit into ``dtype``.

    Source: the array API standard.

    Examples:
        >>> tp.arange(4)
        Tensor([0, 1, 2, 3], dtype=int32, device='cpu')
        >>> tp.arange(1, 10, 3)
        Tensor([1, 4, 7], dtype=int32, device='cpu')
        >>> tp.arange(1.0, 0.0, -0.25)
        Tensor([1.  , 0.75, 0.5 , 0.25], dtype=float32, device='cpu')
        >>> tp.arange(5, 0).shape
        (0,)

    """
    first, last, by = _read_number(start), _read_number(stop), _read_number(step)
    if last is None:
        first, last = 0, first
    result_dtype = (
        _choose_range_dtype(first, last, by) if dtype is None else dt.of(dtype, "arange")
    )
    if _is_real(first) and _is_real(last) and _is_real(by) and by > 0 and last < first:
        return zeros((0,), dtype=result_dtype, device=device)  # the kernel would count down
    return run_on(
        device, lambda: dispatch(RANGE, start=first, stop=last, step=by, dtype=result_dtype)
    )


def _read_number(value: Any) -> Any:
    held = hasattr(value, "_placement") or isinstance(value, np.ndarray)
    return value.item() if held and not value.ndim else value


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _choose_range_dtype(*numbers: Any) -> DType:
    if not all(isinstance(number, int | np.integer) for number in numbers):
        return dt.default_float
    start, stop, step = map(int, numbers)
    least, most = dt.default_int.min, dt.default_int.max
    ends = _find_ends(start, stop, step) if step else ()  # the op rejects a step of 0
    fits = all(least <= end <= most for end in ends)
    return dt.default_int if fits else dt.int64


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``.

    Args:
        start: the first number. Both ends may be tensors or arrays, which broadcast to a shape
            S; the result has the shape ``(num, *S)``, and gradients flow to them.
        stop: the last number; without ``endpoint`` the numbers end one step before it.
        num: how many numbers.
        dtype: float32 by default, complex64 if an end is complex; for tensors, their promoted
            dtype. Integers are rounded down, as in NumPy.
        device: of the result; the active one by default.
        endpoint: whether ``stop`` is included.

    Raises:
        DTypeError: the dtype is bool or string, or real though an end is complex.
        ArgumentError: ``num`` is negative, or an end does not fit an integer dtype.
        ShapeError: the ends do not broadcast.

    Source: the array API standard; TensorFlow's LinSpace.

    Examples:
        >>> tp.linspace(0, 1, 5)
        Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32, device='cpu')
        >>> tp.linspace(0, 1, 4, endpoint=False)
        Tensor([0.  , 0.25, 0.5 , 0.75], dtype=float32, device='cpu')
        >>> tp.linspace(0, 10, 4, dtype="int32")
        Tensor([ 0,  3,  6, 10], dtype=int32, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "linspace")
    ends: tuple[Any, Any] = (start, stop)
    if any(hasattr(end, "_placement") or isinstance(end, np.ndarray) for end in ends):
        return run_on(
            device, lambda: spread(LIN_SPACE, start, stop, num, result_dtype, endpoint=endpoint)
        )
    if result_dtype in dt.INTEGER:
        numbers = make_integers(*ends, num, result_dtype, endpoint=endpoint)
        return asarray(numbers, device=device)
    if result_dtype is None:
        ends_complex = any(np.iscomplexobj(end) for end in ends)
        result_dtype = dt.default_complex if ends_complex else dt.default_float
    return run_on(
        device,
        lambda: dispatch(
            LIN_SPACE, start=start, stop=stop, num=num, endpoint=endpoint, dtype=result_dtype
        ),
    )
