"""Elementwise functions of images and one number per channel, such as a bias.

NumPy's inner loop would run over the channels of one pixel, and starting it takes longer than a
few channels. Instead, several pixels form one row, and the numbers are repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug_cpu.execution.floating_point import without_warnings
from tensorplug_cpu.execution.outputs import output_allocator

if TYPE_CHECKING:
    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array, Call


_MANY: Final = 1 << 15  # elements from which this is faster
_FEW: Final = 64  # channels up to which it is
_ROW: Final = 512  # elements of a good row
_LEAST: Final = 4  # pixels of a row, at least


def per_channel(function: np.ufunc, a: TensorType, b: TensorType, out: TensorType) -> Call | None:
    """Return the kernel if ``a`` or ``b`` has one number per channel, else None."""
    if out.size < _MANY or out.rank < 2:
        return None
    channels = out.shape[-1]
    pixels = _pixels(out.size // channels, _ROW // channels) if 1 < channels <= _FEW else 0
    if pixels < _LEAST:
        return None
    first = _full(a, b, out)
    if not first and not _full(b, a, out):
        return None
    allocate, row = output_allocator(out), (-1, pixels * channels)
    dtype = b.dtype.numpy

    def run(a: Array, b: Array) -> Array:
        full, numbers = (a, b) if first else (b, a)
        if not full.flags.c_contiguous:
            return np.asarray(function(a, b))
        repeated = np.empty((pixels, channels), dtype)
        repeated[...] = numbers.reshape(channels)
        inputs = full.reshape(row), repeated.reshape(-1)
        result = allocate()
        function(*(inputs if first else inputs[::-1]), out=result.reshape(row))
        return result

    return without_warnings(run)


def _full(x: TensorType, numbers: TensorType, out: TensorType) -> bool:
    """Return whether ``x`` has all elements, and the other a number per channel."""
    channels = out.shape[-1]
    return x.shape == out.shape and numbers.shape[-1:] == (channels,) and numbers.size == channels


def _pixels(count: int, most: int) -> int:
    """Return the largest divisor of ``count`` up to ``most``."""
    return next(index for index in range(max(1, most), 0, -1) if count % index == 0)
