"""Converting NumPy arrays to narrow dtypes with a single rounding, to nearest even.

ml_dtypes converts float64 and integers by way of float32, which rounds twice, and its powers of 2
round up all that exceeds the least one and is no normal number of float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType

__all__ = ["convert"]

Array = np.ndarray[Any, Any]

_EXACT = 2.0**53  # up to here float64 holds every integer


def convert(array: Array, dtype: DType) -> Array:
    """Return ``array``, of real numbers, in ``dtype``: rounded once if that is floating.

    Examples:
        >>> from tensorplug.contract import dtypes
        >>> just_above_the_middle = np.array([1 + 2.0**-8 + 2.0**-40])
        >>> float(convert(just_above_the_middle, dtypes.bfloat16)[0])
        1.0078125

    """
    if dtype not in dt.EXTENSIONS or dtype in dt.WHOLE or array.dtype == dtype.numpy:
        return array.astype(dtype.numpy, copy=False)
    if array.dtype.kind in "iu" and array.dtype.itemsize > 2:
        array = _float64(array)
    if array.dtype.itemsize > 4:
        array = _round_to_odd(array)
    if dtype is dt.float8_e8m0fnu:
        array = np.where((array > 0) & (array < 1.5 * dtype.min), dtype.min, array)
    return array.astype(dtype.numpy)


def _float64(whole: Array) -> Array:
    """Convert integers such that rounding the result to few digits is rounding once.

    Of large ones the last 12 bits become a bit in their middle if they are not all zero.
    """
    if whole.dtype.itemsize < 8:
        return whole.astype(np.float64)
    low = whole & whole.dtype.type(0xFFF)
    sticky = np.where(low != 0, whole.dtype.type(0x800), whole.dtype.type(0))
    large = (whole - low + sticky).astype(np.float64)
    near: Array = whole.astype(np.float64)
    return np.where(np.abs(near) < _EXACT, near, large)


def _round_to_odd(array: Array) -> Array:
    """Convert float64 to float32 such that rounding once more is rounding once.

    An inexact result has an odd last digit. Source: Boldo and Melquiond, Emulation of a FMA and
    correctly rounded sums: proved algorithms using rounding to odd, 2008.
    """
    exact = array.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        near = exact.astype(np.float32)
    back = near.astype(np.float64)
    above = np.abs(back) > np.abs(exact)
    bits = near.view(np.uint32)
    odd = np.asarray((bits - above.astype(np.uint32)) | np.uint32(1))
    inexact = (back != exact) & ~np.isnan(exact)
    return np.where(inexact, odd, bits).view(np.float32)
