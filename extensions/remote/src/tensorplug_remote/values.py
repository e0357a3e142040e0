"""Attributes and types as JSON: a closed set of kinds, with tags for what JSON lacks.

None, bool, int, text and finite floats are themselves; a list is a tuple. An object has one
member, whose name says what it is: ``{"dtype": "int32"}``, ``{"float": "nan"}``,
``{"complex": [a, b]}``.
"""

from __future__ import annotations

import math
from typing import Any

from tensorplug.errors import DTypeError
from tensorplug.plugin import DType, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_remote.errors import ProtocolError


def encode(value: Any) -> Any:
    """Return an attribute as JSON.

    Raises:
        TypeError: it is of no kind that is sent.

    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, complex):
        return {"complex": [encode(value.real), encode(value.imag)]}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, tuple | list):
        return [encode(member) for member in value]
    if hasattr(value, "__index__"):  # also a size of a trace
        return int(value)
    raise TypeError(f"a {type(value).__name__} is no attribute that can be sent")


def decode(value: Any) -> Any:
    """Return the attribute that ``encode`` made this of.

    Raises:
        ProtocolError: it did not.

    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return tuple(decode(member) for member in value)
    match value:
        case {"float": "nan" | "inf" | "-inf" as text, **rest} if not rest:
            return float(text)
        case {"complex": [real, imaginary], **rest} if not rest:
            parts = decode(real), decode(imaginary)
            if all(isinstance(part, float) for part in parts):
                return complex(*parts)
        case {"dtype": str(name), **rest} if not rest:
            return decode_dtype(name)
    raise ProtocolError(f"{str(value)[:80]} is no attribute")


def decode_dtype(name: Any) -> DType:
    """Return the dtype of this name, of elements of a fixed size.

    Raises:
        ProtocolError: there is none.

    """
    try:
        dtype = dt.of(name) if isinstance(name, str) else dt.string
    except DTypeError as error:
        raise ProtocolError(str(error)) from error
    if dtype is dt.string:
        raise ProtocolError(f"{str(name)[:80]} is no dtype that can be sent")
    return dtype


def encode_type(type_: TensorType) -> list[Any]:
    """Return dtype and shape as JSON."""
    return [type_.dtype.name, *(int(size) for size in type_.shape)]


def decode_type(value: Any, *, unknown: bool = False) -> TensorType:
    """Return the type that ``encode_type`` made this of; ``unknown``: sizes may be unknown.

    Raises:
        ProtocolError: it did not.

    """
    match value:
        case [name, *sizes] if all(type(size) is int and size >= -unknown for size in sizes):
            return TensorType(decode_dtype(name), tuple(sizes))
    raise ProtocolError(f"{str(value)[:80]} is no type of a tensor")
