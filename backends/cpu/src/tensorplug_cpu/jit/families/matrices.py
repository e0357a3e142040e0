"""Matrix products as native loops, where these are faster than BLAS.

On processors with vectors of 64 bytes that is so for all but large ones, since some BLAS libraries
do not know every such processor, and use half of a vector there. Shorter vectors all of them use,
and what is left to gain is the way to BLAS: for stacks of small products, and narrow matrices.

By hand, for the forms pack no constants once. Else they took 0.8 to 1.15 times as long with
vectors of 64 bytes, and 0.9 to 1.3 times with 32.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

from tensorplug.plugin import Window
from tensorplug_cpu.jit.codegen.processor import lanes, vector_bytes
from tensorplug_cpu.jit.families.batched_products import BatchedProduct, batched_product
from tensorplug_cpu.jit.families.filter_gradients import FilterGradient
from tensorplug_cpu.jit.families.multiplication import Multiplication
from tensorplug_cpu.jit.loops.calls import is_worth

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from tensorplug.plugin import Shape
    from tensorplug_cpu.arrays import Array

    Native = Callable[..., Array]


_LONG: Final = 64  # bytes of vectors that BLAS may not use as a whole
_TYPES: Final = frozenset({"float32", "float64"})
_FEW: Final = 16  # rows or columns, fewer of which leave vectors or registers idle
_WORK: Final = 16  # multiplications that are as much as one of a convolution, which BLAS lacks
_COPIED: Final = 1 << 22  # elements of the second matrix, more of which take long to pack
_NARROW: Final = 1 << 16  # likewise, where BLAS uses all of a vector
_TALL: Final = 128  # rows that make up for packing it
_KEPT: Final = 1 << 20  # elements of a result that is added to several times
_SMALL: Final = 1 << 16  # elements of a result, up to which threads share its terms
_LEAST: Final = 1 << 12  # multiplications of a product of a stack
_LEAST_LONG: Final = 1 << 17  # likewise, where BLAS has loops for small matrices
_MOST: Final = 1 << 24  # likewise, from which BLAS is as fast
_UNPACKED: Final = 1 << 17  # likewise, up to which a copy of the second matrix costs 10 to 40 %
_WIDTHS: Final = (96, 64, 48, 80, 72, 32, 24, 16)  # rows of a piece, the best ones first


def product(
    a: Shape, b: Shape, dtype: np.dtype[Any], *, transpose_a: bool, transpose_b: bool
) -> Multiplication | Native | None:
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
    if len(b) != 2 or (len(a) != 2 and transpose_a) or dtype.name not in _TYPES:
        return None
    inner, columns = reversed(b) if transpose_b else b
    rows = a[-1] if transpose_a else prod(a[:-1])
    if min(rows, inner, columns) < _FEW or not is_worth(rows * inner * columns // _WORK):
        return None
    long = vector_bytes() >= _LONG
    sizes = rows, inner, columns
    if not transpose_a:
        if inner * columns > (_COPIED if long else _NARROW) or not (long or rows >= _TALL):
            return None
        return Multiplication(sizes, (*a[:-1], columns), dtype, across=transpose_b)
    if not long or rows * columns > _KEPT:
        return None
    if rows >= _TALL and rows * columns > _SMALL:
        return Multiplication(sizes, (rows, columns), dtype, turned=True, across=transpose_b)
    width = next((width for width in _WIDTHS if inner % width == 0), inner)
    image = 1, inner // width, width
    at = tuple(Window(size, 1, 1, 1, 0, 0, size) for size in image[1:])
    gradient = FilterGradient(at, 1, (1, 1, rows, columns), dtype)

    def run_gradient(a: Array, b: Array) -> Array:
        right = b.T if transpose_b else b
        total = gradient(a.reshape(*image, rows), right.reshape(*image, columns))
        return total.reshape(rows, columns)

    return run_gradient


def stacked_product(
    a: Shape, b: Shape, dtype: np.dtype[Any], *, transpose_a: bool, transpose_b: bool
) -> Multiplication | BatchedProduct | None:
    """Return the products of the matrices of two stacks; None where BLAS is as good.

    Args:
        a: shape of the first stack, [..., rows, inner]; [..., inner, rows] if ``transpose_a``.
        b: shape of the second one, [..., inner, columns]; [..., columns, inner] if
            ``transpose_b``.
        dtype: of both, and of the results [..., rows, columns].
        transpose_a: whether the first ones are transposed.
        transpose_b: whether the second ones are.

    """
    stack = a[:-2]
    if prod(stack) < 2 or b[:-2] != stack or dtype.name not in _TYPES:
        return None
    inner, rows = a[-2:] if transpose_a else (a[-1], a[-2])
    columns = b[-2 if transpose_b else -1]
    work = rows * inner * columns
    if min(rows, inner, columns) < _FEW or not is_worth(prod(stack) * work):
        return None
    least = _LEAST_LONG if vector_bytes() >= _LONG else _LEAST
    if not least <= work < _MOST:
        return None
    unpacked = None
    # Code for each number of columns, so not for any.
    whole = columns % lanes(dtype.itemsize) == 0
    if work <= _UNPACKED and whole and not (transpose_a or transpose_b):
        unpacked = batched_product(a, b, dtype, transpose_b=False)
    if unpacked is not None:
        return unpacked
    sizes = rows, inner, columns
    turned = {"turned": transpose_a, "across": transpose_b}
    return Multiplication(sizes, (*stack, rows, columns), dtype, **turned)
