"""Convolutions as products that read images directly, without patches.

The product's index map (``gathers``) finds each element of a patch in its image. All images are
one product. For the gradient of the filter, its inner axis is long: all positions of all images.
It is cut into slices if necessary.

The gradient of the input adds up, for every pixel, the taps that read it. With a stride, different
taps read the pixels of different residues, so there is one product for each residue, with its taps
only. If no pixel is read by two taps, there is one product instead, which writes each tap to its
own pixels.
"""

from __future__ import annotations

import itertools
from math import gcd, prod
from typing import TYPE_CHECKING, NamedTuple

from tensorplug_opencl.codegen import calls, layouts
from tensorplug_opencl.products import gemm
from tensorplug_opencl.products.gathers import Bound, Digit, gather
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Epilogue, Product

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Window
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.products.gathers import Operand
    from tensorplug_opencl.windows.sliding import Convolution


def prepare_forward(convolution: Convolution, epilogue: Epilogue) -> Callable[..., None]:
    """Return a function (x, filter, the epilogue's inputs, result)."""
    return _make_multiplier(convolution, make_forward_product(convolution, epilogue))


def make_forward_product(convolution: Convolution, epilogue: Epilogue) -> Product:
    """Return the product of the patches and the filter."""
    sizes = (convolution.x[0] * convolution.positions, convolution.taps, convolution.outputs)
    operands = (
        _view_patches(convolution),
        Matrix(convolution.outputs, 1, ()),
        convolution.results(convolution.x[0]),
    )
    return _make_product(convolution, sizes, operands)._replace(epilogue=epilogue)


def prepare_filter_gradient(convolution: Convolution) -> Callable[..., None]:
    """Return a function (x, dy, result)."""
    sizes = (convolution.taps, convolution.x[0] * convolution.positions, convolution.outputs)
    matrices = (
        _view_patches(convolution).turned,
        convolution.results(convolution.x[0]),
        Matrix(convolution.outputs, 1, ()),
    )
    return _make_multiplier(convolution, _make_product(convolution, sizes, matrices))


def prepare_input_gradient(convolution: Convolution) -> Callable[..., None]:
    """Return a function (dy, filter, result)."""
    multipliers = [
        _make_multiplier(convolution, product)
        for product in make_input_gradient_products(convolution)
    ]
    covered = all(_covers(window, _find_shares(window)) for window in convolution.windows)
    zero = None if covered else calls.make_element(0, convolution.dtype)

    def write(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        if zero is not None:
            convolution.runtime.fill(result, zero)
        for multiply in multipliers:
            multiply(dy, filter, result)

    return write


def make_input_gradient_products(convolution: Convolution) -> list[Product]:
    """Return products of dy and the filter whose results have no pixel of x in common."""
    shares = [*itertools.product(*(_find_shares(window) for window in convolution.windows))]
    return [_multiply_share(convolution, share, alone=len(shares) == 1) for share in shares]


def _make_product(
    convolution: Convolution,
    sizes: tuple[int, int, int],
    matrices: tuple[Operand, Operand, Operand],
) -> Product:
    """Return the product of (rows, inner, columns)."""
    return Product(
        convolution.dtype, (), *sizes, *matrices, max(convolution.reach, *sizes), NO_EPILOGUE
    )


def _make_multiplier(convolution: Convolution, product: Product) -> Callable[..., None]:
    """Return the product's function; neighbours in the result are written by neighbours."""
    if product.c.by_rows:
        return gemm.make_multiplier(convolution.runtime, product)
    run = gemm.make_multiplier(convolution.runtime, product.turned)
    return lambda a, b, *rest: run(b, a, *rest)


def _view_patches(convolution: Convolution) -> Operand:
    """Return the patches of all images: [positions, taps]."""
    image_by, *axes_by, channel_by = convolution.x_by
    both = [*enumerate(zip(convolution.windows, axes_by, strict=True))]
    rows = [
        Digit(window.out, window.stride * by, axis, window.stride) for axis, (window, by) in both
    ]
    taps = [
        Digit(window.filter, window.dilation * by, axis, window.dilation)
        for axis, (window, by) in both
    ]
    return gather(
        [Digit(convolution.x[0], image_by), *rows],
        [*taps, Digit(convolution.channels, channel_by)],
        -sum(window.before * by for _, (window, by) in both),
        [Bound(-window.before, window.size) for window in convolution.windows],
    )


class Share(NamedTuple):
    """Along one axis, some pixels of the input and the taps that read them.

    Pixel ``first_pixel + row * stride + apart * dilation`` was read, for each ``tap`` of
    ``added``, by tap ``first_tap + tap * tap_by + apart`` at position ``first_position + row - tap
    * position_by``.
    """

    rows: int
    added: int
    apart: int
    first_pixel: int
    first_tap: int
    tap_by: int
    first_position: int
    position_by: int


def _find_shares(window: Window) -> list[Share]:
    """Return shares that have no pixel in common; pixels that no tap reads are in none."""
    if _is_apart(window):
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


def _is_apart(window: Window) -> bool:
    """Return whether the stride is longer than the window, so that no pixel is read twice."""
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


def _multiply_share(convolution: Convolution, shares: Sequence[Share], *, alone: bool) -> Product:
    """Return the product (dy times the filter) of one share of each axis.

    ``alone``: there are no other shares, which the program would have to serve as well.
    """
    image_by, *y_by, output_by = convolution.y_by
    pixel_by, *x_by, channel_by = convolution.x_by
    *filter_by, input_by, _ = layouts.row_major(convolution.filter)
    axes = [*zip(shares, convolution.windows, y_by, x_by, filter_by, strict=True)]
    rows, seen, row_digits, taps, reached, apart = zip(
        *(
            (
                Digit(share.rows, y_step, axis, 1),
                Digit(share.added, -share.position_by * y_step, axis, -share.position_by),
                Digit(share.rows, window.stride * x_step, axis, window.stride),
                Digit(share.added, share.tap_by * tap_step),
                Digit(share.apart, window.dilation * x_step, axis, window.dilation),
                Digit(share.apart, tap_step),
            )
            for axis, (share, window, y_step, x_step, tap_step) in enumerate(axes)
        ),
        strict=True,
    )
    images, outputs, channels = convolution.x[0], convolution.outputs, convolution.channels
    dy = gather(
        [Digit(images, image_by), *rows],
        [*seen, Digit(outputs, output_by)],
        sum(share.first_position * step for share, _, step, _, _ in axes),
        [Bound(share.first_position, window.out) for share, window, *_ in axes],
        simplified=alone,
    )
    filter = gather(
        [*taps, Digit(outputs, 1)],
        [*apart, Digit(channels, input_by)],
        sum(share.first_tap * step for share, _, _, _, step in axes),
        simplified=alone,
    )
    dx = gather(
        [Digit(images, pixel_by), *row_digits],
        [*reached, Digit(channels, channel_by)],
        sum(share.first_pixel * step for share, _, _, step, _ in axes),
        [Bound(share.first_pixel, window.size) for share, window, *_ in axes],
        simplified=alone,
    )
    sizes = (
        images * prod(share.rows for share in shares),
        outputs * prod(share.added for share in shares),
        channels * prod(share.apart for share in shares),
    )
    return _make_product(convolution, sizes, (dy, filter, dx))
