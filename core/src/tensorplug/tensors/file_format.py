"""The safetensors format, read and written without mapping files into memory.

A map of a file that another program shortens kills the process (SIGBUS). Here, such a file is a
``FileFormatError``.

The format has no integers of 4 and 2 bits, and no float4 that does not fill its last byte. Such
tensors are stored as bytes (U8), and the metadata ``tensorplug.packed`` says by name what they
are: ``{"name": ["int4", [3, 5]]}``.

Source: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import quoted
from tensorplug.host_functions import bits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import FileIO
    from typing import BinaryIO

    from tensorplug.contract.dtypes import DType


CODES: Final[Mapping[str, DType]] = {  # the format's names of dtypes
    "BOOL": dt.bool_,
    "I8": dt.int8,
    "I16": dt.int16,
    "I32": dt.int32,
    "I64": dt.int64,
    "U8": dt.uint8,
    "U16": dt.uint16,
    "U32": dt.uint32,
    "U64": dt.uint64,
    "F16": dt.float16,
    "BF16": dt.bfloat16,
    "F32": dt.float32,
    "F64": dt.float64,
    "C64": dt.complex64,
    "F8_E4M3": dt.float8_e4m3fn,
    "F8_E4M3FNUZ": dt.float8_e4m3fnuz,
    "F8_E5M2": dt.float8_e5m2,
    "F8_E5M2FNUZ": dt.float8_e5m2fnuz,
    "F8_E8M0": dt.float8_e8m0fnu,
    "F4": dt.float4_e2m1fn,  # two in a byte, the first one in its lower half
}
PACKED: Final = "tensorplug.packed"
"""The key of the metadata that says which bytes are elements of less than a byte."""
_SHORT: Final = {dtype.name: dtype for dtype in dt.STORAGE if dtype.bits < 8}
DTYPES: Final[Mapping[str, DType]] = {**CODES, **_SHORT}
"""The dtypes by the code of an ``Entry``: the format's name, or for packed ones their own."""
# Bits per element of those that tensors do not have.
_OTHERS: Final = {"F6_E2M3": 6, "F6_E3M2": 6}
_LIMIT: Final = 100_000_000  # bytes of a header, as in other readers
_METADATA: Final = "__metadata__"


class UnreadableError(Exception):
    """The file does not follow the format, or NumPy cannot represent a tensor of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor: the code of its dtype, its shape, and where its bytes are in the file.

    The code is the name of the dtype if the metadata say so.
    """

    name: str
    code: str
    shape: tuple[int, ...]
    start: int
    end: int

    def read(self, file: FileIO) -> np.ndarray[Any, Any]:
        """Return the elements, in memory of their own.

        Raises:
            UnreadableError: the file has become too short, the shape is too large for NumPy, or a
                bool is neither 0 nor 1.

        """
        code = DTYPES[self.code]
        dtype = code.numpy.newbyteorder("<")
        try:
            array = np.empty(self.shape, dtype)
        except (ValueError, OverflowError) as error:  # a dimension or a rank that is too large
            raise UnreadableError(f"{quoted(self.name)}: {error}") from error
        whole = array.reshape(-1).view(np.uint8)
        read = whole[: self.end - self.start]
        _fill(file, self.start, read.data, quoted(self.name))
        if code.bits < 8:
            return bits.unpack(read, code, self.shape)
        if array.dtype == np.bool_ and (whole > 1).any():
            raise UnreadableError(f"{quoted(self.name)} is bool, but has bytes other than 0 and 1")
        return array.astype(dtype.newbyteorder("="), copy=False)


@dataclass(frozen=True, slots=True)
class Header:
    """The tensors of a file by name, in the order of the names, and its metadata."""

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]

    @classmethod
    def read(cls, file: FileIO) -> Header:
        """Read and check the header: entries must cover the rest of the file exactly.

        Raises:
            UnreadableError: with the first rule that is broken.

        """
        size = os.fstat(file.fileno()).st_size
        length = bytearray(8)
        _fill(file, 0, memoryview(length), "the length of its header")
        (count,) = struct.unpack("<Q", length)
        if count > min(_LIMIT, size - 8):
            raise UnreadableError(f"its header would have {count} bytes")
        text = bytearray(count)
        _fill(file, 8, memoryview(text), "its header")
        fields = _parsed(bytes(text))
        metadata = fields.pop(_METADATA, None)
        metadata = {} if metadata is None else metadata
        if not isinstance(metadata, dict) or not all(
            isinstance(value, str) for value in metadata.values()
        ):
            raise UnreadableError("its metadata must be text by name")
        entries = [_entry(name, value, 8 + count) for name, value in fields.items()]
        at = 8 + count
        for entry in sorted(entries, key=lambda entry: (entry.start, entry.end)):
            if entry.start != at:
                raise UnreadableError(
                    f"{quoted(entry.name)} starts at byte {entry.start}, but the data before it "
                    f"ends at byte {at}"
                )
            at = entry.end
        if at != size:
            raise UnreadableError(f"its entries end at byte {at}, but it has {size} bytes")
        by_name = {entry.name: entry for entry in sorted(entries, key=_name)}
        return cls(by_name | _packed(metadata.get(PACKED, "{}"), by_name), metadata)


