"""Diagonals, bands and triangles of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tensorplug.plugin import KernelTable, TensorType, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = KernelTable()


_FROM_NUMBERS = """  long lowest = lower[0], highest = upper[0];
  lowest = lowest < 0 ? -LONG_MAX : -lowest;
  if (highest < 0) highest = LONG_MAX;"""


def _launch_band(
    backend: OpenedDevice, x: TensorType, counts: tuple[TensorType, ...], limits: list[np.int64]
) -> Launch:
    """Return the launch that keeps ``x[..., i, j]`` where j - i is in a range, and zeros else.

    The range is ``limits``, or two arrays of one number say how many diagonals there are below
    and above the main one.
    """
    ctype = ctypes.moved(x.dtype)
    index = layouts.index_dtype(x.size)
    arrays = [templates.Array("x", ctype)]
    for name, count in zip(("lower", "upper"), counts, strict=False):
        arrays.append(templates.Array(name, ctypes.stored(count.dtype)))
    arrays.append(templates.Array("y", ctype, written=True))
    types = f" by {counts[0].dtype} and {counts[1].dtype}" if counts else ""
    text = templates.write_program(
        f"band of matrices {ctype}{types}",
        arrays,
        [
            *templates.declare_indices("items", "rows", "columns"),
            *([] if counts else ["const long lowest", "const long highest"]),
        ],
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
{_FROM_NUMBERS if counts else ""}
  const long at = (long)(i % columns) - (long)(i / columns % rows);
  y[i] = at >= lowest && at <= highest ? x[i] : 0;""",
        index=index,
    )
    sizes = map(index.type, (x.size, *x.shape[-2:]))
    return backend.runtime.launch(text, len(arrays), [*sizes, *limits], x.size)


@kernels.prepare(specs.MATRIX_BAND_PART)
def matrix_band_part(
    input: TensorType,
    num_lower: TensorType,
    num_upper: TensorType,
    *,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Keep the band, whose width is a number on the device."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    launch = _launch_band(backend, input, (num_lower, num_upper), [])
    return calls.make_producer(backend.runtime, out, launch)


@kernels.prepare(specs.TRIANGLE)
def triangle(
    x: TensorType, *, upper: bool, k: int, backend: OpenedDevice, out: TensorType
) -> Call:
    """Keep one side of a diagonal."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    rows, columns = x.shape[-2:]
    diagonal = max(-rows, min(k, columns))  # beyond, nothing changes
    beyond = rows + columns
    limits = (diagonal, beyond) if upper else (-beyond, diagonal)
    launch = _launch_band(backend, x, (), [np.int64(limit) for limit in limits])
    return calls.make_producer(backend.runtime, out, launch)
