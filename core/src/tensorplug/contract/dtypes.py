"""Data types and the promotion table.

The dtypes are those of the Python array API standard, plus ``float16``, ``bfloat16`` and
``string``. Promotion follows the standard if it defines a result. Otherwise, an integer with a
float gives that float (docs/adr/0002), and two floats of which neither holds the other give the
dtype in which to compute with them (docs/adr/0033).
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorplug.contract.arguments import quoted
from tensorplug.errors import ArgumentError, DTypeError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["bool", "signed", "unsigned", "float", "complex", "string"]
Scalar = bool | int | float | complex


class DType:
    """A data type. There is one object per type, so ``is`` compares dtypes.

    ``==`` also compares a dtype with its spellings, which ``of`` lists: ``x.dtype == "float32"``.
    It is False for any other dtype, string or type, and never raises. As with NumPy's dtypes, a
    spelling is a different key: look up ``table[x.dtype.name]`` in a dictionary with names.

    Attributes: ``name`` as in the array API standard, ``kind``, ``itemsize`` in bytes (0 for
    strings, whose size varies) and ``numpy``, the NumPy dtype on the host: one of ml_dtypes',
    which is imported at the first use, where NumPy has none.
    ``numpy.dtype(tensorplug.float32)`` reads it from ``dtype``, or from ``__numpy_dtype__`` since
    NumPy 2.4.

    What arithmetic needs to know: ``bits`` of one element; ``compute``, the dtype in which several
    steps and sums are computed before they are rounded once, such as float32 for float16;
    ``significand``, the digits of a float in base 2 with the leading one, else 0; ``min`` and
    ``max``, the least and the greatest finite number (0 and 1 for bool, none for strings);
    ``eps``, the gap between 1 and the next float; ``smallest_normal``, the least positive float of
    full precision. Those of a complex dtype are its parts'.

    Args:
        name: as above.
        kind: as above.
        itemsize: as above.
        significand: of a float.
        compute: itself if not given.
        extension: whether ml_dtypes has it, and NumPy does not.
        bits: fewer than ``itemsize`` bytes have; each element still takes whole bytes.
        limits: ``smallest_normal`` and ``max`` of a float for which IEEE 754 has no formula.

    Examples:
        >>> tp.int8.min, tp.int8.max, tp.float16.eps
        (-128, 127, 0.0009765625)
        >>> tp.bfloat16.bits, tp.bfloat16.compute
        (16, tensorplug.float32)
        >>> tp.float32 == "float32", tp.float32 == np.float32
        (True, True)

    """

    __slots__ = (
        "__numpy_dtype__",
        "bits",
        "compute",
        "dtype",
        "eps",
        "itemsize",
        "kind",
        "max",
        "min",
        "name",
        "numpy",
        "significand",
        "smallest_normal",
    )

    name: str
    kind: Kind
    itemsize: int
    bits: int
    compute: DType
    significand: int
    eps: float
    smallest_normal: float
    min: Any  # an int or a float, as the dtype
    max: Any
    numpy: np.dtype[np.generic]
    dtype: np.dtype[np.generic]
    __numpy_dtype__: np.dtype[np.generic]

    def __init__(
        self,
        name: str,
        kind: Kind,
        itemsize: int,
        *,
        significand: int = 0,
        compute: DType | None = None,
        extension: bool = False,
        bits: int | None = None,
        limits: tuple[float, float] | None = None,
    ) -> None:
        arguments: tuple[object, object] = name, itemsize
        if not isinstance(arguments[0], str) or not isinstance(arguments[1], int):
            raise DTypeError(
                f"DType: name must be text and itemsize an integer, got {quoted(name)} and "
                f"{quoted(itemsize)}"
            )
        self.name = name
        self.kind = kind
        self.itemsize = itemsize
        self.bits = bits or 8 * itemsize
        self.compute = compute or self
        self.significand = significand
        self._set_limits(limits)
        if extension:
            return
        try:
            self._set_numpy(np.dtypes.StringDType() if not itemsize else np.dtype(name))
        except (TypeError, ValueError):
            raise DTypeError(f"DType: NumPy has no dtype {quoted(name)}") from None

    def _set_numpy(self, dtype: np.dtype[np.generic]) -> None:
        self.numpy = self.dtype = self.__numpy_dtype__ = dtype

    def __getattr__(self, name: str) -> Any:
        # Only slots that are not set yet come here.
        if name not in {"numpy", "dtype", "__numpy_dtype__"}:
            raise AttributeError(f"DType has no attribute {name!r}")
        import ml_dtypes  # takes milliseconds, for dtypes that few programs use

        numpy_dtype = np.dtype(getattr(ml_dtypes, self.name))
        self._set_numpy(numpy_dtype)
        _BY_SPELLING[numpy_dtype] = self
        _NUMBER_TYPES[numpy_dtype.type] = float if self.significand else int
        return numpy_dtype

    def _set_limits(self, limits: tuple[float, float] | None) -> None:
        self.eps = self.smallest_normal = 0.0
        self.min, self.max = 0, 1
        if self.kind == "signed":
            self.min, self.max = -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        elif self.kind == "unsigned":
            self.max = (1 << self.bits) - 1
        elif self.significand:  # IEEE 754: the exponents of normal numbers are 1 - top to top
            parts = 2 if self.kind == "complex" else 1
            top = (1 << self.bits // parts - self.significand - 1) - 1
            self.eps = 2.0 ** (1 - self.significand)
            ieee = 2.0 ** (1 - top), (2 - self.eps) * 2.0**top
            self.smallest_normal, self.max = limits or ieee
            self.min = -self.max

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if not isinstance(other, _SPELLING_TYPES):
            return False if other.__class__ is DType else NotImplemented
        try:
            return _read(other, "") is self
        except DTypeError:  # other text or types: libraries compare dtypes with keys of any kind
            return False

    # Not a function: dtypes are parts of the keys of plans. The spellings have hashes of their
    # own ("f4", "float" and numpy.float32), so no hash could agree with all of them.
    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"tensorplug.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return of, (self.name,)  # unpickling must not create a second object


bool_: Final = DType("bool", "bool", 1)
int8: Final = DType("int8", "signed", 1)
int16: Final = DType("int16", "signed", 2)
int32: Final = DType("int32", "signed", 4)
int64: Final = DType("int64", "signed", 8)
uint8: Final = DType("uint8", "unsigned", 1)
uint16: Final = DType("uint16", "unsigned", 2)
uint32: Final = DType("uint32", "unsigned", 4)
uint64: Final = DType("uint64", "unsigned", 8)
float32: Final = DType("float32", "float", 4, significand=24)
float64: Final = DType("float64", "float", 8, significand=53)
float16: Final = DType("float16", "float", 2, significand=11, compute=float32)
bfloat16: Final = DType("bfloat16", "float", 2, significand=8, compute=float32, extension=True)
complex64: Final = DType("complex64", "complex", 8, significand=24)
complex128: Final = DType("complex128", "complex", 16, significand=53)
string: Final = DType("string", "string", 0)


def _narrow_float(
    name: str, significand: int, limits: tuple[float, float] | None = None, bits: int = 8
) -> DType:
    return DType(
        name,
        "float",
        1,
        significand=significand,
        extension=True,
        bits=bits,
        limits=limits,
    )


# For storage: the Open Compute Project's formats, and integers of less than a byte.
float8_e4m3fn: Final = _narrow_float("float8_e4m3fn", 4, (2.0**-6, 448.0))
float8_e4m3fnuz: Final = _narrow_float("float8_e4m3fnuz", 4, (2.0**-7, 240.0))
float8_e5m2: Final = _narrow_float("float8_e5m2", 3)
float8_e5m2fnuz: Final = _narrow_float("float8_e5m2fnuz", 3, (2.0**-15, 57344.0))
float8_e8m0fnu: Final = _narrow_float("float8_e8m0fnu", 1, (2.0**-127, 2.0**127))
float8_e8m0fnu.min = 2.0**-127  # powers of 2: there are neither signs nor a zero
float4_e2m1fn: Final = _narrow_float("float4_e2m1fn", 2, (1.0, 6.0), bits=4)
int4: Final = DType("int4", "signed", 1, extension=True, bits=4)
int2: Final = DType("int2", "signed", 1, extension=True, bits=2)
uint4: Final = DType("uint4", "unsigned", 1, extension=True, bits=4)
uint2: Final = DType("uint2", "unsigned", 1, extension=True, bits=2)


def _read_default(variable: str, narrow: DType, wide: DType) -> DType:
    """Return a default dtype, which an environment variable sets for the whole process.

    Raises:
        SettingsError: the value is neither of the two dtypes.

    """
    value = os.environ.get(variable, "")
    name = value.strip() or narrow.name
    for dtype in (narrow, wide):
        if dtype.name == name:
            return dtype
    raise SettingsError(f"{variable}={value!r}: must be {narrow} or {wide}")


default_float: Final = _read_default("TENSORPLUG_DEFAULT_FLOAT", float32, float64)
default_int: Final = _read_default("TENSORPLUG_DEFAULT_INT", int32, int64)
kernel_int: Final = int32  # of indices and counts that kernels return, whatever the default is
default_complex: Final = complex64 if default_float is float32 else complex128

BOOL: Final = frozenset({bool_})
SIGNED: Final = frozenset({int8, int16, int32, int64})
UNSIGNED: Final = frozenset({uint8, uint16, uint32, uint64})
INTEGER: Final = SIGNED | UNSIGNED
FLOATING: Final = frozenset({float16, bfloat16, float32, float64})
COMPLEX: Final = frozenset({complex64, complex128})
REAL: Final = INTEGER | FLOATING
INEXACT: Final = FLOATING | COMPLEX
NUMERIC: Final = REAL | COMPLEX
WIDENED: Final = frozenset({bfloat16})  # computed in a wider dtype where a backend is silent
FIXED: Final = BOOL | NUMERIC  # every type whose elements have a fixed size
ANY: Final = FIXED | {string}
STORAGE: Final = frozenset(
    {
        *(float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu),
        *(float4_e2m1fn, int4, uint4, int2, uint2),
    }
)  # kernels move and convert them, and compute nothing with them
STORED: Final = ANY | STORAGE
EXTENSIONS: Final = WIDENED | STORAGE  # NumPy has them from ml_dtypes
WHOLE: Final = INTEGER | {int4, uint4, int2, uint2}

_BY_NAME: Final = {dtype.name: dtype for dtype in STORED}
_BY_NUMPY: Final = {dtype.numpy: dtype for dtype in FIXED - WIDENED}
_SIGNED_BY_SIZE: Final = {dtype.itemsize: dtype for dtype in SIGNED}
_REAL_PART: Final = {complex64: float32, complex128: float64}
_ABSTRACT: Final = (  # NumPy's types without elements
    *(np.generic, np.number, np.flexible, np.character),
    *(np.integer, np.signedinteger, np.unsignedinteger),
    *(np.inexact, np.floating, np.complexfloating),
)


_PYTHON: Final[dict[type, DType]] = {
    bool: bool_,
    int: default_int,
    float: default_float,
    complex: default_complex,
    str: string,
}
_BY_SPELLING: Final[dict[Any, DType]] = {
    **_PYTHON,
    **{python_type.__name__: dtype for python_type, dtype in _PYTHON.items()},
    **_BY_NAME,
    **_BY_NUMPY,
}
_SPELLING_TYPES: Final = (str, type, np.dtype)


def of(value: object, what: str = "") -> DType:
    """Return the dtype that ``value`` denotes: the one rule wherever a dtype is accepted.

    Args:
        value: one of these:

            - a ``DType`` or its name;
            - ``bool``, ``int``, ``float``, ``complex`` or ``str``, or the name of one: the
              default dtype of that kind, such as float32 for ``float`` and ``"float"``;
            - a NumPy type, dtype or type string: itself, such as float64 for ``numpy.float64``,
              ``numpy.dtype(float)``, ``"double"`` and ``"<f8"``. Byte order is ignored.
        what: the prefix of messages.

    Raises:
        DTypeError: it is anything else.

    """
    if isinstance(value, DType):
        return value
    dtype = _read(value, what) if isinstance(value, _SPELLING_TYPES) else None
    if dtype is None:
        raise _unknown(value, what)
    return dtype


def _read(value: Any, what: str) -> DType | None:
    """Return the dtype of a spelling; None for a dtype of NumPy that no tensor has.

    Raises:
        DTypeError: a string or a type that is not a dtype.

    """
    known = _BY_SPELLING.get(value)
    if known is not None:
        return known
    try:
        numpy_dtype = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):  # a SyntaxError for text such as ","
        raise _unknown(value, what) from None
    if isinstance(value, type):
        # NumPy takes any class for object, and took abstract types for one of their kind.
        foreign = numpy_dtype.kind == "O" and value not in (object, np.object_)
        if foreign or value in _ABSTRACT:
            raise _unknown(value, what)
    return string if numpy_dtype.kind in "UT" else _BY_NAME.get(numpy_dtype.name)


def _unknown(value: object, what: str) -> DTypeError:
    who = f"{what}: " if what else ""
    known = ", ".join(sorted(_BY_NAME))
    return DTypeError(f"{who}unknown dtype {quoted(value)}; dtypes are {known}")


def _promote_integers(a: DType, b: DType) -> DType | None:
    if a.kind == b.kind:
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "signed" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return _SIGNED_BY_SIZE.get(2 * unsigned.itemsize)


def _promote_floats(a: DType, b: DType) -> DType:
    for x, y in ((a, b), (b, a)):
        if x.significand >= y.significand and x.max >= y.max:
            return x
    return _promote_floats(a.compute, b.compute)


def _promote_with_complex(a: DType, b: DType) -> DType:
    parts = [_REAL_PART.get(dtype, dtype) for dtype in (a, b)]
    return complex128 if float64 in parts else complex64


def _pair(a: DType, b: DType) -> DType | None:
    if a is b:
        return a
    kinds = {a.kind, b.kind}
    if "string" in kinds:
        return None
    if a.kind == "bool":
        return b
    if b.kind == "bool":
        return a
    if "complex" in kinds:
        return _promote_with_complex(a, b)
    if kinds == {"float"}:
        return _promote_floats(a, b)
    if "float" in kinds:
        return a if a.kind == "float" else b
    return _promote_integers(a, b)


PROMOTION: Final = {
    (a, b): result for a in ANY for b in ANY if (result := _pair(a, b)) is not None
}


def promote(dtypes: Iterable[DType]) -> DType:
    """Return the common dtype to which all of ``dtypes`` promote.

    Raises:
        DTypeError: two of them have no common dtype (``string`` with a number, ``uint64`` with a
            signed integer).

    """
    result: DType | None = None
    for dtype in dtypes:
        if result is None or result is dtype:
            result = dtype
        elif (result, dtype) in PROMOTION:
            result = PROMOTION[result, dtype]
        else:
            raise DTypeError(
                f"{result} and {dtype} have no common dtype; convert one of them with astype"
            )
    if result is None:
        raise DTypeError("no dtype to promote: the list is empty")
    return result


def inexact(dtype: DType) -> DType:
    """Return the default float for integers and booleans, else ``dtype`` itself."""
    return default_float if dtype in INTEGER | BOOL else dtype


# By class, since longdouble and timedelta64 derive from the same abstract types as the others.
_NUMBER_TYPES: Final[dict[type, type]] = {
    np.dtype(code).type: {"b": bool, "f": float, "c": complex}.get(np.dtype(code).kind, int)
    for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]
}


def is_numpy_scalar(value: object) -> bool:
    """Return whether ``value`` is a NumPy scalar that is a boolean or a number."""
    kind = value.__class__
    return kind in _NUMBER_TYPES or (
        kind.__module__ == "ml_dtypes" and _read(kind, "") is not None
    )


def as_number(value: Any) -> Any:
    """Return a NumPy scalar as the Python number that it equals; any other value unchanged."""
    python_type = _NUMBER_TYPES.get(value.__class__)
    if python_type is None:
        if not is_numpy_scalar(value):
            return value
        python_type = float if of(value.dtype).significand else int
    number = python_type(value)
    # One object for NaN, which is not equal to itself: caches find it by identity.
    return math.nan if python_type is float and number != number else number  # noqa: PLR0124


def of_scalar(value: Scalar | np.generic, other: DType | None) -> DType:
    """Return the dtype of a scalar in a call with a tensor of dtype ``other``.

    Python's and NumPy's scalars are weak: they never widen a tensor of their own kind or a higher
    one. Without ``other``, Python's get the default dtype of their kind, and NumPy's keep theirs.
    """
    if other is None and is_numpy_scalar(value):
        return of(value.dtype)  # type: ignore[union-attr]  # a NumPy scalar
    value = as_number(value)
    own = _PYTHON[bool if isinstance(value, bool) else _scalar_type(value)]
    if other is None or other.kind == "string":
        return own
    if own.kind == "complex":
        return complex128 if other in (float64, complex128) else complex64
    if own.kind == "float":
        return other if other in INEXACT else default_float
    if own.kind == "signed" and other.kind == "bool":
        return default_int
    return other


def _scalar_type(value: Any) -> type:
    for candidate in (int, float, complex):
        if isinstance(value, candidate):
            return candidate
    raise DTypeError(f"{quoted(value)} is not a Python number")


def check_number(value: Scalar, dtype: DType) -> None:
    """Refuse an attribute's number that is not possible as an element of ``dtype``.

    A whole float is allowed for an integer dtype; one too large for a float dtype is infinite.

    Raises:
        DTypeError: a complex number for a real dtype, a fraction for an integer one, any
            number for strings.
        ArgumentError: the integer is out of range.

    """
    if dtype.kind == "string" or (isinstance(value, complex) and dtype not in COMPLEX):
        raise DTypeError(f"{quoted(value)} cannot become {dtype}")
    if dtype not in WHOLE or isinstance(value, complex):
        return
    if isinstance(value, float) and not value.is_integer():
        raise DTypeError(f"{value!r} is not an integer, but the dtype is {dtype}")
    if not dtype.min <= value <= dtype.max:
        raise ArgumentError(f"{quoted(value)} does not fit into {dtype}")


def unpacked(dtype: DType) -> DType:
    """Return the dtype of NumPy's own that holds all numbers of an extension dtype."""
    if dtype not in EXTENSIONS:
        return dtype
    return float32 if dtype.significand else {"signed": int8}.get(dtype.kind, uint8)


def real_part(dtype: DType) -> DType:
    """Return the dtype of the real part of ``dtype``: itself unless it is complex."""
    return _REAL_PART.get(dtype, dtype)
