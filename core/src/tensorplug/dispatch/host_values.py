"""Converting numbers, strings, lists and arrays to NumPy arrays of supported dtypes."""

from __future__ import annotations

from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.contract.extents import Extent
from tensorplug.contract.narrowing import convert
from tensorplug.contract.shapes import MOST_AXES, check_limits
from tensorplug.errors import ArgumentError, BackendMemoryError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape


_NUMBERS: tuple[type[Any], ...] = (bool, int, float, complex, Extent)
_FLOATS = (float, np.floating)
_EXTENSIONS = frozenset(dtype.name for dtype in dt.EXTENSIONS)
_FEW = 32  # up to this many elements Python's min and max are faster than NumPy's


def is_scalar(value: object) -> bool:
    """Return whether ``value`` is a Python number or a NumPy scalar. Arrays of rank 0 are not."""
    return isinstance(value, _NUMBERS) or dt.is_numpy_scalar(value)


def scalar(value: dt.Scalar, dtype: DType) -> np.ndarray[Any, Any]:
    """Return a Python number as an array of rank 0.

    Raises:
        ArgumentError: the number does not fit into ``dtype``.
        DTypeError: its kind does not match (a complex number for a real dtype, a fraction for an
            integer one).

    """
    if dtype in dt.WHOLE and isinstance(value, float) and not value.is_integer():
        raise DTypeError(f"{value!r} is not an integer, but the dtype is {dtype}")
    if dtype not in dt.COMPLEX and isinstance(value, complex):
        raise DTypeError(f"{value!r} is complex, but the dtype is {dtype}")
    try:
        with np.errstate(over="ignore"):  # a float that is too large becomes infinite
            if isinstance(value, float) and dtype in dt.WHOLE:
                return np.array(int(value), dtype=dtype.numpy)  # a float out of range would wrap
            if dtype in dt.WHOLE and not dtype.min <= value <= dtype.max:  # ml_dtypes' wrap
                raise OverflowError
            if dtype in dt.EXTENSIONS:
                return convert(np.asarray(value, np.float64), dtype)
            return np.array(value, dtype=dtype.numpy)
    except OverflowError:
        raise ArgumentError(f"{quoted(value)} does not fit into {dtype}") from None


@contextmanager
def room_for(
    shape: Shape, what: str, elements: str = "numbers", dtype: DType = dt.float64
) -> Iterator[None]:
    """Raise our errors where the host has no room for an array that the block makes.

    Raises:
        ShapeError: no tensor can have that shape.
        BackendMemoryError: the host has no room.

    """
    try:
        check_limits(shape, dtype.itemsize)
    except ShapeError as error:
        raise ShapeError(f"{what}: {error}") from None
    try:
        yield
    except MemoryError as error:
        raise BackendMemoryError(
            f"{what}: no room on the host for {prod(shape)} {elements}: {error}"
        ) from error


