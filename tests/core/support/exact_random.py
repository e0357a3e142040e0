"""Exact results of random kernels, by Python's integers and by decimals of 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Return the block of a counter, in the notation of the paper: L, R and the round keys."""
    (l0, r0, l1, r1), (k0, k1) = (counter[1], counter[0], counter[3], counter[2]), key
    for number in range(10):
        product0, product1 = r0 * 0xD2511F53, r1 * 0xCD9E8D57
        round0 = (k0 + number * 0x9E3779B9) & 0xFFFFFFFF
        round1 = (k1 + number * 0xBB67AE85) & 0xFFFFFFFF
        r0, l0, r1, l1 = (
            (product1 >> 32) ^ round0 ^ l0,
            product1 & 0xFFFFFFFF,
            (product0 >> 32) ^ round1 ^ l1,
            product0 & 0xFFFFFFFF,
        )
    return [r0, l0, r1, l1]


def words(key: Sequence[int], count: int, start: int = 0) -> list[int]:
    """Return the first words of a key's draw."""
    result: list[int] = []
    for block in range(start, start + (count + 3) // 4):
        low, high = block & 0xFFFFFFFF, (block >> 32) & 0xFFFFFFFF
        result += philox([low, high, *key[2:]], key[:2])
    return result[:count]


def longs(drawn: Sequence[int]) -> list[int]:
    """Return words as numbers of 64 bits, the lower half first."""
    return [low | high << 32 for low, high in zip(drawn[0::2], drawn[1::2], strict=True)]


def exponential(drawn: Sequence[int], dtype: str) -> list[Decimal]:
    """Return ``-ln(m / 2**32)``, m the word with its last bit set; 53 of 64 bits for float64."""
    with localcontext(prec=60):
        return [-(m / _two(size)).ln() for m, size in (_odd(w, dtype) for w in drawn)]


def _odd(drawn: int, dtype: str) -> tuple[Decimal, int]:
    return (Decimal(drawn >> 11 | 1), 53) if dtype == "float64" else (Decimal(drawn | 1), 32)


def _two(power: int) -> Decimal:
    return Decimal(2) ** power


def normal(drawn: Sequence[int], dtype: str) -> list[Decimal]:
    """Return pairs ``r cos t, r sin t`` of pairs of words, or of numbers of 64 bits."""
    result: list[Decimal] = []
    with localcontext(prec=60):
        radii = [(2 * x).sqrt() for x in exponential(drawn[0::2], dtype)]
        for radius, number in zip(radii, drawn[1::2], strict=True):
            width, drop, size = (64, 11, 50) if dtype == "float64" else (32, 0, 29)
            part = (number >> drop) % 2**size | 1
            angle = _atan_of_1() * part / _two(size)
            pair = [_cosine(angle), _sine(angle)]
            if number >> (width - 1):
                pair.reverse()
            for bit, value in zip((width - 2, width - 3), pair, strict=True):
                result.append(radius * (-value if number >> bit & 1 else value))
    return result


def _atan_of_1() -> Decimal:
    """Return pi / 4 by Machin's formula."""
    return 4 * _arctan(5) - _arctan(239)


def _arctan(inverse: int) -> Decimal:
    """Return atan(1 / inverse) by its series."""
    term, total, odd = 1 / Decimal(inverse), Decimal(0), 1
    while abs(term) > Decimal(10) ** -62:
        total += term / odd if odd % 4 == 1 else -term / odd
        term, odd = term / inverse**2, odd + 2
    return total


def _sine(x: Decimal) -> Decimal:
    return _series(x, x, 2)


def _cosine(x: Decimal) -> Decimal:
    return _series(x, Decimal(1), 1)


def _series(x: Decimal, term: Decimal, following: int) -> Decimal:
    total = Decimal(0)
    while abs(term) > Decimal(10) ** -60:
        total += term
        term *= -x * x / (following * (following + 1))
        following += 2
    return total


def units_off(actual: np.ndarray[Any, Any], exact: Sequence[Decimal]) -> float:
    """Return the largest distance in units of the last place of the exact value."""
    assert actual.shape == (len(exact),)
    worst = Decimal(0)
    with localcontext(prec=60):
        for value, expected in zip(actual.tolist(), exact, strict=True):
            unit = Decimal(float(np.spacing(np.abs(actual.dtype.type(float(expected))))))
            worst = max(worst, abs(Decimal(value) - expected) / unit)
    return float(worst)


def extreme_words(bits: int, seed: int = 1) -> list[int]:
    """Return words of 32 or 64 bits: ordinary ones, and those near powers of two and limits."""
    rng = np.random.default_rng(seed)
    high = rng.integers(0, 2**32, 2000)
    low = rng.integers(0, 2**32, 2000) if bits == 64 else np.zeros(2000, np.int64)
    ordinary = [int(a) << (bits - 32) | int(b) for a, b in zip(high, low, strict=True)]
    near = [
        m + d for p in range(bits) for m in (1 << p, (1 << bits) - (1 << p)) for d in (-1, 0, 1)
    ]
    turning = int(0.70703125 * 2**bits)  # where the kernels turn from one interval to the other
    near += [(turning >> p) + d for p in range(8) for d in range(-3, 4)]
    return ordinary + [item % (1 << bits) for item in near]
