"""Convolutions as products whose operands are read where they lie: there are no patches.

The product's own index arithmetic (``gathers``) finds each element of a patch in its image. All
images are one product, the gradient of the filter included, whose long inner axis, all positions
of all images, is cut into slices where it has to be.

The gradient of the input asks every pixel for the taps that saw it. With a stride, pixels that
differ by less than it are seen by different taps: so there is one product for each residue,
with those taps alone. Where no pixel is seen by two taps, it is one product instead, each tap
of which is written to its own pixels.
"""

from __future__ import annotations

import itertools
from math import gcd, prod
from typing import TYPE_CHECKING, NamedTuple

from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, gemm
from tensorplug_opencl.kernels.gathers import Bound, Digit, gathered
from tensorplug_opencl.kernels.products import NOTHING, Ending, Matrix, Product

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.windows import Window
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.products import Operand
    from tensorplug_opencl.kernels.sliding import Convolution

__all__ = ["filter_gradient", "forward", "input_gradient"]


def forward(of: Convolution, ending: Ending) -> Callable[..., None]:
    """Return a function (x, filter, the ending's inputs, result)."""
    inputs = tuple((name, each._replace(batch=())) for name, each in ending.inputs)
    product = _product(
        of,
        (of.x[0] * of.positions, of.taps, of.outputs),
        (_patches(of), Matrix(of.outputs, 1, ()), _results(of)),
    )
    return _multiplier(of, product._replace(ending=ending._replace(inputs=inputs)))


def filter_gradient(of: Convolution) -> Callable[..., None]:
    """Return a function (x, dy, result)."""
    sizes = (of.taps, of.x[0] * of.positions, of.outputs)
    matrices = (_patches(of).turned, _results(of), Matrix(of.outputs, 1, ()))
    return _multiplier(of, _product(of, sizes, matrices))