def as_array(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """Return numbers, strings, nested lists of them, or anything array-like as an array.

    Without ``dtype``, Python numbers get the default dtypes (integers beyond int32 get int64),
    and arrays keep theirs.

    Raises:
        ShapeError: nested lists are ragged.
        ArgumentError: numbers do not fit into the dtype, or a list contains tensors.
        DTypeError: the elements are neither numbers nor strings, or not of the dtype's kind.
        BackendMemoryError: the host has no room for the array.

    """
    if isinstance(value, _NUMBERS) and not isinstance(value, np.generic):
        return scalar(value, dtype or _default(np.asarray(value)))
    listed = isinstance(value, list | tuple | range)
    kinds = _kinds(value) if listed else frozenset()
    array = _read(value, listed=listed)
    # ml_dtypes' dtypes, for which NumPy lacks loops. Their kind is that of raw bytes, too.
    if array.dtype.kind == "V" and array.dtype.name in _EXTENSIONS:
        if dtype is None and not listed:
            return array
        array = array.astype(dt.unpacked(dt.of(array.dtype)).numpy)
    if array.dtype.kind not in "biufcUT":
        raise DTypeError(
            f"{type(value).__name__} {_short(value)} has elements of {array.dtype}; they must be "
            "numbers, booleans or strings"
        )
    if array.dtype.kind in "UT" and not kinds <= {str, np.str_, np.ndarray}:
        raise DTypeError(f"{_short(value)} contains both strings and numbers")
    if array.dtype.kind == "f" and kinds and kinds <= {int, bool}:
        try:  # NumPy makes floats of integers on both sides of 2**63, whatever their sign
            array = np.asarray(value, np.uint64)
        except OverflowError:
            raise ArgumentError(
                f"no integer dtype can represent all integers in {_short(value)}"
            ) from None
    target = dtype or (_default(array) if listed else dt.of(array.dtype))
    if target.kind == "string" or array.dtype.kind in "UT":
        return _strings(array, target)
    fractional = target in dt.WHOLE and any(issubclass(kind, _FLOATS) for kind in kinds)
    if fractional and not (array == np.trunc(array)).all():  # an infinity is out of range
        raise DTypeError(f"{_short(value)} contains fractions or NaN, but the dtype is {target}")
    # All values fit into a default dtype.
    return _cast(array, target, check=dtype is not None)


def _read(value: Any, *, listed: bool) -> np.ndarray[Any, Any]:
    """Return what NumPy makes of ``value``.

    Raises: as ``as_array``.
    """
    try:
        return _as_arange(value) if isinstance(value, range) else np.asarray(value)
    except MemoryError as error:
        raise BackendMemoryError(f"no room on the host for {_short(value)}: {error}") from error
    except (ValueError, TypeError, OverflowError) as error:
        if listed and ("inhomogeneous" in str(error) or "broadcast" in str(error)):
            raise ShapeError(f"nested lists must be rectangular: {error}") from None
        raise DTypeError(f"{type(value).__name__} cannot become a tensor: {error}") from None


def _default(array: np.ndarray[Any, Any]) -> DType:
    kind = array.dtype.kind
    if kind == "O":  # a Python integer that is too large for int64
        raise ArgumentError(f"{_short(array.item())} does not fit into any integer dtype")
    if kind in "iu":
        if not array.size:
            return dt.default_int
        least, most = dt.default_int.min, dt.default_int.max
        low, high = _extremes(array)
        return dt.default_int if least <= low and high <= most else dt.of(array.dtype)
    return {
        "b": dt.bool_,
        "f": dt.default_float,
        "c": dt.default_complex,
        "U": dt.string,
        "T": dt.string,
    }[kind]


def _extremes(array: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Return the least and the greatest element."""
    if array.size > _FEW:
        return array.min().item(), array.max().item()
    numbers = array.ravel().tolist()
    return min(numbers), max(numbers)


def _cast(array: np.ndarray[Any, Any], dtype: DType, *, check: bool) -> np.ndarray[Any, Any]:
    if array.dtype == dtype.numpy:
        return array
    if array.dtype.kind == "c" and dtype not in dt.COMPLEX:
        raise DTypeError(f"the values are complex, but the dtype is {dtype}")
    if check and dtype in dt.WHOLE and array.size:
        low, high = array.min().item(), array.max().item()
        least, most = dtype.min, dtype.max
        # Written so that NaN, whose comparisons are all false, does not fit.
        if not (least - 1 < low and high < most + 1):
            raise ArgumentError(f"the values from {low} to {high} do not all fit into {dtype}")
    if array.dtype.kind in "biu" and dtype.kind != "float":  # NumPy never warns here
        return array.astype(dtype.numpy, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        return convert(array, dtype)


def _strings(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    if not array.size and dtype.kind == "string":  # NumPy takes an empty list for floats
        return np.empty(array.shape, dtype.numpy)
    if dtype.kind != "string" or array.dtype.kind not in "UT":
        raise DTypeError(f"the values are {array.dtype}, but the dtype is {dtype}")
    try:
        return array.astype(dtype.numpy)
    except TypeError:  # a lone surrogate, such as "\ud800"
        raise DTypeError(f"{_short(array)} contains text that UTF-8 cannot encode") from None


def _as_arange(numbers: range) -> np.ndarray[Any, Any]:
    """Return a range as an array, without a Python integer for each element."""
    return np.arange(numbers.start, numbers.stop, numbers.step)


def _kinds(value: Sequence[Any]) -> frozenset[type]:
    """Return the types of the innermost elements of nested lists.

    Raises:
        ArgumentError: an element is a tensor; copying its data would disconnect it from the tape.
        ShapeError: the lists are nested too deeply for any array.

    """
    if isinstance(value, range):
        return frozenset({int} if value else ())
    kinds = {type(member) for level in levels(value) for row in level for member in row}
    if any(hasattr(kind, "_placement") for kind in kinds):
        raise ArgumentError("a list contains tensors; join them with stack or concat")
    return frozenset(kind for kind in kinds if not issubclass(kind, list | tuple))


def levels(value: Sequence[Any]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the lists of each level of nested lists, outermost first; each list once per level.

    Raises:
        ShapeError: the lists are nested too deeply for any array, or contain themselves.

    """
    level: list[Sequence[Any]] = [value]
    for _ in range(MOST_AXES):
        yield level
        nested = {kind for kind in {type(m) for row in level for m in row} if _is_nested(kind)}
        if not nested:
            return
        inner = (member for row in level for member in row if type(member) in nested)
        level = list({id(member): member for member in inner}.values())
    raise ShapeError(f"lists are nested more than {MOST_AXES} deep, or contain themselves")


def _is_nested(kind: type) -> bool:
    return issubclass(kind, list | tuple)


def _short(value: object) -> str:
    text = quoted(value)
    return text if len(text) <= 60 else text[:57] + "..."
