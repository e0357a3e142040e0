"""Inputs for one dtype: every special value it has, and ordinary ones in awkward shapes."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.floats import finfo, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug.plugin import DType
    from tensorplug_conformance.case import Array

    # Takes a corpus, a shape, and what becomes of sizes that bound indices.
    _Again = Callable[["Corpus", tuple[int, ...], Mapping[int, int]], Array]
    _Drawn = tuple[Array, _Again, bool]


LARGE: Final = (1 << 16) + 1
"""One more than 2**16 elements: where 16-bit sizes and single-launch grids go wrong."""

JUST_LARGER: Final = (1 << 20) + 1, (1 << 20) + 7
"""Elements of which one, or all but one of eight, are left over from blocks of any size."""

VAST: Final = (1 << 24) + 3
"""More elements than float32 can count: there it is 2**24 + 4."""

PERIOD: Final = 4099
"""A prime, so that swapped parts of a huge array that repeats itself differ."""

HUGE: Final = (1 << 22) + 11
"""Elements enough that libraries share them out among threads, the cheapest functions too."""

_WORDS: Final = (
    "",
    "a",
    "zwölf",
    "two words",
    "雨",
    "😀",
    "😁",
    "\t",
    "a" * 40,
    "a\0b\0",
    "\0",
    "é" * 150,
)

# Texts are compared, hashed or copied in parts: these differ after 40, 64, 256 and 1024 bytes.
_LONG_WORDS: Final = (
    *("a" * 40 + "b", "z" * 64 + "a", "z" * 64 + "b", "é" * 150 + "!"),
    *("word " * 60 + "at the end", "word " * 60 + "in the end"),
    *("0123456789abcdef" * 65, "0123456789abcdef" * 65 + "!"),
)
_FEW: Final = 512  # elements; more do not have long words among them


def wide(x: Array) -> Array:
    """Return ``x`` in the arithmetic of the oracles: the widest float, or exact Python ints.

    Booleans count as integers. ``numpy.longdouble`` has 64 bits of precision on x86; where it is
    float64, references for float64 are themselves good to an ulp.
    """
    if x.dtype.kind == "c":
        return x.astype(np.clongdouble)
    if kind_of(x.dtype) == "f":
        return x.astype(np.longdouble)
    return x.astype(object) if x.dtype.kind != "b" else x.astype(np.int64).astype(object)


def wrap(exact: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return exact Python ints modulo 2**bits, as two's complement integers of ``dtype``."""
    limits: Any = np.iinfo(dtype)
    bits = 8 * dtype.itemsize
    low = int(limits.min)
    integers = np.frompyfunc(int, 1, 1)(np.ravel(np.asarray(exact)))
    wrapped: Array = ((integers - low) % (1 << bits) + low).astype(dtype)
    return wrapped.reshape(np.shape(exact))


