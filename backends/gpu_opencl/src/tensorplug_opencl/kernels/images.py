"""Rotations and projections of images.

Coordinates are computed in double precision if the device has it, otherwise in single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.algorithms import rotation_sources
from tensorplug.plugin import Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.codegen.templates import Array

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Write
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = calls.Kernels()

# An element's channel, column, row and image.
_AXES: Final = """  const index_t c = i % channels, column = i / channels % width;
  const index_t row = i / channels / width % height, image = i / channels / width / height;
"""


def list_sizes(x: TensorType, out: TensorType) -> dict[str, int]:
    """Return the constants of a program that writes the image ``out``, reading the image x."""
    _, height, width, channels = out.shape
    own = {"items": out.size, "channels": channels, "width": width, "height": height}
    return {**own, "x_width": x.shape[2], "x_height": x.shape[1]}


def _choose_precision(backend: OpenedDevice) -> str:
    """Return the C type in which coordinates are computed."""
    return ctypes.stored(dt.float64 if dt.float64 in backend.dtypes else dt.float32)


@kernels.write(specs.ROTATE_WITH_OFFSET)
def rotate_with_offset(
    image: TensorType,
    *,
    radians: float,
    fill_value: tuple[float, ...],
    center: tuple[float, float],
    backend: OpenedDevice,
    out: TensorType,
) -> Write:
    """Read pixels by a table of numbers made on the host, and fill the rest."""
    _, height, width, channels = image.shape
    pixel, inside = rotation_sources(height, width, radians, center)
    numbers = backend.runtime.upload_table(np.where(inside, pixel, -1).astype(np.int32))
    fills = backend.runtime.upload_table(np.array(fill_value).astype(out.dtype.numpy))
    ctype = ctypes.moved(out.dtype)
    launch = calls.launch_sized(
        backend.runtime,
        f"RotateWithOffset {ctype}",
        [
            Array("x", ctype),
            Array("pixels", "int"),
            Array("fills", ctype),
            Array("y", ctype, written=True),
        ],
        {"items": out.size, "channels": channels, "size": height * width},
        """  const index_t c = i % channels, own = i / channels % size;
  const int pixel = pixels[own];
  y[i] = pixel < 0 ? fills[c] : x[i + ((index_t)pixel - own) * channels];""",
        index=layouts.index_dtype(out.size),
    )
    return lambda image, result: launch(image, numbers, fills, result)


# Projection --------------------------------------------------------------------------------

# What lies beyond the edges: see ``fill_modes`` in ``tensorplug.plugin``.
_REPEATED: Final = {
    "constant": "",
    "nearest": "",
    "reflect": """  const P period = 2 * length;
  if (length == 1) at = 0;
  else if (at < 0) {
    at += period * floor(-at / period);
    at = at < -length ? at + period : -at - 1;
  } else if (at > length - 1) {
    at -= period * floor(at / period);
    if (at >= length) at = period - at - 1;
  }
""",
    "wrap": """  if (length == 1) at = 0;
  else if (at < 0) at += length * (floor(-at / (length - 1)) + 1);
  else if (at > length - 1) at -= length * floor(at / (length - 1));
""",
}
_ROUNDED: Final = (
    "P rounded(P at) { const P low = floor(at); return low + (at - low >= (P)0.5f); }"
)
_READ: Final = {
    "nearest": "  y[i] = taken(x, rounded(v), rounded(u), x_height, x_width, channels, fill);",
    "bilinear": """  const P top = floor(v), left = floor(u);
  const A down = (A)(v - top), across = (A)(u - left);
  const A upper = TAKEN(top, left) * (1 - across) + TAKEN(top, left + 1) * across;
  const A lower = TAKEN(top + 1, left) * (1 - across) + TAKEN(top + 1, left + 1) * across;
  y[i] = (T)(upper * (1 - down) + lower * down);""",
}
_TAKEN: Final = """T taken(global const T *x, P row, P column, index_t height, index_t width,
  index_t channels, T fill) {
  if (!(row >= 0 && row < height && column >= 0 && column < width)) return fill;
  return x[((index_t)row * width + (index_t)column) * channels];
}
#define TAKEN(row, column) (A)taken(x, row, column, x_height, x_width, channels, fill)
"""


@kernels.write(specs.TRANSFORM)
def transform(
    image: TensorType,
    transforms: TensorType,
    *,
    interpolation: str,
    fill_mode: str,
    fill_value: Scalar,
    backend: OpenedDevice,
    out: TensorType,
) -> Launch:
    """Find the point in the image, and read the pixel there or blend those around it."""
    stored, precision = ctypes.stored(out.dtype), _choose_precision(backend)
    floating = image.dtype.kind == "float"
    computed = ctypes.computed(image.dtype) if floating else precision
    low, high = ("-2", "length + 1") if fill_mode == "constant" else ("0", "length - 1")
    declarations = f"""typedef {precision} P;
typedef {computed} A;
typedef {stored} T;
P mapped(P at, P length) {{
{_REPEATED[fill_mode]}  return at < ({low}) ? ({low}) : at > {high} ? {high} : at;
}}
{_ROUNDED}
{_TAKEN}"""
    own = 8 if transforms.shape[0] > 1 else 0  # from one image's transform to the next
    return calls.launch_sized(
        backend.runtime,
        f"Transform {interpolation} {fill_mode} {out.dtype} by {transforms.dtype}",
        [
            Array("x", stored),
            Array("a", ctypes.stored(transforms.dtype)),
            Array("y", stored, written=True),
        ],
        {**list_sizes(image, out), "own": own},
        f"""{_AXES}
  x += image * x_height * x_width * channels + c;
  a += image * own;
  const P across_at = column, down_at = row;
  P u = (P)a[0] * across_at + (P)a[1] * down_at + (P)a[2];
  P v = (P)a[3] * across_at + (P)a[4] * down_at + (P)a[5];
  if (a[6] != 0 || a[7] != 0) {{
    const P scale = (P)a[6] * across_at + (P)a[7] * down_at + 1;
    u /= scale;
    v /= scale;
  }}
  if (!isfinite(u) || !isfinite(v)) {{ y[i] = fill; return; }}
  u = mapped(u, x_width);
  v = mapped(v, x_height);
{_READ[interpolation]}""",
        index=layouts.index_dtype(out.size, image.size),
        declarations=declarations,
        constants=[(stored, "fill", calls.make_element(fill_value, out.dtype))],
    )
