"""Matrix products as native loops: convolutions of one tap, and the gradients of their filters.

On processors with vectors of 64 bytes these loops run at the speed of the arithmetic. Some BLAS
libraries do not know every such processor, and use half of a vector there.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import Window
from tensorplug_cpu.jit.codegen.processor import vector_bytes
from tensorplug_cpu.jit.families.convolution import Convolution
from tensorplug_cpu.jit.families.filter_gradients import FilterGradient
from tensorplug_cpu.jit.loops import iteration_space
from tensorplug_cpu.jit.loops.calls import is_worth

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array

    Native = Callable[..., Array]


_VECTOR: Final = 64  # bytes
_FEW: Final = 16  # rows or columns, fewer of which leave vectors or registers idle
_WORK: Final = 16  # multiplications that are as much as one of a convolution, which BLAS lacks
_COPIED: Final = 1 << 22  # elements of the second matrix, more of which take long to pack
_KEPT: Final = 1 << 20  # elements of a result that is added to several times
_WIDTHS: Final = (96, 64, 48, 80, 72, 32, 24, 16)  # rows of a piece, the best ones first


def product(
    a: Shape, b: Shape, dtype: np.dtype[Any], *, transpose_a: bool, transpose_b: bool
) -> Product | Native | None:
    """Return the product of matrices by one matrix.

    Args:
        a: shape of the first array, [..., rows, inner]; [inner, rows] if ``transpose_a``.
        b: shape of the second one, [inner, columns]; [columns, inner] if ``transpose_b``.
        dtype: of both, and of the result [..., rows, columns].
        transpose_a: whether the first one is transposed.
        transpose_b: whether the second one is.

    Returns:
        A function of the two arrays, and, unless ``transpose_a``, of what ``Convolution`` takes
        to end with; None where BLAS is as good.

    """
    if len(b) != 2 or (len(a) != 2 and transpose_a) or dtype.name not in {"float32", "float64"}:
        return None
    inner, columns = reversed(b) if transpose_b else b
    pixels = prod(a[:-1])  # rows of a convolution's image
    rows = a[-1] if transpose_a else pixels
    large = rows * columns > _KEPT if transpose_a else inner * columns > _COPIED
    if large or min(rows, inner, columns) < _FEW:
        return None
    if not is_worth(rows * inner * columns // _WORK) or vector_bytes() < _VECTOR:
        return None
    width = next((width for width in _WIDTHS if pixels % width == 0), pixels)
    image = 1, pixels // width, width
    at = tuple(Window(size, 1, 1, 1, 0, 0, size) for size in image[1:])
    if transpose_a:
        gradient = FilterGradient(at, 1, (1, 1, rows, columns), dtype)

        def run_gradient(a: Array, b: Array) -> Array:
            right = b.T if transpose_b else b
            total = gradient(a.reshape(*image, rows), right.reshape(*image, columns))
            return total.reshape(rows, columns)

        return run_gradient
    filter = 1, 1, inner, columns
    convolve = Convolution(iteration_space.forward(at), 1, filter, (*image, columns), dtype)
    return Product(convolve, (*image, inner), (*a[:-1], columns), transpose_b=transpose_b)


class Product:
    """The product of matrices [..., rows, inner] by one matrix, as a convolution of one tap."""

    def __init__(
        self, convolve: Convolution, image: Shape, result: Shape, *, transpose_b: bool
    ) -> None:
        self._convolve, self._image, self._result = convolve, image, result
        self._turned = transpose_b

    def __call__(self, a: Array, b: Array, *epilogue: Any) -> Array:
        """Return the product; ``epilogue`` is what ``Convolution`` takes."""
        rows = a.reshape(self._image)
        return self._convolve(rows, self._filter(b), *epilogue).reshape(self._result)

    def bind(self, b: Array, *epilogue: Any) -> Native:
        """Return the product by this matrix."""
        convolve = self._convolve.bind(self._filter(b), *epilogue)
        return lambda a: convolve(a.reshape(self._image)).reshape(self._result)

    def _filter(self, b: Array) -> Array:
        return (b.T if self._turned else b)[None]
