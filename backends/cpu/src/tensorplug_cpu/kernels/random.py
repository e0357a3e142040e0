"""Random numbers from blocks of Philox4x32-10, as many at a time as the cache holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import RANDOM_KEY, box_muller, key_halves
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families import philox as native_philox
from tensorplug_cpu.kernel_table import Kernels
from tensorplug_cpu.kernels.searching import search_sorted
from tensorplug_cpu.numerics import philox, variates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_cpu.arrays import Array, Call

kernels = Kernels()


def _cachefuls(
    key: Array, size: int, start: int, block_size: int
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of ``size`` elements, and the words of their blocks.

    ``start``: the first block. ``block_size``: the number of elements per block.
    """
    step = philox.BLOCKS * block_size
    for begin in range(0, size, step):
        end = min(begin + step, size)
        blocks = -(-(end - begin) // block_size)
        yield slice(begin, end), philox.words(key, start + begin // block_size, blocks)


def _drawn(kind: str, out: TensorType, start: int, make: Callable[[Array], Array]) -> Call:
    """Return the kernel that draws ``out``; ``make`` makes elements of whole blocks of words.

    float64 takes two words each. ``kind``: the loop's that does the same in one pass, for many
    elements.
    """
    wide = out.dtype is dt.float64
    block_size = 2 if wide else 4
    shape, size, dtype = out.shape, out.size, out.dtype.numpy
    native = native_philox.drawer(kind, dtype, size, start)
    if native is not None:
        return without_warnings(lambda key: native(key).reshape(shape))

    def run(key: Array) -> Array:
        flat = np.empty(size, dtype)
        for part, words in _cachefuls(key, size, start, block_size):
            drawn = make(variates.joined(words) if wide else words)
            flat[part] = drawn[: part.stop - part.start]
        return flat.reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.RANDOM_BITS, because="faster")
def random_bits(key: TensorType, *, start: int, out: TensorType) -> Call:
    return _drawn("bits", out, start, lambda words: words)


@kernels.prepare(specs.RANDOM_UNIFORM, because="faster")
def random_uniform(key: TensorType, *, start: int, out: TensorType) -> Call:
    kind, kept = working(out.dtype).type, out.dtype.significand
    word = np.uint64 if out.dtype is dt.float64 else np.uint32
    small, dropped = kind(2.0**-kept), word(8 * word().itemsize - kept)
    return _drawn("uniform", out, start, lambda words: (words >> dropped).astype(kind) * small)


@kernels.prepare(specs.RANDOM_EXPONENTIAL, because="faster")
def random_exponential(key: TensorType, *, start: int, out: TensorType) -> Call:
    precision = box_muller.precision(out.dtype)
    return _drawn("exponential", out, start, lambda words: variates.minus_log(precision, words)[0])


@kernels.prepare(specs.RANDOM_NORMAL, because="faster")
def random_normal(key: TensorType, *, start: int, out: TensorType) -> Call:
    precision = box_muller.precision(out.dtype)
    return _drawn("normal", out, start, lambda words: variates.normals(precision, words))


@kernels.prepare(specs.RANDOM_INTEGERS, because="faster")
def random_integers(key: TensorType, span: TensorType, *, start: int, out: TensorType) -> Call:
    shape, size, dtype = out.shape, out.size, out.dtype.numpy
    narrow = out.dtype is dt.uint32
    scale = _scaled if narrow else _scaled_wide

    def run(key: Array, span: Array) -> Array:
        flat, spans = np.empty(size, dtype), span.reshape(-1)
        for part, words in _cachefuls(key, size, start, 2 if narrow else 1):
            drawn = variates.joined(words)[: (1 if narrow else 2) * (part.stop - part.start)]
            flat[part] = scale(drawn, spans[part] if span.ndim else spans)
        return flat.reshape(shape)

    return without_warnings(run)


@kernels.prepare(specs.MULTINOMIAL, because="faster")
def multinomial(
    logits: TensorType, *, num_samples: int, seed: int, normalized: bool, out: TensorType
) -> Call:
    """Add up probabilities in float64 and search them for uniform numbers."""
    key = np.array([*key_halves(seed, "seed"), 0, 0], np.uint32)
    drawn = TensorType(logits.dtype if logits.dtype is dt.float64 else dt.float32, out.shape)
    draw = random_uniform(RANDOM_KEY, start=0, out=drawn)
    running = TensorType(dt.float64, logits.shape)
    find = search_sorted(running, TensorType(dt.float64, out.shape), side="right", out=out)
    last = np.int32(logits.shape[-1] - 1)

    def run(logits: Array) -> Array:
        wide = logits.astype(np.float64)
        if not normalized:
            wide = np.exp(wide - wide.max(axis=-1, keepdims=True))
        sums = np.cumsum(wide, axis=-1)
        classes: Array = find(sums, draw(key) * sums[..., -1:])
        return np.minimum(classes, last)

    return without_warnings(run)


def _scaled(drawn: Array, span: Array) -> Array:
    """Return ``w * span >> 64`` for numbers w of 64 bits; a span of 0 is 2**32."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    wide = np.where(span == 0, np.uint64(1 << 32), span)
    return ((drawn >> half) * wide + ((drawn & mask) * wide >> half)) >> half


def _scaled_wide(drawn: Array, span: Array) -> Array:
    """Return ``w * span >> 128``, w of two numbers of 64 bits; a span of 0 is 2**64."""
    lower, upper = drawn[0::2], drawn[1::2]
    below = upper * span
    carried = below + _upper_product(lower, span) < below
    return np.where(span == 0, upper, _upper_product(upper, span) + carried)


def _upper_product(a: Array, b: Array) -> Array:
    """Return the upper 64 bits of products of 64-bit integers, by halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    one = a1 * b0 + (a0 * b0 >> half)
    two = a0 * b1 + (one & mask)
    return np.asarray(a1 * b1 + (one >> half) + (two >> half))
