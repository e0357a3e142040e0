"""Questions about dtypes, as the array API standard 2025.12 words them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch import host_values
from tensorplug.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS: Final = {
    "bool": dt.BOOL,
    "signed integer": dt.SIGNED,
    "unsigned integer": dt.UNSIGNED,
    "integral": dt.INTEGER,
    "real floating": dt.FLOATING,
    "complex floating": dt.COMPLEX,
    "numeric": dt.NUMERIC,
}


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a floating dtype.

    ``bits``: of one element; of a complex dtype, whose other limits are those of its parts, too.
    ``eps``: the gap between 1 and the next number. ``smallest_normal``: the smallest positive
    number of full precision. ``dtype``: of the parts.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """Limits of an integer dtype. ``bits``: of one element."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating or complex dtype, given as such or by a tensor.

    Raises:
        DTypeError: for a dtype of another kind.

    """
    dtype = _dtype_of(type, "finfo")
    if dtype not in dt.INEXACT:
        raise DTypeError(f"finfo: {dtype} is no floating dtype; ask iinfo for integers")
    part = dt.real_part(dtype)
    about: Any = np.finfo(part.numpy)
    return FloatInfo(
        bits=8 * dtype.itemsize,
        eps=float(about.eps),
        max=float(about.max),
        min=float(about.min),
        smallest_normal=float(about.smallest_normal),
        dtype=part,
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype, given as such or by a tensor.

    Raises:
        DTypeError: for a dtype of another kind.

    """
    dtype = _dtype_of(type, "iinfo")
    if dtype not in dt.INTEGER:
        raise DTypeError(f"iinfo: {dtype} is no integer dtype; ask finfo for floats")
    about = np.iinfo(dtype.name)
    return IntegerInfo(8 * dtype.itemsize, int(about.max), int(about.min), dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether ``dtype`` is of a kind.

    Args:
        dtype: a dtype, or what names one.
        kind: a dtype (then the question is whether they are the same), one of ``"bool"``,
            ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
            ``"complex floating"`` and ``"numeric"``, or a tuple of such, any of which will do.

    Raises:
        ArgumentError: for another kind.
        DTypeError: ``dtype`` is none.

    """
    asked = dt.of(dtype, "isdtype")
    if isinstance(kind, tuple):
        found = [isdtype(asked, item) for item in kind]  # every one is checked
        return any(found)
    if isinstance(kind, str):
        if kind not in KINDS:
            listed = ", ".join(map(repr, KINDS))
            raise ArgumentError(f"isdtype: kind must be a dtype or one of {listed}, got {kind!r}")
        return asked in KINDS[kind]
    return asked is dt.of(kind, "isdtype: kind")


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether promotion leads from a dtype, or a tensor's, to ``to``.

    Then nothing is lost but, on the way from integers to floats, precision.
    """
    source, target = _dtype_of(from_, "can_cast"), dt.of(to, "can_cast")
    return dt.PROMOTION.get((source, target)) is target


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype to which tensors, dtypes and Python scalars promote together.

    A scalar is weak: it counts by its kind alone.

    Raises:
        ArgumentError: there is no tensor and no dtype among them.
        DTypeError: they have no common dtype.

    """
    scalars = [dtype for dtype in arrays_and_dtypes if host_values.is_scalar(dtype)]
    others = [
        _dtype_of(dtype, "result_type")
        for dtype in arrays_and_dtypes
        if not host_values.is_scalar(dtype)
    ]
    if not others:
        raise ArgumentError("result_type: at least one tensor or dtype is needed")
    result = dt.promote(others)
    for scalar in scalars:
        result = dt.promote((result, dt.of_scalar(scalar, result)))
    return result


def _dtype_of(value: Any, who: str) -> DType:
    own = getattr(value, "dtype", None)
    return dt.of(value if own is None or isinstance(value, dt.DType) else own, who)
