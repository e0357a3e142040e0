"""The reference for reading bits as another dtype: bytes packed and unpacked one by one."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array

# The formats of the real and, of complex numbers, the imaginary part.
_FORMATS = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float16": "e",
    "bfloat16": "f",
    "float32": "f",
    "float64": "d",
    "complex64": "ff",
    "complex128": "dd",
}


def bitcast(input: Array, *, dtype: str) -> Array:
    """Pack all elements, then unpack as many of the other dtype as their bytes hold.

    Wide numbers, of which derivatives are taken, only change between parts and pairs.
    """
    if input.dtype.char in "gG":  # also where they are no wider than float64
        return _regroup(input, np.dtype(dtype).kind == "c")
    packed = b"".join(_pack(element, input.dtype.name) for element in input.ravel().tolist())
    target = dt.of(dtype).numpy
    if target.name == "bfloat16":  # the upper half of a float
        packed = b"".join(bytes(2) + packed[at : at + 2] for at in range(0, len(packed), 2))
    form = _FORMATS[target.name]
    numbers = [_join(parts) for parts in struct.iter_unpack(f"<{form}", packed)]
    old, new = input.dtype.itemsize, target.itemsize
    shape = input.shape
    if new < old:
        shape = (*shape, old // new)
    elif new > old:
        shape = shape[:-1]
    return np.array(numbers, target).reshape(shape)


def split(input: Array, dtype: str) -> Array:
    """Return elements for storage, of at most 8 bits: digit by digit, the lowest first."""
    about, target = dt.of(input.dtype), dt.of(dtype)
    base, parts = 1 << target.bits, about.bits // target.bits
    items = []
    for element in input.reshape(-1):
        rest = int.from_bytes(element.tobytes(), "little")
        for _ in range(parts):
            rest, digit = divmod(rest, base)
            items.append(digit)
    shape = input.shape if parts == 1 else (*input.shape, parts)
    return np.array(items, np.uint8).view(target.numpy).reshape(shape)


def _regroup(x: Array, pairs: bool) -> Array:
    """Return wide numbers as complex ones (``pairs``) or as real ones."""
    if (x.dtype.kind == "c") == pairs:
        return x
    if pairs:
        return np.asarray(x[..., 0] + 1j * x[..., 1])
    return np.stack([x.real, x.imag], axis=-1)


def _pack(element: Any, name: str) -> bytes:
    form = _FORMATS[name]
    parts = (element.real, element.imag) if len(form) == 2 else (element,)
    packed = struct.pack(f"<{form}", *parts)
    return packed[2:] if name == "bfloat16" else packed


def _join(parts: tuple[Any, ...]) -> Any:
    return complex(*parts) if len(parts) == 2 else parts[0]