class Corpus:
    """Inputs of one dtype, drawn reproducibly.

    Args:
        dtype: of the arrays it gives.
        seed: of the whole run.
        label: separates the streams of different kernels.

    """

    def __init__(self, dtype: DType, seed: int = 0, label: str = "") -> None:
        self.dtype = dtype
        self._drawn: dict[int, _Drawn] = {}
        self._rng = np.random.default_rng([seed, zlib.crc32(f"{label}:{dtype.name}".encode())])

    @property
    def floating(self) -> bool:
        """Whether the dtype is a real floating one."""
        return self.dtype in dt.FLOATING

    def of(self, values: object) -> Array:
        """Return ``values`` as an array of the dtype."""
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(self.dtype.numpy)

    def edges(self) -> Array:
        """Return every special value, in one dimension. Complex numbers: finite ones only."""
        if self.dtype in dt.FLOATING:
            return self._float_edges()
        if self.dtype in dt.INTEGER:
            return self._integer_edges()
        if self.dtype is dt.bool_:
            return np.array([False, True, True, False])
        if self.dtype is dt.string:
            return np.array(_WORDS + _LONG_WORDS, dtype=self.dtype.numpy)
        parts = np.array([0.0, 1.0, -1.5, 0.25, -3.0])
        return self.of((parts[:, None] + 1j * parts[None, :]).ravel())

    def _float_edges(self) -> Array:
        about: Any = finfo(self.dtype.numpy)
        tiny, eps = about.smallest_normal, about.eps
        subnormal = about.smallest_subnormal
        positive = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 7.0, 0.001, np.pi, 10.0, 100.0, 2.0 / eps + 2]
        small = [tiny, tiny - subnormal, tiny * 0.375, subnormal]
        extreme = [np.inf, *small, about.max, 1 + eps, 1 - eps / 2]
        values = np.array([*positive, *extreme]).astype(self.dtype.numpy)
        nan = np.array([np.nan], dtype=self.dtype.numpy)
        return np.concatenate([values, -values, nan])

    def _integer_edges(self) -> Array:
        limits: Any = np.iinfo(self.dtype.numpy)
        low, high = int(limits.min), int(limits.max)
        values = {0, 1, 2, 3, 7, 10, low, low + 1, high, high - 1, high // 2 + 1}
        if low < 0:
            values |= {-1, -2, -3, -7, -10, low // 2}
        return np.array(sorted(values), dtype=self.dtype.numpy)

    def far(self) -> list[int]:
        """Return integers of the dtype that are no floats of 24 or 53 digits, and its extremes."""
        if self.dtype not in dt.INTEGER:
            return []
        limits: Any = np.iinfo(self.dtype.numpy)
        low, high = int(limits.min), int(limits.max)
        values = [(1 << 24) + 1, (1 << 53) + 1, (1 << 62) + 1, (1 << 63) + 3, high, high - 1]
        lower = [low, low + 1, -(1 << 24) - 1, -(1 << 53) - 1] if low else []
        return [value for value in dict.fromkeys([*values, *lower]) if low <= value <= high]

    def special_parts(self) -> Array:
        """Return complex numbers with every pair of finite and infinite parts, NaN and zeros."""
        parts = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan])
        special = np.empty((7, 7), dtype=self.dtype.numpy)
        special.real, special.imag = parts[:, None], parts
        return special

    def far_complex(self, share: float = 0.5) -> Array:
        """Return complex numbers whose squares overflow or vanish, in each quadrant.

        Their parts are up to ``share`` of the largest number; up to 1/2, their modulus is finite.
        """
        about: Any = finfo(self.dtype.numpy)
        most, least = np.longdouble(about.max), np.longdouble(about.tiny)
        root = np.sqrt(most)
        pairs: list[tuple[Any, Any]]
        pairs = [(most / 8, most / 8), (most * share, most / 3), (most / 4, most * share)]
        pairs += [(root * 64, root * 3), (most / 2, root), (3, most / 2), (root / 2, most / 8)]
        pairs += [(least * 3, least * 8), (least * 64, 2), (least * 1024, least * 4)]
        pairs += [(most * share, most * share), (1 / root / 64, 3 / root)]
        signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
        parts = [(x * a, y * b) for (x, y), (a, b) in zip(pairs, signs * 3, strict=True)]
        result = np.empty(len(parts), self.dtype.numpy)
        result.real, result.imag = np.array(parts, np.longdouble).T
        return result

    def redrawn(self, array: Array, *, indices: bool = False) -> _Again | None:
        """Return a function that draws such an array in any shape; None if it is not from here.

        ``indices``: those too. They fit an axis only as long as it does not become shorter.
        """
        _, again, bounded = self._drawn.get(id(array), (None, None, False))
        return None if bounded and not indices else again

    def _noted(self, array: Array, again: _Again, *, bounded: bool = False) -> Array:
        self._drawn[id(array)] = array, again, bounded  # which keeps the array, and so its id
        return array

    def ordinary(self, shape: tuple[int, ...], low: float = -4.0, high: float = 4.0) -> Array:
        """Return numbers without anything special, between ``low`` and ``high``.

        Integers get 25 times that range, so that small dtypes overflow in arithmetic.
        """
        numbers = self._ordinary(shape, low, high)
        return self._noted(numbers, lambda corpus, shape, _: corpus.ordinary(shape, low, high))

    def _ordinary(self, shape: tuple[int, ...], low: float, high: float) -> Array:
        dtype = self.dtype
        if dtype in dt.FLOATING:
            return self.of(self._rng.uniform(low, high, shape))
        if dtype in dt.COMPLEX:
            real, imaginary = self._rng.uniform(low, high, (2, *shape))
            return self.of(real + 1j * imaginary)
        if dtype in dt.INTEGER:
            least = 0 if dtype in dt.UNSIGNED else int(25 * low)
            return self.of(self._rng.integers(least, int(25 * high) + 1, shape))
        if dtype is dt.bool_:
            return np.asarray(self._rng.random(shape) < 0.5)
        words = _WORDS + _LONG_WORDS if math.prod(shape) <= _FEW else _WORDS
        picked = self._rng.integers(0, len(words), shape)
        return np.asarray(np.array(words, dtype=dtype.numpy)[picked], dtype=dtype.numpy)

    def small(self, shape: tuple[int, ...], most: int = 3) -> Array:
        """Return small whole numbers: products and sums of a few are exact in every dtype."""
        least = 0 if self.dtype in dt.UNSIGNED | dt.BOOL else -most
        numbers = self.of(self._rng.integers(least, most + 1, shape))
        return self._noted(numbers, lambda corpus, shape, _: corpus.small(shape, most))

    def rare(self, shape: tuple[int, ...], value: bool) -> Array:
        """Return booleans of which about one in six is ``value``."""
        result = np.asarray((self._rng.random(shape) < 1 / 6) == value)
        return self._noted(result, lambda corpus, shape, _: corpus.rare(shape, value))

    def distinct(self, shape: tuple[int, ...]) -> Array:
        """Return numbers that are far apart, so that their order is certain."""
        count = int(np.prod(shape))
        numbers = self.of(self._rng.permutation(count) * 0.5 - count // 4).reshape(shape)
        return self._noted(numbers, lambda corpus, shape, _: corpus.distinct(shape))

    def indices(
        self, shape: tuple[int, ...], below: int, dtype: str = "int32", *, signed: bool = False
    ) -> Array:
        """Return indices in ``[0, below)``, repeated ones among them.

        ``signed``: in ``[-below, below)``, where negative ones count from the end.
        """
        least = -below if signed and np.dtype(dtype).kind == "i" else 0
        result = np.asarray(self._rng.integers(least, below, shape)).astype(dtype)

        def again(corpus: Corpus, shape: tuple[int, ...], sizes: Mapping[int, int]) -> Array:
            return corpus.indices(shape, sizes.get(below, below), dtype, signed=signed)

        return self._noted(result, again, bounded=True)

    def places(
        self, lead: tuple[int, ...], shape: tuple[int, ...], *, signed: bool = False
    ) -> Array:
        """Return indices ``[*lead, len(shape)]``, whose last axis names a place in ``shape``."""
        columns = [self.indices(lead, n, signed=signed) for n in shape]
        result = np.stack(columns, axis=-1) if columns else np.zeros((*lead, 0), dtype=np.int32)

        def again(corpus: Corpus, shape_again: tuple[int, ...], sizes: Mapping[int, int]) -> Array:
            below = tuple(sizes.get(n, n) for n in shape)
            return corpus.places(shape_again[:-1], below, signed=signed)

        return self._noted(result, again, bounded=True)
