"""Level 1: dtypes for storage. All bits are kept, and conversions are those of the formats."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


# Digits of the fraction, bias of the exponent, and the magnitude from which bits are no numbers.
_FORMATS: Final = {
    "float8_e4m3fn": (3, 7, 0x7F),
    "float8_e4m3fnuz": (3, 8, 0x80),
    "float8_e5m2": (2, 15, 0x7C),
    "float8_e5m2fnuz": (2, 16, 0x80),
    "float8_e8m0fnu": (0, 127, 0xFF),
    "float4_e2m1fn": (1, 1, 0x08),
}
_NORMAL: Final = 2.0**-126  # float32 that devices do not flush to 0
_MOVES: Final[tuple[tuple[str, dict[str, Any], Callable[[Array], Array]], ...]] = (
    ("IDENTITY", {}, lambda x: x),
    ("RESHAPE", {"shape": (-1,)}, lambda x: x.reshape(-1)),
    ("TRANSPOSE", {"perm": (1, 0)}, lambda x: x.T),
    ("SLICE", {"begin": (1, 0), "size": (2, 3)}, lambda x: x[1:3, :3]),
    ("REVERSE", {"dims": (0,)}, lambda x: x[::-1]),
    ("TILE", {"reps": (1, 2)}, lambda x: np.tile(x, (1, 2))),
)


def _numbers(dtype: DType) -> Array:
    """Return the number that each pattern of bits stands for, NaN for none and for infinities."""
    bits = np.arange(1 << dtype.bits)
    if dtype in dt.WHOLE:
        return np.asarray((bits - dtype.min) % (1 << dtype.bits) + dtype.min)
    digits, bias, none = _FORMATS[dtype.name]
    if not digits:
        return np.where(bits == none, np.nan, 2.0 ** (bits - bias))
    half = 1 << (dtype.bits - 1)
    size, sign = bits % half, np.where(bits < half, 1.0, -1.0)
    exponent, fraction = size >> digits, size % (1 << digits) / (1 << digits)
    number = np.where(
        exponent > 0, 2.0 ** (exponent - bias) * (1 + fraction), 2.0 ** (1 - bias) * fraction
    )
    lost = (bits == none) if none == half else (size >= none)
    return np.where(lost & (dtype.bits == 8), np.nan, sign * number)


def _stores(dtype: DType, _target: Target, opened: Callable[[], Session]) -> None:
    """All bits come back, kernels move them, and Cast rounds to the nearest, the even one."""
    session = opened()
    if dtype not in session.device.backend.dtypes:
        raise NotMeasuredError(f"the backend does not declare {dtype}")
    numbers = _numbers(dtype)
    whole = dtype in dt.WHOLE
    patterns = np.arange(1 << dtype.bits, dtype=np.uint8)
    array = numbers.astype(np.int8).astype(dtype.numpy) if whole else patterns.view(dtype.numpy)
    stored = session.upload(array)
    _compare("the transfer", session.read(stored), array)
    matrix = np.resize(array, (max(4, array.size // 4), 4))
    uploaded = session.upload(matrix)
    for name, attributes, moved in _MOVES:
        outcome = session.call(getattr(specs, name), [uploaded], attributes)[0]
        _compare(name, session.read(outcome), moved(matrix))
    wide = session.read(session.call(specs.CAST, [stored], {"dtype": "float32"})[0])
    finite = np.isfinite(numbers) & ((numbers == 0) | (np.abs(numbers) >= _NORMAL))
    if wide.dtype != np.float32 or not np.array_equal(wide[finite], numbers[finite]):
        raise CheckFailedError(f"{dtype} becomes other numbers of float32")
    numbers_stored, rounded = _roundings(numbers[finite], array[finite])
    made = session.call(specs.CAST, [session.upload(numbers_stored)], {"dtype": dtype.name})[0]
    _compare("Cast from float32", session.read(made), rounded)


def _roundings(numbers: Array, array: Array) -> tuple[Array, Array]:
    """Return float32, and what they become: the numbers, and for floats what lies between them."""
    order = np.argsort(numbers)
    order = order[numbers[order] != 0]
    keys, held = numbers[order], array[order]
    pairs = [(keys, held)]
    dtype = dt.of(array.dtype)
    if dtype not in dt.WHOLE:
        low, gap, below, above = keys[:-1], np.diff(keys), held[:-1], held[1:]
        near = np.sign(low) == np.sign(keys[1:])
        even = np.where(below.view(np.uint8) % 2 == 0, below, above)
        places = [(0.25, below), (0.75, above), (0.5, even)]
        if dtype.significand == 1:  # powers of 2, whose formats leave halves open
            del places[-1]
        pairs += [((low + gap * part)[near], nearest[near]) for part, nearest in places]
    numbers_stored, rounded = zip(*pairs, strict=True)
    floats = np.concatenate(numbers_stored).astype(np.float32)
    normal = np.abs(floats) >= _NORMAL
    return floats[normal], np.concatenate(rounded)[normal]


def _compare(what: str, result: Array, expected: Array) -> None:
    type_ = TensorType(dt.of(expected.dtype), expected.shape)
    if TensorType(dt.of(result.dtype), result.shape) != type_:
        raise CheckFailedError(f"{what} gives {result.dtype}{list(result.shape)}, must be {type_}")
    ours, theirs = (np.ascontiguousarray(x).view(np.uint8).reshape(-1) for x in (result, expected))
    mask = (1 << type_.dtype.bits) - 1  # the unused bits of a byte do not count
    wrong = np.flatnonzero((ours & mask) != (theirs & mask))
    if wrong.size:
        at = int(wrong[0])
        raise CheckFailedError(
            f"{what} gives {wrong.size} wrong elements of {type_}, first {result.reshape(-1)[at]} "
            f"at {at}, must be {expected.reshape(-1)[at]}"
        )


CHECKS: Final = tuple(
    Check(1, f"storage {dtype.name}", partial(_stores, dtype))
    for dtype in sorted(dt.STORAGE, key=str)
)
