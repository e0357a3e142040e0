"""The bits of NumPy arrays: read as another dtype, or packed into bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType

__all__ = ["bitcast", "pack", "unpack"]

Array = np.ndarray[Any, Any]


def bitcast(input: Array, *, dtype: DType) -> Array:
    """Return a view; of a copy if the parts of an element do not lie side by side in memory."""
    old, new = dt.of(input.dtype).bits, dtype.bits
    if old == new:
        return input.view(dtype.numpy)
    whole = np.ascontiguousarray(input)
    if new < old:
        parts = whole[..., None].view(np.uint8)
        if new < 8:
            parts = _split(parts, new, min(old, 8))
        return parts.view(dtype.numpy).reshape(*input.shape, old // new)
    shape = input.shape[:-1]
    if old < 8:
        inside = min(new, 8) // old
        parts = whole.view(np.uint8).reshape(*shape, max(1, new // 8), inside)
        whole = _join(parts, old)
    return whole.view(dtype.numpy).reshape(shape)


def pack(x: Array) -> Array:
    """Return the elements of ``x``, of 4 or 2 bits, in as few bytes as hold them: of rank 1.

    The first element has the lowest bits of a byte, as in ``bitcast``. Bits that are left are 0.

    Examples:
        >>> import ml_dtypes
        >>> pack(np.array([1, 2, -1], ml_dtypes.int4)).tolist()
        [33, 15]

    """
    bits = dt.of(x.dtype).bits
    inside = 8 // bits
    room = np.zeros(-(-x.size // inside) * inside, np.uint8)
    room[: x.size] = x.reshape(-1).view(np.uint8)
    return _join(room.reshape(-1, inside), bits)


def unpack(packed: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return the elements of ``shape`` that ``pack`` has put into bytes."""
    parts = _split(packed, dtype.bits, 8).reshape(-1)
    return parts[: int(np.prod(shape))].view(dtype.numpy).reshape(shape)


def _split(whole: Array, bits: int, width: int) -> Array:
    """Return a new last axis of the parts of bytes, the lowest first; ``width``: bits in use."""
    shifts = np.arange(0, width, bits, dtype=np.uint8)
    return np.asarray(whole[..., None] >> shifts) & np.uint8((1 << bits) - 1)


def _join(parts: Array, bits: int) -> Array:
    """Return bytes whose parts lie along the last axis."""
    used = parts & np.uint8((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[: parts.shape[-1]]
    return np.asarray(np.bitwise_or.reduce(used << shifts, axis=-1))