def write(
    file: BinaryIO, arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str] | None
) -> None:
    """Write a header and the elements of arrays, which are in row-major order.

    Larger elements come first and the header is padded, so that all elements are aligned.
    """
    codes = {dtype: code for code, dtype in CODES.items()}
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    packed, fields, at = {}, {}, 0
    for name, array in ordered:
        dtype, shape = dt.of(array.dtype), list(array.shape)
        size = -(-array.size * dtype.bits // 8)
        code = codes.get(dtype)
        if code is None or array.size * dtype.bits % 8:
            packed[name] = dtype.name, shape
            code, shape = codes[dt.uint8], [size]
        fields[name] = {"dtype": code, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    if packed:
        metadata = {**(metadata or {}), PACKED: json.dumps(packed, ensure_ascii=False)}
    if metadata is not None:
        fields = {_METADATA: dict(metadata), **fields}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for _, array in ordered:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        short = dt.of(array.dtype).bits < 8
        file.write((bits.pack(array) if short else little.reshape(-1).view(np.uint8)).data)


def _name(entry: Entry) -> str:
    return entry.name


def _parsed(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise UnreadableError("its header is not a JSON object")
    try:
        decoded = text.decode("utf-8")
        fields: dict[str, Any] = json.loads(decoded, object_pairs_hook=_unique)
        json.dumps(fields, ensure_ascii=False).encode()  # escapes may form text that is not UTF-8
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"its header: {error}") from error
    return fields


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for name, value in pairs:
        if name in by_name:
            raise ValueError(f"it has {quoted(name)} twice")
        by_name[name] = value
    return by_name


def _entry(name: str, fields: Any, data: int) -> Entry:
    """Return a checked entry; ``data``: the byte at which the data begins."""
    match fields:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [start, end]}:
            pass
        case _:
            raise UnreadableError(
                f"{quoted(name)} is not described by dtype, shape and data_offsets"
            )
    if code not in CODES and code not in _OTHERS:
        raise UnreadableError(f"{quoted(name)} has the unknown dtype {quoted(code)}")
    if not all(_is_size(number) for number in (*shape, start, end)):
        raise UnreadableError(
            f"{quoted(name)}: sizes and offsets must be integers from 0 to 2**64 - 1"
        )
    size = _OTHERS[code] if code in _OTHERS else CODES[code].bits
    if 8 * (end - start) != size * _elements(shape):
        raise UnreadableError(
            f"{quoted(name)}: shape {quoted(shape)} of {code} is not {end - start} bytes"
        )
    return Entry(name, code, tuple(shape), data + start, data + end)


def _packed(text: str, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the entries of packed tensors, as ``text``, the metadata's JSON, describes them.

    Raises:
        UnreadableError: it does not describe entries of ``entries``.

    """
    arrays = {}
    for name, fields in _parsed(text.encode()).items():
        entry = entries.get(name)
        match fields:
            case [str(code), list(shape)] if (
                entry is not None
                and entry.code == "U8"
                and code in _SHORT
                and all(map(_is_size, shape))
                and entry.end - entry.start == -(-_SHORT[code].bits * _elements(shape) // 8)
            ):
                arrays[name] = Entry(name, code, tuple(shape), entry.start, entry.end)
            case _:
                raise UnreadableError(f"its metadata {PACKED!r} do not describe {quoted(name)}")
    return arrays


def _is_size(number: Any) -> bool:
    return type(number) is int and 0 <= number < 1 << 64  # longer ones cannot even be printed


def _elements(shape: list[int]) -> int:
    """Return the number of elements, or some number that is too large for any file."""
    count = 0 if 0 in shape else 1
    for size in shape:
        count *= size
        if count >> 64:  # the product of a million sizes takes minutes
            break
    return count


def _fill(file: FileIO, start: int, view: memoryview, what: str) -> None:
    """Read bytes from position ``start`` until ``view`` is full."""
    file.seek(start)
    done = 0
    while done < len(view):
        count = file.readinto(view[done:])
        if not count:
            raise UnreadableError(f"it ends within {what}")
        done += count
