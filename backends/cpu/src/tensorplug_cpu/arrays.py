"""The types of kernels and buffers, and how a Python number becomes an element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tensorplug.plugin import ArgumentError, DType, DTypeError, Scalar, TensorType, narrowing
from tensorplug.plugin import dtypes as dt

Array = np.ndarray[Any, Any]
Call = Callable[..., Any]  # takes buffers positionally; what a plan keeps

# Of kernels that round each step to the dtype of the result: the core widens the others.
UNROUNDED: Final = frozenset(dtype for dtype in dt.FIXED if dtype.compute is dtype)

_NEXT: Final = {dt.float32: dt.float64, dt.complex64: dt.complex128}


def element(value: Scalar, dtype: DType) -> Array:
    """Return the number of an attribute as an array of rank 0.

    Raises:
        DTypeError: its kind does not fit: a complex number or a fraction for a dtype without
            these, or any number for strings.
        ArgumentError: it is an integer that the dtype cannot hold.

    """
    whole = isinstance(value, float) and value.is_integer()
    if dtype in dt.INTEGER and isinstance(value, float) and not whole:
        raise DTypeError(f"{value!r} is not an integer, but the dtype is {dtype}")
    if dtype.kind == "string" or (isinstance(value, complex) and dtype not in dt.COMPLEX):
        raise DTypeError(f"{value!r} cannot become {dtype}")
    number = int(value) if whole and dtype in dt.INTEGER else value  # type: ignore[arg-type]  # whole floats only
    try:
        with np.errstate(all="ignore"):  # too large a float is infinite
            return narrowing.convert(np.array(number), dtype)
    except OverflowError:
        raise ArgumentError(f"{value!r} does not fit into {dtype}") from None


def working(dtype: DType) -> np.dtype[Any]:
    """Return the NumPy dtype in which steps of a longer formula are computed.

    So only the result of a narrow float is rounded to its few bits.
    """
    return dtype.compute.numpy


def accumulating(dtype: DType) -> np.dtype[Any]:
    """Return the next wider NumPy dtype, which hides half an ulp per term or factor."""
    return _NEXT.get(dtype, dtype.compute).numpy


def constant(value: Scalar | str, dtype: DType) -> Array:
    """Return the number or the text of an attribute as an array of rank 0.

    Raises: as ``element``.
    """
    return np.array(value, dtype.numpy) if isinstance(value, str) else element(value, dtype)


_READY: Final = 1024  # bytes of an array that is kept to be copied


def uniform(out: TensorType, value: Scalar | str) -> Callable[[], Array]:
    """Return a function that makes arrays of type ``out`` with ``value`` everywhere.

    Raises: as ``element``.
    """
    shape, dtype = out.shape, out.dtype.numpy
    one = constant(value, out.dtype)
    blank = not value if isinstance(value, str) else not any(one.tobytes())
    if blank:  # calloc need not write zeros; -0.0 is not one
        return lambda: np.zeros(shape, dtype)
    if out.nbytes <= _READY:
        return np.full(shape, one, dtype).copy  # without Python code, a quarter of the time
    return lambda: np.full(shape, one, dtype)
