"""The beginning of a GGUF file: metadata, and where the weights are.

``gguf.GGUFReader`` makes NumPy arrays of each of a tokenizer's hundred thousand strings, which
takes seconds.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from tensorplug_llm.configuration import ModelError

if TYPE_CHECKING:
    from pathlib import Path

# By GGUF's number of a type: the code of ``struct``, or what it is.
_TYPES: Final = ("B", "b", "H", "h", "I", "i", "f", "?", "string", "array", "Q", "q", "d")
_FLOATS: Final = {GGMLQuantizationType.F32: np.float32, GGMLQuantizationType.F16: np.float16}


class Stored(NamedTuple):
    """A weight in the file: its kind; floats, or the bytes of each row; where it is."""

    kind: GGMLQuantizationType
    data: np.ndarray
    mapped: mmap.mmap
    start: int

    def forget(self) -> None:
        """Take the weight out of this process's memory; reading it again brings it back."""
        if hasattr(mmap, "MADV_DONTNEED"):
            start = -(-self.start // mmap.PAGESIZE) * mmap.PAGESIZE
            end = (self.start + self.data.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
            if start < end:
                self.mapped.madvise(mmap.MADV_DONTNEED, start, end - start)


def read_header(path: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """Return metadata and weights, by name; the weights are those of the mapped file.

    Raises:
        ModelError: the file is truncated, or of another format.

    """
    with path.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return _Header(mapped).read()
        except (ValueError, LookupError, struct.error) as error:  # ValueError: an empty file
            raise ModelError(f"{path} is no complete GGUF file: {error}") from error


class _Header:
    def __init__(self, mapped: mmap.mmap) -> None:
        self._bytes = mapped
        self._at = 0

    def read(self) -> tuple[dict[str, Any], dict[str, Stored]]:
        magic, version = self._numbers("4sI")
        if magic != b"GGUF" or version not in {2, 3}:
            raise ModelError(f"it begins with {magic!r}, version {version}; 2 and 3 are known")
        tensors, fields = self._numbers("QQ")
        metadata = {self._string(): self._value(*self._numbers("I")) for _ in range(fields)}
        places = [self._place() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        start = -(-self._at // alignment) * alignment
        return metadata, {
            name: self._stored(shape, GGMLQuantizationType(kind), start + offset)
            for name, shape, kind, offset in places
        }

    def _numbers(self, codes: str) -> tuple[Any, ...]:
        read = struct.unpack_from(f"<{codes}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{codes}")
        return read

    def _string(self) -> str:
        (size,) = struct.unpack_from("<Q", self._bytes, self._at)
        start = self._at + 8
        self._at = start + size
        if self._at > len(self._bytes):
            raise ModelError("a string is longer than the file")
        return self._bytes[start : self._at].decode("utf-8", "replace")

    def _value(self, kind: int) -> Any:
        code = _TYPES[kind]
        if code == "string":
            return self._string()
        if code != "array":
            return self._numbers(code)[0]
        kind, count = self._numbers("IQ")
        if _TYPES[kind] in {"string", "array"}:
            return [self._value(kind) for _ in range(count)]
        return list(self._numbers(f"{count}{_TYPES[kind]}"))

    def _place(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        (rank,) = self._numbers("I")
        *sizes, kind, offset = self._numbers(f"{rank}QIQ")
        return name, tuple(reversed(sizes)), kind, offset

    def _stored(self, shape: tuple[int, ...], kind: GGMLQuantizationType, start: int) -> Stored:
        dtype = np.dtype(_FLOATS.get(kind, np.uint8))
        if kind not in _FLOATS:
            numbers, size = GGML_QUANT_SIZES[kind]
            shape = (*shape[:-1], shape[-1] // numbers * size)
        count = int(np.prod(shape, dtype=np.int64))
        data = np.frombuffer(self._bytes, dtype, count, start).reshape(shape)
        return Stored(kind, data, self._bytes, start)
