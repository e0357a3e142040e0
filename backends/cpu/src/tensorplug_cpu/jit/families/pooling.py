"""Pooling of arrays [batch, spatial axes, channels] as native loops, and its gradients.

By hand, for the forms took 0.5 to 1.7 times as long for the largest of windows that overlap, 1.0
to 3.8 times for averages, and 0.3 to 3.7 times for gradients.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any, Final

from tensorplug_cpu.jit.families.depthwise import channel_vectors
from tensorplug_cpu.jit.loops.calls import address, dense, is_large, is_worth, launch
from tensorplug_cpu.jit.loops.strips import find_strips, values_function
from tensorplug_cpu.jit.loops.tap_lists import TapLists
from tensorplug_cpu.jit.loops.windows import first_equal_function
from tensorplug_cpu.memory.pool import allocator

if TYPE_CHECKING:
    import numpy as np

    from tensorplug.plugin import Windows
    from tensorplug_cpu.arrays import Array


_PARTS: Final = 16  # pieces of the work
_LONG: Final = 64  # elements of a window, more of which would lose digits if added in order
_VISITS: Final = 64  # multiplications that take as long as a visit of an element without a loop
_FEW: Final = 4  # channels, fewer of which leave most of a vector idle


class _Geometry:
    """The links of windows, and the numbers that every loop over them takes.

    ``back``: of each element with the windows that it is in.
    """

    def __init__(self, at: Windows, batch: int, channels: int, *, back: bool) -> None:
        source = [window.out if back else window.size for window in at]
        shape = [window.size if back else window.out for window in at]
        strides = [prod(source[axis + 1 :]) * channels for axis in range(len(at))]
        *outer, columns = (
            (TapLists.backward(window) if back else TapLists.forward(window)).scaled(stride, 0)
            for window, stride in zip(at, strides, strict=True)
        )
        rows = reduce(TapLists.beside, outer)
        self._tables = [rows.starts, rows.table(), columns.starts, columns.table()]
        self.tables = [address(table) for table in self._tables]
        self.batch, self.rows = batch, prod(shape[:-1])
        self.numbers = (self.rows, shape[-1], channels, prod(source) * channels)
        self.shape = (batch, *shape, channels)
        self.work = prod(self.shape) * prod(window.filter for window in at)


class WindowValues:
    """A value of each window: "largest", "average", or "sum"; of each element if ``back``."""

    def __init__(
        self,
        at: Windows,
        batch: int,
        channels: int,
        dtype: np.dtype[Any],
        kind: str,
        *,
        back: bool = False,
    ) -> None:
        self._geometry = _Geometry(at, batch, channels, back=back)
        self._name, self._kind = dtype.name, kind
        self._allocate = allocator(self._geometry.shape, dtype)
        self._vectors = channel_vectors(dtype, channels)
        pixel_bytes, work = channels * dtype.itemsize, self._geometry.work
        self._strips = None if back else find_strips(at[-1], pixel_bytes, work, kind)

    def __call__(self, x: Array) -> Array:
        """Return the values of the windows of ``x``, or for its elements."""
        x, geometry = dense(x), self._geometry
        result = self._allocate()
        channels = geometry.shape[-1]
        call = values_function(self._name, channels, self._vectors, self._strips, self._kind)
        pointers = (address(x), 0, address(result), 0, 0, *geometry.tables)

        count = geometry.batch * geometry.rows
        integers = (count, -(-count // _PARTS), *geometry.numbers)
        launch(call, pointers, integers, shared=is_large(geometry.work))
        return result


class FirstEqual:
    """Gives dy to the first element of each window that equals its largest.

    ``adding``: windows overlap. ``covered``: they leave no element out.
    """

    def __init__(
        self,
        at: Windows,
        batch: int,
        channels: int,
        dtype: np.dtype[Any],
        *,
        adding: bool,
        covered: bool,
    ) -> None:
        self._geometry = _Geometry(at, batch, channels, back=False)
        self._name = dtype.name
        self._allocate = allocator((batch, *(window.size for window in at), channels), dtype)
        self._kind = {"adding": adding, "covered": covered}
        width, vectors, _ = self._vectors = channel_vectors(dtype, channels)
        blocks = -(-channels // (width * vectors))
        most = min(blocks, -(-_PARTS // max(batch, 1)))
        taken = -(-blocks // most) * width * vectors  # channels of a part
        parts = -(-channels // taken)
        self._integers = (batch * parts, parts, taken, *self._geometry.numbers)

    def __call__(self, dy: Array, x: Array, largest: Array) -> Array:
        """Return the gradient of ``x``."""
        geometry = self._geometry
        dy, x, largest = dense(dy), dense(x), dense(largest)
        result = self._allocate()
        width, vectors, whole = self._vectors
        call = first_equal_function(self._name, width, vectors, whole=whole, **self._kind)
        pointers = (*map(address, (x, largest, dy, result)), *geometry.tables)
        launch(call, pointers, self._integers, shared=is_large(geometry.work))
        return result


def suits(at: Windows, batch: int, channels: int, dtype: np.dtype[Any], kind: str) -> bool:
    """Return whether there are loops for a ``kind`` of values, or "first", and they are worth it.

    Averages of long windows lose digits here.
    """
    taps = prod(window.filter for window in at)
    short = kind not in {"average", "sum"} or taps <= _LONG
    products = batch * channels * prod(window.out for window in at) * taps
    known = dtype.name in {"float32", "float64"} and len(at) > 1 and channels >= _FEW
    return short and known and is_worth(_VISITS * products)
