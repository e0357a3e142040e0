"""Kernels of the bilateral filter, each for the buffers of one backend.

A kernel takes the input by its name, then attributes and whatever else it asks for by keyword.
The core has checked and promoted the input, and it checks the type of the result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp
from tensorplug_cpu.extensions import share_out
from tensorplug_example_minimal.kernels import launch
from tensorplug_opencl.extensions import c_type, program

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import KernelSpec, TensorType
    from tensorplug_example_minimal.backend import Box, MinimalBackend
    from tensorplug_opencl.extensions import DeviceBuffer, OpenCLBackend

    Array = np.ndarray[Any, np.dtype[Any]]


BAND = 1 << 15  # pixels that a thread filters at a time: with all it needs, they fit its cache
FAR = 1e18  # its square fits float32


def register(spec: KernelSpec, backend: str) -> Any:
    """Register the kernel for a backend; the handle undoes it, and is a context manager.

    Raises:
        KeyError: there is no kernel for that backend.

    """
    kernel: Any = {"cpu": on_cpu, "minimal": on_minimal, "opencl": on_opencl}[backend]
    return tp.register_kernel(
        spec,
        backend,
        kernel,
        prepares=kernel is on_opencl,  # it is called with types, and returns the kernel for them
        dtypes=(tp.float32, tp.float64),  # the core converts narrower floats to float32
    )


def on_cpu(x: Array, *, radius: int, sigma_space: float, sigma_range: float) -> Array:
    """Filter in several threads. A buffer is an array, which a kernel must not write to."""
    return _filter(x, radius, sigma_space, sigma_range, share_out)


def on_minimal(
    x: Box,
    *,
    radius: int,
    sigma_space: float,
    sigma_range: float,
    backend: MinimalBackend,
    out: TensorType,
) -> Any:
    """Filter in one thread, by a program that the device runs later on a view of its memory."""

    def in_turn(work: Callable[[int], None], count: int) -> None:
        for number in range(count):
            work(number)

    def program(x: Array, *, out: Array) -> None:
        out[...] = _filter(x, radius, sigma_space, sigma_range, in_turn)

    return launch(program, x, backend=backend, out=out)


def _filter(
    x: Array,
    radius: int,
    sigma_space: float,
    sigma_range: float,
    run: Callable[[Callable[[int], None], int], None],
) -> Array:
    """Cut images into bands of pixels, filter each, and put the results together.

    Images get a margin of numbers so far from all others that their weights are 0. Then a
    neighbour is always the same number of elements away, and NumPy works on long vectors.
    """
    scale = sigma_range * math.sqrt(2)
    margin = [(0, 0)] * (x.ndim - 2) + [(radius, radius)] * 2
    padded = np.pad(x / x.dtype.type(scale), margin, constant_values=FAR)
    row = padded.shape[-1]
    images = padded.reshape(math.prod(x.shape[:-2]), -1) if x.size else padded[:0]
    results = np.empty(padded.shape, x.dtype)
    flat = results.reshape(images.shape) if x.size else results[:0]
    offsets = [
        (down * row + right, (down**2 + right**2) / (2 * sigma_space**2))
        for down in range(radius + 1)
        for right in range(-radius, radius + 1)
        if (down, right) > (0, 0)
    ]
    first, end = radius * row + radius, padded.shape[-2] * row - radius * row - radius
    bands = -(-(end - first) // BAND)

    def work(number: int) -> None:
        image, band = divmod(number, bands)
        start = first + band * BAND
        some = slice(start, min(start + BAND, end))
        flat[image][some] = _filter_band(images[image], some, offsets)

    run(work, len(images) * bands)
    inner = slice(radius, -radius)
    return np.ascontiguousarray(results[..., inner, inner] * x.dtype.type(scale))


def _filter_band(image: Array, band: slice, offsets: list[tuple[int, float]]) -> Array:
    """Return the results of a band. The weight of two pixels serves both of them."""
    size = band.stop - band.start
    total, weights = image[band].copy(), np.ones(size, image.dtype)  # the pixel itself
    product = np.empty_like(total)
    for offset, distance in offsets:
        # Pairs of pixels, this far apart, of which at least one lies in the band.
        weight = image[band.start - offset : band.stop] - image[band.start : band.stop + offset]
        np.multiply(weight, weight, out=weight)
        np.subtract(-distance, weight, out=weight)
        np.exp(weight, out=weight)
        for half, at in ((weight[offset:], offset), (weight[:size], -offset)):
            np.add(weights, half, out=weights)
            np.multiply(half, image[band.start + at : band.stop + at], out=product)
            np.add(total, product, out=total)
    return np.divide(total, weights, out=total)


# One work-item for each pixel. The bounds of the loops are the same for all of them, so the
# compilers of CPUs compute several pixels with one instruction.
SOURCE = """// bilateral filter {T}
kernel void run(global const {T} *x, const long x_at, global {T} *y, const long y_at,
                const uint pixels, const uint height, const uint width, const int radius,
                const {T} in_space, const {T} in_range) {{
  const uint at = get_global_id(0);
  if (at >= pixels) return;
  const int row = at / width % height, column = at % width;
  const {T} here = x[x_at + at];
  {T} total = 0, weights = 0;
  for (int down = -radius; down <= radius; down++)
    for (int right = -radius; right <= radius; right++) {{
      if (row + down < 0 || row + down >= (int)height) continue;
      if (column + right < 0 || column + right >= (int)width) continue;
      const {T} there = x[x_at + at + down * (int)width + right];
      const {T} distance = down * down + right * right, gap = here - there;
      const {T} weight = exp(in_space * distance + in_range * gap * gap);
      total += weight * there;
      weights += weight;
    }}
  y[y_at + at] = total / weights;
}}"""


def on_opencl(
    x: TensorType,
    *,
    radius: int,
    sigma_space: float,
    sigma_range: float,
    backend: OpenCLBackend,
    out: TensorType,
) -> Callable[[DeviceBuffer], DeviceBuffer]:
    """Return a program for a type: the function of buffers that the backend will call.

    Sizes and numbers are arguments of the program, so one build serves images of all sizes.
    """
    number = x.dtype.numpy.type
    constants = [
        np.uint32(math.prod(x.shape)),
        *(np.uint32(n) for n in x.shape[-2:]),
        np.int32(radius),
        number(-0.5 / sigma_space**2),
        number(-0.5 / sigma_range**2),
    ]
    source = SOURCE.format(T=c_type(x.dtype))
    return program(backend, source, 1, out, constants, items=max(x.size, 1))
