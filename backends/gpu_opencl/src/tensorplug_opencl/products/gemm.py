"""Matrix products of strided operands: what BatchMatMul, Einsum and the convolutions run on.

How a product is computed depends on the device's kind and on its shape; see ``panels`` (CPUs)
and ``tiled_products`` (all others). Where C has too few elements to keep the device busy, the
inner axis is cut into slices, whose products are added up by a second kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import KernelRefusedError
from tensorplug_opencl.products import panels, slices, tiled_products
from tensorplug_opencl.products.panels import Panels
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Epilogue, Product

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.products.tiled_products import Tiles
    from tensorplug_opencl.runtime import Launch, Runtime

    Way = Tiles | Panels

__all__ = ["NO_EPILOGUE", "Epilogue", "Product", "make_multiplier"]

SHORTEST: Final = 256  # the least inner elements of a slice
LONGER: Final = 1024  # the same on CPUs, which can also use smaller blocks of C
WAVES: Final = 2  # tiles for each compute unit


def make_multiplier(
    runtime: Runtime, product: Product, way: Way | None = None, cut: int | None = None
) -> Callable[..., None]:
    """Return a callable that enqueues the product (no axis of which is empty).

    It takes the buffers of A, B, the epilogue's inputs, and C. ``way`` and ``cut``, the number of
    slices, are chosen where the caller names none.
    """
    if product.columns < product.rows and product.columns < min(
        tiles.rows for tiles in tiled_products.TILES[:4]
    ):
        swapped = product.turned
        run = _prepare(runtime, swapped, way, cut)
        return lambda a, b, *rest: run(b, a, *rest)
    return _prepare(runtime, product, way, cut)


def _prepare(
    runtime: Runtime, product: Product, way: Way | None, cut: int | None
) -> Callable[..., None]:
    ways: list[Way] = [way] if way is not None else _list_ways(runtime, product)
    number = cut if cut is not None else _count_slices(runtime, product, ways[0])
    if number == 1:
        return _launch(runtime, product, ways)
    return slices.multiply_in_slices(
        runtime, product, number, lambda part: _launch(runtime, part, ways)
    )


def _list_ways(runtime: Runtime, product: Product) -> list[Way]:
    if runtime.is_cpu:
        return [*panels.list_suited(runtime, product)]
    return [*tiled_products.list_suited(runtime, product)]


def _count_slices(runtime: Runtime, product: Product, way: Way) -> int:
    units = runtime.device.max_compute_units
    if isinstance(way, Panels):
        tiles, enough = panels.count(runtime, product), panels.BUSY * units
        shortest = LONGER
    else:
        tiles, enough, shortest = tiled_products.count(product, way), WAVES * units, SHORTEST
    if tiles >= enough:
        return 1
    return max(1, min(-(-enough // tiles), product.inner // shortest))


def _launch(runtime: Runtime, product: Product, ways: list[Way]) -> Launch:
    """Return the launch of the first of ``ways`` that the device can run.

    Only the driver knows the local memory and registers of a program, once it is built.

    Raises:
        KernelRefusedError: the device can run none; the message is about the last.

    """
    *others, last = ways
    for way in others:
        try:
            return _launch_by(runtime, product, way)
        except KernelRefusedError:
            continue  # the next one needs less
    return _launch_by(runtime, product, last)


def _launch_by(runtime: Runtime, product: Product, way: Way) -> Launch:
    if isinstance(way, Panels):
        return panels.launch(runtime, product, way)
    return tiled_products.launch(runtime, product, way)
