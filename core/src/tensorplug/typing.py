"""Types of arguments, for annotations: what the functions accept, not what they return.

An argument that becomes a tensor is an ``ArrayLike``. Text is not one, so that a type checker
refuses ``tp.sin("text")``; functions of text take ``TextLike``. A dtype's name is one of those
that exist, so that ``dtype="flaot32"`` is refused, too.

>>> from tensorplug.typing import ArrayLike
>>> def total(x: ArrayLike) -> tp.Tensor:
...     return tp.sum(x)
>>> total([1.0, 2.0])
Tensor(3., dtype=float32, device='cpu')
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias, TypeVar

import numpy as np

from tensorplug.contract.dtypes import DType
from tensorplug.dispatch.tensor import Tensor

__all__ = [
    "ArrayLike",
    "Axis",
    "DTypeLike",
    "DTypeName",
    "DataFormat",
    "KeyLike",
    "Nested",
    "PaddingLike",
    "PerAxis",
    "RoundingMode",
    "Scalar",
    "ShapeLike",
    "SupportsArray",
    "SupportsBuffer",
    "SupportsDLPack",
    "TensorLike",
    "TextLike",
]

_T_co = TypeVar("_T_co", covariant=True)


class SupportsArray(Protocol):
    """An object that NumPy can read: a tensor, a variable, an array of another library."""

    def __array__(self) -> np.ndarray[Any, Any]:
        """Return the elements as an array."""
        ...


class SupportsBuffer(Protocol):
    """An object with Python's buffer protocol: a ``bytearray``, an array of ``ctypes``."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """Return the memory."""
        ...


class SupportsDLPack(Protocol):
    """An array of a library that exchanges memory by DLPack."""

    def __dlpack__(self, *, stream: Any = ...) -> Any:
        """Return the data as a capsule."""
        ...

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return the kind and the number of the device that holds the data."""
        ...


class Nested(Protocol[_T_co]):
    """Lists or tuples of elements, at any depth. A string is none, though it is a sequence."""

    def __len__(self) -> int: ...
    # A string looks for strings only. This parameter is what sets it apart.
    def __contains__(self, x: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> _T_co | Nested[_T_co]: ...


Scalar: TypeAlias = complex | np.number[Any] | np.bool_
"""A number of Python (a bool, int, float or complex) or of NumPy."""

ArrayLike: TypeAlias = Tensor | SupportsArray | Scalar | Nested[Tensor | SupportsArray | Scalar]
"""A tensor, an array, a number, or nested lists of them. It becomes a tensor."""

Operand: TypeAlias = Tensor | np.ndarray[Any, Any] | Scalar
"""What ``+`` and other operators take beside a tensor. Lists are none, as lists have a ``+``."""

TextLike: TypeAlias = Tensor | SupportsArray | str | Nested[str | SupportsArray]
"""What becomes a tensor of strings."""

TensorLike: TypeAlias = ArrayLike | TextLike
"""What becomes a tensor of any dtype, for functions that move elements or compare them."""

DTypeName: TypeAlias = Literal[
    "bool",
    "int",
    "float",
    "complex",
    "str",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float4_e2m1fn",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "string",
]
"""The names of dtypes; ``"float"`` is that of the default, float32."""

DTypeLike: TypeAlias = (
    DType
    | DTypeName
    | np.dtype[Any]
    | type[bool]
    | type[int]
    | type[float]
    | type[complex]
    | type[str]
    | type[np.generic]
)
"""What denotes a dtype; see ``tp.asarray``."""

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""One axis or several. Negative ones count from the last."""

ShapeLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""A shape, or the one length of a shape of rank 1."""

KeyLike: TypeAlias = Tensor | SupportsArray
"""A key of ``tensorplug.random``, uint32 of shape [4], or int32 on a device without uint32."""

PerAxis: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
"""One number per spatial axis of a sliding window, or one for all of them."""

PaddingLike: TypeAlias = (
    Literal["same", "valid"] | SupportsIndex | Sequence[Sequence[SupportsIndex]]
)
"""Padding of a sliding window, by rule, by one number, or by (before, after) for each axis."""

DataFormat: TypeAlias = Literal["NHWC", "NCHW"]
"""The order of an image's axes. N is the batch, C the channels."""

Norm: TypeAlias = Literal["backward", "ortho", "forward"]
"""Which of a Fourier transform and its inverse is scaled by 1 / n."""

RoundingMode: TypeAlias = Literal["floor", "round", "ceil"]
"""How a fractional number of positions of a sliding window is rounded."""

_Entry: TypeAlias = (
    SupportsIndex
    | slice
    | EllipsisType
    | SupportsArray
    | Nested[SupportsIndex | SupportsArray]
    | None
)
Index: TypeAlias = _Entry | tuple[_Entry, ...]
"""What stands in ``x[...]``, as in NumPy."""
