"""Diagonals, bands and triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import TensorType, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = calls.Kernels()

_FROM_NUMBERS = """  long lowest = lower[0], highest = upper[0];
  lowest = lowest < 0 ? -LONG_MAX : -lowest;
  if (highest < 0) highest = LONG_MAX;"""


def _launch_band(
    backend: OpenedDevice, x: TensorType, counts: tuple[TensorType, ...], limits: tuple[int, ...]
) -> Launch:
    """Return the launch that keeps ``x[..., i, j]`` where j - i is in a range, and zeros else.

    The range is ``limits``, or two arrays of one number say how many diagonals there are below
    and above the main one.
    """
    ctype = ctypes.moved(x.dtype)
    reads = [
        Array(name, ctypes.stored(count.dtype))
        for name, count in zip(("lower", "upper"), counts, strict=False)
    ]
    types = f" by {counts[0].dtype} and {counts[1].dtype}" if counts else ""
    rows, columns = x.shape[-2:]
    return calls.launch_sized(
        backend.runtime,
        f"band of matrices {ctype}{types}",
        [Array("x", ctype), *reads, Array("y", ctype, written=True)],
        {"items": x.size, "rows": rows, "columns": columns},
        f"""{_FROM_NUMBERS if counts else ""}
  const long at = (long)(i % columns) - (long)(i / columns % rows);
  y[i] = at >= lowest && at <= highest ? x[i] : 0;""",
        index=layouts.index_dtype(x.size),
        constants=[
            ("long", name, np.int64(limit))
            for name, limit in zip(("lowest", "highest"), limits, strict=False)
        ],
    )


@kernels.write(specs.MATRIX_BAND_PART)
def matrix_band_part(
    input: TensorType,
    num_lower: TensorType,
    num_upper: TensorType,
    *,
    backend: OpenedDevice,
    out: TensorType,
) -> Launch:
    """Keep the band, whose width is a number on the device."""
    return _launch_band(backend, input, (num_lower, num_upper), ())


@kernels.write(specs.TRIANGLE)
def triangle(
    x: TensorType, *, upper: bool, k: int, backend: OpenedDevice, out: TensorType
) -> Launch:
    """Keep one side of a diagonal."""
    rows, columns = x.shape[-2:]
    diagonal = max(-rows, min(k, columns))  # beyond, nothing changes
    beyond = rows + columns
    limits = (diagonal, beyond) if upper else (-beyond, diagonal)
    return _launch_band(backend, x, (), limits)
