"""The dtype functions of the array API standard 2025.12."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.dispatch import host_values
from tensorplug.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DTypeLike, Scalar, SupportsArray

    Typed: TypeAlias = DTypeLike | Tensor | SupportsArray  # a dtype, or what has one
    KindName: TypeAlias = Literal[
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
    ]
    Kind: TypeAlias = KindName | DTypeLike | tuple[KindName | DTypeLike, ...]


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

    All are those of the parts of a complex dtype. ``bits``: of one element. ``eps``: the gap
    between 1 and the next number. ``smallest_normal``: the smallest positive number of full
    precision.
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


def finfo(type: Typed, /) -> FloatInfo:
    """Return the limits of a floating or complex dtype, or of a tensor's.

    ``type``: a dtype or a tensor.

    Raises:
        DTypeError: the dtype is neither floating nor complex.

    Examples:
        >>> tp.finfo("float16").max
        65504.0
        >>> tp.finfo(tp.bfloat16).eps, tp.finfo("complex64").bits
        (0.0078125, 32)

    """
    dtype = _dtype_of(type, "finfo")
    if not dtype.significand:
        raise DTypeError(f"finfo: dtype must be floating or complex, got {dtype}; see iinfo")
    part = dt.real_part(dtype)
    return FloatInfo(part.bits, part.eps, part.max, part.min, part.smallest_normal, part)


def iinfo(type: Typed, /) -> IntegerInfo:
    """Return the limits of an integer dtype, or of a tensor's.

    ``type``: a dtype or a tensor.

    Raises:
        DTypeError: the dtype is not an integer.

    Examples:
        >>> tp.iinfo("int8").min, tp.iinfo("int8").max
        (-128, 127)

    """
    dtype = _dtype_of(type, "iinfo")
    if dtype not in dt.WHOLE:
        raise DTypeError(f"iinfo: dtype must be an integer, got {dtype}; see finfo")
    return IntegerInfo(dtype.bits, dtype.max, dtype.min, dtype)


def isdtype(dtype: DTypeLike, kind: Kind) -> bool:
    """Return whether ``dtype`` is of a kind.

    Args:
        dtype: a dtype, or the name of one.
        kind: a dtype, which ``dtype`` must equal, one of ``"bool"``, ``"signed integer"``,
            ``"unsigned integer"``, ``"integral"``, ``"real floating"``, ``"complex floating"``
            and ``"numeric"``, or a tuple of these, one of which must match.

    Raises:
        ArgumentError: the kind is unknown.
        DTypeError: ``dtype`` is not a dtype.

    Examples:
        >>> tp.isdtype(tp.int8, "integral"), tp.isdtype(tp.int8, "real floating")
        (True, False)
        >>> tp.isdtype("float16", ("integral", tp.float16))
        True

    """
    dtype = dt.of(dtype, "isdtype")
    if isinstance(kind, tuple):
        matches = [isdtype(dtype, member) for member in kind]  # checks all members
        return any(matches)
    if isinstance(kind, str):
        if kind not in KINDS:
            listed = ", ".join(map(repr, KINDS))
            raise ArgumentError(
                f"isdtype: kind must be a dtype or one of {listed}, got {quoted(kind)}"
            )
        return dtype in KINDS[kind]
    return dtype is dt.of(kind, "isdtype: kind")


def can_cast(from_: Typed, to: DTypeLike, /) -> bool:
    """Return whether a dtype, or a tensor's, promotes to ``to``.

    Such a cast loses nothing, except for precision from integers to floats.

    ``from_``: a dtype or a tensor.

    Examples:
        >>> tp.can_cast("int32", "float32"), tp.can_cast("float32", "int32")
        (True, False)
        >>> tp.can_cast(tp.asarray([1, 2], dtype="uint8"), tp.int16)
        True
        >>> tp.can_cast("uint8", "int8")
        False

    """
    source, target = _dtype_of(from_, "can_cast"), dt.of(to, "can_cast")
    return dt.PROMOTION.get((source, target)) is target


def result_type(*arrays_and_dtypes: Typed | Scalar) -> DType:
    """Return the common dtype of tensors, dtypes and scalars.

    A scalar, Python's or NumPy's, is weak: only its kind counts.

    ``arrays_and_dtypes``: any number of them.

    Raises:
        ArgumentError: there is neither a tensor nor a dtype.
        DTypeError: they have no common dtype.

    Examples:
        >>> tp.result_type("int8", "uint8")
        tensorplug.int16
        >>> tp.result_type("int8", 1000), tp.result_type("float16", 2.5)
        (tensorplug.int8, tensorplug.float16)
        >>> tp.result_type(tp.asarray([1, 2]), 2.5)
        tensorplug.float32

    """
    given: tuple[Any, ...] = arrays_and_dtypes
    scalars = [value for value in given if host_values.is_scalar(value)]
    others = [
        _dtype_of(value, "result_type") for value in given if not host_values.is_scalar(value)
    ]
    if not others:  # NumPy's scalars have dtypes
        others = [dt.of_scalar(scalar, None) for scalar in scalars if dt.is_numpy_scalar(scalar)]
    if not others:
        raise ArgumentError("result_type: at least one tensor or dtype is needed")
    result = dt.promote(others)
    for scalar in scalars:
        result = dt.promote((result, dt.of_scalar(scalar, result)))
    return result


def _dtype_of(value: Any, who: str) -> DType:
    # Types and dtypes have an attribute `dtype` too, which is not that of an array.
    own = None if isinstance(value, dt.DType | type) else getattr(value, "dtype", None)
    return dt.of(value if own is None else own, who)