def input_gradient(of: Convolution) -> Callable[..., None]:
    """Return a function (dy, filter, result)."""
    axes = [_shares(window) for window in of.windows]
    multiply = [_multiplier(of, _share(of, shares)) for shares in itertools.product(*axes)]
    if all(_covers(window, shares) for window, shares in zip(of.windows, axes, strict=True)):
        zero = None
    else:
        zero = calls.element(0, of.dtype)

    def write(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        if zero is not None:
            of.runtime.fill(result, zero)
        for each in multiply:
            each(dy, filter, result)

    return write


def _product(
    of: Convolution, sizes: tuple[int, int, int], matrices: tuple[Operand, Operand, Operand]
) -> Product:
    """Return the product of (rows, inner, columns)."""
    return Product(of.dtype, (), *sizes, *matrices, max(of.reach, *sizes), NOTHING)


def _multiplier(of: Convolution, product: Product) -> Callable[..., None]:
    """Return the product's function; neighbours in the result are written by neighbours."""
    if product.c.by_rows:
        return gemm.multiplier(of.runtime, product)
    run = gemm.multiplier(of.runtime, product.turned)
    return lambda a, b, *rest: run(b, a, *rest)


def _patches(of: Convolution) -> Operand:
    """Return the patches of all images: [positions, taps]."""
    image_by, *axes_by, channel_by = of.strides(of.x)
    both = [*enumerate(zip(of.windows, axes_by, strict=True))]
    rows = [Digit(each.out, each.stride * by, axis, each.stride) for axis, (each, by) in both]
    taps = [
        Digit(each.filter, each.dilation * by, axis, each.dilation) for axis, (each, by) in both
    ]
    return gathered(
        [Digit(of.x[0], image_by), *rows],
        [*taps, Digit(of.channels, channel_by)],
        -sum(each.before * by for _, (each, by) in both),
        [Bound(-each.before, each.size) for each in of.windows],
    )


def _results(of: Convolution) -> Operand:
    """Return the outputs of all images: [positions, channels]."""
    image_by, *axes_by, channel_by = of.strides(of.y)
    rows = [Digit(each.out, by) for each, by in zip(of.windows, axes_by, strict=True)]
    return gathered([Digit(of.y[0], image_by), *rows], [Digit(of.outputs, channel_by)])


class Share(NamedTuple):
    """Along one axis, some pixels of the input and the taps that saw them.

    Pixel ``first_pixel + row * stride + apart * dilation`` was seen, for each ``tap`` of
    ``added``, by tap ``first_tap + tap * tap_by + apart`` at position
    ``first_position + row - tap * position_by``.
    """

    rows: int
    added: int
    apart: int
    first_pixel: int
    first_tap: int
    tap_by: int
    first_position: int
    position_by: int


def _shares(window: Window) -> list[Share]:
    """Return shares that have no pixel in common; pixels that no tap saw are in none."""
    if _apart(window):
        return [Share(window.out, 1, window.filter, -window.before, 0, 0, 0, 0)]
    stride, dilation = window.stride, window.dilation
    common = gcd(stride, dilation)
    shares = []
    for pixel in range(min(stride, window.size)):
        padded = pixel + window.before
        taps = [tap for tap in range(window.filter) if (padded - tap * dilation) % stride == 0]
        if taps:
            rows = -(-(window.size - pixel) // stride)
            seen = (padded - taps[0] * dilation) // stride
            steps = stride // common, dilation // common
            shares.append(Share(rows, len(taps), 1, pixel, taps[0], steps[0], seen, steps[1]))
    return shares


def _apart(window: Window) -> bool:
    """Return whether the window strides over more than it sees: no pixel is seen twice."""
    return window.stride > (window.filter - 1) * window.dilation


def _covers(window: Window, shares: Sequence[Share]) -> bool:
    """Return whether every pixel of the axis is in one of its shares."""
    pixels = {
        share.first_pixel + row * window.stride + tap * window.dilation
        for share in shares
        for row in range(share.rows)
        for tap in range(share.apart)
    }
    return pixels.issuperset(range(window.size))


def _share(of: Convolution, shares: Sequence[Share]) -> Product:
    """Return the product (dy times the filter) of one share of each axis."""
    y_by, x_by = of.strides(of.y), of.strides(of.x)
    *filter_by, channel_by, _ = layouts.row_major(of.filter)
    axes = [*enumerate(zip(shares, of.windows, strict=True), 1)]
    images, outputs = of.x[0], of.outputs
    dy = gathered(
        [Digit(images, y_by[0]), *(Digit(s.rows, y_by[n], n - 1, 1) for n, (s, _) in axes)],
        [
            *(
                Digit(s.added, -s.position_by * y_by[n], n - 1, -s.position_by)
                for n, (s, _) in axes
            ),
            Digit(outputs, y_by[-1]),
        ],
        sum(s.first_position * y_by[n] for n, (s, _) in axes),
        [Bound(s.first_position, w.out) for _, (s, w) in axes],
    )
    taps = gathered(
        [*(Digit(s.added, s.tap_by * filter_by[n - 1]) for n, (s, _) in axes), Digit(outputs, 1)],
        [
            *(Digit(s.apart, filter_by[n - 1]) for n, (s, _) in axes),
            Digit(of.channels, channel_by),
        ],
        sum(s.first_tap * filter_by[n - 1] for n, (s, _) in axes),
    )
    dx = gathered(
        [
            Digit(images, x_by[0]),
            *(Digit(s.rows, w.stride * x_by[n], n - 1, w.stride) for n, (s, w) in axes),
        ],
        [
            *(Digit(s.apart, w.dilation * x_by[n], n - 1, w.dilation) for n, (s, w) in axes),
            Digit(of.channels, x_by[-1]),
        ],
        sum(s.first_pixel * x_by[n] for n, (s, _) in axes),
        [Bound(s.first_pixel, w.size) for _, (s, w) in axes],
    )
    sizes = (
        images * prod(share.rows for share in shares),
        outputs * prod(share.added for share in shares),
        of.channels * prod(share.apart for share in shares),
    )
    return _product(of, sizes, (dy, taps, dx))
