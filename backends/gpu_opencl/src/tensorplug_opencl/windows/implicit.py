"""Gradients of convolutions' filters as products that read images directly, without patches.

The product's index map (``gathers``) finds each element of a patch in its image. All images are
one product, whose inner axis is long: all positions of all images. It is cut into slices if
necessary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorplug_opencl.products import gemm
from tensorplug_opencl.products.gathers import Bound, Digit, gather
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Product

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.products.gathers import Operand
    from tensorplug_opencl.windows.sliding import Convolution


def prepare_filter_gradient(convolution: Convolution) -> Callable[..., None]:
    """Return a function (x, dy, result); neighbours in the result are written by neighbours."""
    product = make_product(convolution)
    if product.c.by_rows:
        return gemm.make_multiplier(convolution.runtime, product)
    run = gemm.make_multiplier(convolution.runtime, product.turned)
    return lambda a, b, *rest: run(b, a, *rest)


def make_product(convolution: Convolution) -> Product:
    """Return the product of the patches, turned, and dy."""
    sizes = (convolution.taps, convolution.x[0] * convolution.positions, convolution.outputs)
    matrices = (
        _view_patches(convolution).turned,
        convolution.results(convolution.x[0]),
        Matrix(convolution.outputs, 1, ()),
    )
    reach = max(convolution.reach, *sizes)
    return Product(convolution.dtype, (), *sizes, *matrices, reach, NO_EPILOGUE)


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
