"""Discrete Fourier transforms of a few points as straight-line C code, in registers.

Numbers are pairs of variables, real and imaginary part, of type ``V``: one number, or a vector
of numbers that belong to as many transforms. Constants are of type ``E``, a part's.
"""

from __future__ import annotations

from fractions import Fraction
from math import cos, pi, sin
from typing import Final

SMALL_PRIMES: Final = (2, 3, 5, 7, 11, 13)
LARGEST: Final = 16  # points: twice as many registers are needed

Number = tuple[str, str]  # the names, or expressions without operators, of both parts


def factorize(n: int) -> tuple[int, ...] | None:
    """Return how many points are transformed in each pass over ``n``; None if a prime is large.

    Every factor is at most ``LARGEST`` (or a small prime), the largest ones come first.
    """
    sizes = []
    while n > 1:
        fitting = [
            index for index in range(LARGEST, 1, -1) if n % index == 0 and _is_smooth(index)
        ]
        fitting += [prime for prime in SMALL_PRIMES if n % prime == 0]
        if not fitting:
            return None
        sizes.append(fitting[0])
        n //= fitting[0]
    return tuple(_balance(sizes))


def _balance(sizes: list[int]) -> list[int]:
    """Move a factor of 2 from a 16 to a 2 or a 4: two passes of 8 need fewer registers."""
    if len(sizes) > 1 and sizes[-1] in (2, 4) and sizes[-2] == LARGEST:
        sizes[-2:] = [LARGEST // 2, 2 * sizes[-1]]
    return sizes


def _is_smooth(n: int) -> bool:
    for prime in SMALL_PRIMES:
        while n % prime == 0:
            n //= prime
    return n == 1


class _Writer:
    """Lines of C, each of which declares one pair of variables."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def declare(self, real: str, imaginary: str) -> Number:
        number = len(self.lines)
        pair = (f"re{number}", f"im{number}")
        self.lines.append(f"  const V {pair[0]} = {real}, {pair[1]} = {imaginary};")
        return pair

    def add(self, a: Number, b: Number) -> Number:
        return self.declare(f"{a[0]} + {b[0]}", f"{a[1]} + {b[1]}")

    def subtract(self, a: Number, b: Number) -> Number:
        return self.declare(f"{a[0]} - {b[0]}", f"{a[1]} - {b[1]}")

    def rotate(self, z: Number, turn: Fraction) -> Number:
        """Return ``z`` times exp(-2 pi i turn)."""
        eighths = 8 * turn % 8
        half = "(E)0.70710678118654752440"
        quarter = eighths // 2
        if eighths.denominator == 1 and eighths % 2:
            re, im = z
            z = self.declare(f"{half} * ({re} + {im})", f"{half} * ({im} - {re})")
        elif eighths.denominator != 1:
            return self._multiply(z, turn)
        re, im = z
        return [z, (im, f"-{re}"), (f"-{re}", f"-{im}"), (f"-{im}", re)][quarter]

    def _multiply(self, z: Number, turn: Fraction) -> Number:
        angle = 2 * pi * float(turn)
        c, s = f"(E)({cos(angle)!r})", f"(E)({sin(angle)!r})"
        re, im = z
        return self.declare(f"{c} * {re} + {s} * {im}", f"{c} * {im} - {s} * {re}")

    def settle(self, z: Number) -> Number:
        """Return ``z`` as names: an expression with a sign cannot follow another sign."""
        return self.declare(*z) if any(part.startswith("-") for part in z) else z


def write_butterfly(points: list[Number]) -> tuple[list[str], list[Number]]:
    """Return the lines that transform ``points``, and the results in order."""
    writer = _Writer()
    results = _transform(writer, points)
    return writer.lines, results


def _transform(writer: _Writer, points: list[Number]) -> list[Number]:
    n = len(points)
    if n == 1:
        return points
    if n == 2:
        return [writer.add(*points), writer.subtract(*points)]
    prime = next(small_prime for small_prime in SMALL_PRIMES if n % small_prime == 0)
    if prime == n:
        return _transform_prime(writer, points)
    p = 4 if n % 4 == 0 and n > 4 else prime
    q = n // p
    columns = [_transform(writer, points[at::q]) for at in range(q)]
    turned = [
        [
            writer.settle(writer.rotate(point, Fraction(at * k, n)))
            for k, point in enumerate(column)
        ]
        for at, column in enumerate(columns)
    ]
    rows = [_transform(writer, [column[k] for column in turned]) for k in range(p)]
    return [rows[k % p][k // p] for k in range(n)]


def _transform_prime(writer: _Writer, points: list[Number]) -> list[Number]:
    """Transform by sums and differences of opposite points, times real numbers."""
    n = len(points)
    half = (n - 1) // 2
    sums = [writer.add(points[j], points[n - j]) for j in range(1, half + 1)]
    gaps = [writer.subtract(points[j], points[n - j]) for j in range(1, half + 1)]
    first = points[0]
    total = writer.declare(
        " + ".join([first[0], *(pair[0] for pair in sums)]),
        " + ".join([first[1], *(pair[1] for pair in sums)]),
    )
    results = [total] * n
    for k in range(1, half + 1):
        angles = [2 * pi * (j * k % n) / n for j in range(1, half + 1)]
        cosines = [f"(E)({cos(angle)!r})" for angle in angles]
        sines = [f"(E)({sin(angle)!r})" for angle in angles]
        even = writer.declare(*(_combine([first[part]], cosines, sums, part) for part in (0, 1)))
        odd = writer.declare(*(_combine([], sines, gaps, part) for part in (0, 1)))
        results[k] = writer.declare(f"{even[0]} + {odd[1]}", f"{even[1]} - {odd[0]}")
        results[n - k] = writer.declare(f"{even[0]} - {odd[1]}", f"{even[1]} + {odd[0]}")
    return results


def _combine(begin: list[str], by: list[str], numbers: list[Number], part: int) -> str:
    terms = [f"{factor} * {number[part]}" for factor, number in zip(by, numbers, strict=True)]
    return " + ".join([*begin, *terms])
