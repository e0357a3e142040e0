"""Random numbers from blocks of Philox4x32-10, as many at a time as the cache holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.algorithms import box_muller
from tensorplug.plugin import TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.arrays import working
from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.jit.families import philox as native_philox
from tensorplug_cpu.kernel_table import Kernels
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
