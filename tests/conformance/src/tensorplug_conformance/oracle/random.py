"""References for random numbers: Philox4x32-10 on Python's integers, and textbook formulas.

Source of Philox and of its constants: J. K. Salmon and others, "Parallel random numbers: as easy
as 1, 2, 3", SC11, 2011, section 4.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.case import Bounded, Relation
from tensorplug_conformance.floats import finfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tensorplug_conformance.case import Array, Reference

WORD: Final = 2**32
LONG: Final[Any] = np.longdouble


def philox(counter: Sequence[Any], key: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
    """Return four words: ten rounds on a counter of four words and a key of two.

    Words are Python's integers, or arrays of 64-bit integers, which hold a product of two.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, WORD)
        high1, low1 = divmod(0xCD9E8D57 * c2, WORD)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % WORD, (k1 + 0xBB67AE85) % WORD
    return c0, c1, c2, c3


def words(key: Iterable[Any], start: int, count: int) -> list[int]:
    """Return the first words of the blocks from ``start`` on."""
    k0, k1, c2, c3 = (int(number) for number in key)
    blocks = -(-count // 4)
    numbers = np.arange(blocks, dtype=np.uint64) + np.uint64(start % WORD**2)
    rest = (np.full(blocks, c, np.uint64) for c in (c2, c3))
    drawn = philox((numbers % WORD, numbers // WORD, *rest), (k0, k1))
    listed: list[int] = np.stack(drawn, axis=-1).ravel()[:count].tolist()
    return listed


def longs(key: Iterable[Any], start: int, count: int) -> list[int]:
    """Return two words at a time as one integer; the second is the upper half."""
    pairs = words(key, start, 2 * count)
    return [low + WORD * high for low, high in zip(pairs[0::2], pairs[1::2], strict=True)]


def bits(key: Array, *, shape: Sequence[int], start: int = 0) -> Array:
    """Words in order."""
    return np.array(words(key, start, prod(shape)), dtype=np.uint32).reshape(tuple(shape))


def integers(key: Array, span: Array, *, shape: Sequence[int], start: int = 0) -> Array:
    """Return ``floor(w * span / 2**b)``, w of twice as many bits as a span has."""
    count, long = prod(shape), span.dtype == np.uint64
    drawn = longs(key, start, 2 * count if long else count)
    if long:
        drawn = [low + 2**64 * high for low, high in zip(drawn[0::2], drawn[1::2], strict=True)]
    size = 64 if long else 32
    spans = [int(number) or 2**size for number in np.broadcast_to(span, shape).ravel()]
    items = [w * n >> 2 * size for w, n in zip(drawn, spans, strict=True)]
    return np.array(items, dtype=span.dtype).reshape(tuple(shape))


def uniform(
    key: Array, *, shape: Sequence[int], start: int = 0, dtype: str = "float32"
) -> Reference:
    """Return the upper bits of a word, or of two, as a binary fraction."""
    count = prod(shape)
    if dtype == "float64":
        value = [float(w >> 11) / 2.0**53 for w in longs(key, start, count)]
    else:
        kept = finfo(dt.of(dtype).numpy).nmant + 1
        value = [float(w >> (32 - kept)) / 2.0**kept for w in words(key, start, count)]
    return np.array(value, dtype=LONG).reshape(tuple(shape))


def _minus_log(odd: Array, size: int) -> Array:
    """Return ``-log(odd / 2**size)``, near 1 from the difference to 1."""
    whole = LONG(2.0**size)
    near_1 = -np.log1p(-(whole - odd) / whole)
    far = LONG(size) * np.log(LONG(2)) - np.log(odd)
    return np.asarray(np.where(odd > whole / 2, near_1, far))


def _odd(numbers: Iterable[int]) -> Array:
    return np.array([number | 1 for number in numbers], dtype=np.float64).astype(LONG)


def _bounded(value: Array, shape: Sequence[int]) -> Reference:
    """Return the reference, with room for its own error where float64 is the widest dtype."""
    shaped = value.reshape(tuple(shape))
    if np.finfo(LONG).nmant > 52:
        return shaped
    return Bounded(shaped, np.abs(shaped) * 2.0**-50)


def exponential(
    key: Array, *, shape: Sequence[int], start: int = 0, dtype: str = "float32"
) -> Reference:
    """Return ``-log u`` for each word, or for two as one integer."""
    drawn = _drawn(key, start, prod(shape), dtype)
    return _bounded(minus_logs(drawn, dtype), shape)


def normal(
    key: Array, *, shape: Sequence[int], start: int = 0, dtype: str = "float32"
) -> Reference:
    """Return Box and Muller's pairs, each of two words, or of four as two integers."""
    count = prod(shape)
    drawn = _drawn(key, start, count + count % 2, dtype)
    return _bounded(normals(drawn, dtype)[:count], shape)


def _drawn(key: Array, start: int, count: int, dtype: str) -> list[int]:
    return (longs if dtype == "float64" else words)(key, start, count)


def minus_logs(drawn: Iterable[int], dtype: str) -> Array:
    """Return ``-log u``, u in the middle of one of 2**31 cells (2**52 for float64)."""
    long = dtype == "float64"
    return _minus_log(_odd(w >> 11 if long else w for w in drawn), 53 if long else 32)


def normals(drawn: Sequence[int], dtype: str) -> Array:
    """Return pairs: radii from every other number, angles from the others, by octant and part."""
    size, unused, kept = (64, 11, 50) if dtype == "float64" else (32, 0, 29)
    radius = np.sqrt(2 * minus_logs(drawn[0::2], dtype))
    parts = _odd((w >> unused) % 2**kept for w in drawn[1::2])
    angle = np.arctan(LONG(1)) * (parts / LONG(2.0**kept))
    top = np.array([w >> (size - 3) for w in drawn[1::2]], dtype=np.int64)
    first, second = radius * np.cos(angle), radius * np.sin(angle)
    one, two = np.where(top >= 4, second, first), np.where(top >= 4, first, second)
    signed = [np.where(top & bit, -z, z) for bit, z in ((2, one), (1, two))]
    return np.stack(signed, axis=-1).ravel()


def multinomial(
    logits: Array, *, num_samples: int, seed: float, normalized: bool = False
) -> Relation:
    """Return the relation: a uniform number lies where the running sum meets the outcome.

    Near a running sum, rounding of the sum decides between two outcomes; an outcome of probability
    0 is never drawn.
    """
    number = int(seed) if float(seed).is_integer() else int(np.float64(seed).view(np.uint64))
    wide = logits.astype(LONG)
    chances = wide if normalized else np.exp(wide - wide.max(axis=-1, keepdims=True, initial=-1e9))
    running = np.cumsum(chances, axis=-1)
    total = running[..., -1:]
    work = "float64" if logits.dtype == np.float64 else "float32"
    shape = (*logits.shape[:-1], num_samples)
    key = np.array([number % WORD, number // WORD, 0, 0], dtype=np.uint32)
    u = np.asarray(uniform(key, shape=shape, dtype=work)) * total
    terms = logits.shape[-1] + np.abs(np.where(np.isfinite(wide), wide, 0)).max(initial=0)
    room = (terms + 8) * finfo(work).eps * total

    def check(draws: Array) -> Iterator[tuple[str, Array, Bounded]]:
        at = np.clip(draws, 0, logits.shape[-1] - 1).astype(np.intp)
        none, exact = np.zeros(shape, LONG), np.zeros((), LONG)
        yield "outcomes are numbers of logits", (at - draws).astype(LONG), Bounded(none, exact)
        above = np.take_along_axis(running, at, axis=-1)
        width = np.take_along_axis(chances, at, axis=-1)
        never = (width <= 0).astype(LONG)
        yield "outcomes have a probability", never, Bounded(none, exact)
        off = np.maximum(np.maximum(u - above, above - width - u), 0)
        yield "u lies in the part of its outcome", off, Bounded(none, room)

    return Relation(check)
