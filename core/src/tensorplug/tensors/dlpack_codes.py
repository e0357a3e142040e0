"""DLPack capsules of dtypes that NumPy's own functions refuse.

NumPy makes and reads the capsule of integers of the same size, in which the code of the dtype is
replaced. Elements of 4 and 2 bits are packed: a byte is one vector of several lanes, and the last
axis counts vectors. PyTorch does so, whose float4 has no other form.

Source: the structures of dlpack.h, versions 0.8 and 1.1.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.host_functions import bits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tensorplug.contract.dtypes import DType


CODES: Final[Mapping[DType, int]] = {  # kDLBfloat, kDLFloat8_e4m3fn, ...
    dt.bfloat16: 4,
    dt.float8_e4m3fn: 10,
    dt.float8_e4m3fnuz: 11,
    dt.float8_e5m2: 12,
    dt.float8_e5m2fnuz: 13,
    dt.float8_e8m0fnu: 14,
    dt.float4_e2m1fn: 17,
    dt.int4: 0,
    dt.int2: 0,
    dt.uint4: 1,
    dt.uint2: 1,
}

_BY_CODE: Final = {(code, dtype.bits): dtype for dtype, code in CODES.items()}
_UNSIGNED: Final = 1  # kDLUInt
# The offset of DLTensor.dtype: after the address of the data, the device (two int32) and the rank
# (int32). In a versioned capsule, the version, two addresses and the flags come first.
_OFFSETS: Final = {b"dltensor": 20, b"dltensor_versioned": 52}

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_address_of = ctypes.pythonapi.PyCapsule_GetPointer
_address_of.restype, _address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Type(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


def count_lanes(dtype: DType) -> int:
    """Return how many elements share a byte: 1 for dtypes of whole bytes."""
    return max(1, 8 // dtype.bits)


def export(array: np.ndarray[Any, Any], dtype: DType, **options: Any) -> Any:
    """Return a capsule of an array of ``dtype``; ``options`` are those of ``__dlpack__``.

    Packed elements are copied; along the last axis they must fill whole bytes.
    """
    code = CODES.get(dtype)
    if code is None:
        return array.__dlpack__(**options)
    lanes = count_lanes(dtype)
    if lanes > 1:
        shape = (*array.shape[:-1], array.shape[-1] // lanes, lanes)
        array = bits.bitcast(array.reshape(shape), dtype=dt.uint8)
    capsule = array.view(f"u{dtype.itemsize}").__dlpack__(**options)
    type_ = _type_of(capsule)
    assert type_ is not None  # NumPy has made it
    type_.code, type_.bits, type_.lanes = code, dtype.bits, lanes
    return capsule


def read(capsule: Any) -> np.ndarray[Any, Any]:
    """Return a view of the memory of a capsule in host memory, which is used up.

    Packed elements are copied, each to a byte of its own.

    Raises:
        BufferError, RuntimeError: NumPy cannot read it.

    """
    type_ = _type_of(capsule)
    dtype = None if type_ is None else _BY_CODE.get((type_.code, type_.bits))
    if type_ is None or dtype is None or type_.lanes != count_lanes(dtype):
        return np.from_dlpack(_Exported(capsule))
    type_.code, type_.bits, type_.lanes = _UNSIGNED, 8 * dtype.itemsize, 1
    elements = bits.bitcast(np.from_dlpack(_Exported(capsule)), dtype=dtype)
    return (
        elements
        if dtype.bits >= 8
        else elements.reshape(*elements.shape[:-2], prod(elements.shape[-2:]))
    )


def _type_of(capsule: Any) -> _Type | None:
    """Return the dtype in a capsule's memory, None for an object that is no capsule of DLPack."""
    if type(capsule).__name__ != "PyCapsule":
        return None
    name = _name_of(capsule)
    offset = _OFFSETS.get(name)
    if offset is None:
        return None
    return _Type.from_address(_address_of(capsule, name) + offset)


class _Exported:
    """Passes an exported capsule to ``numpy.from_dlpack``, which expects a producer."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU

    def __dlpack__(self, **_request: Any) -> Any:
        return self._capsule
