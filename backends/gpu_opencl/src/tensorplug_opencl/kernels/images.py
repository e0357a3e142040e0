"""Crops, rotations and projections of images.

Places are computed in double precision if the device has it, otherwise in single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.algorithms import rotation_sources
from tensorplug.plugin import DType, KernelTable, Scalar, TensorType, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, layouts, templates

if TYPE_CHECKING:
    from tensorplug_opencl.codegen.calls import Call
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice

kernels = KernelTable()

# An element's channel, column, row and image.
_PLACE: Final = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t c = i % channels, column = i / channels % width;
  const index_t row = i / channels / width % height, image = i / channels / width / height;
"""
_SIZES: Final = ("items", "channels", "width", "height", "x_width", "x_height")


def _list_sizes(x: TensorType, out: TensorType) -> tuple[int, ...]:
    return (out.size, out.shape[3], out.shape[2], out.shape[1], x.shape[2], x.shape[1])


def _choose_place_dtype(backend: OpenedDevice) -> DType:
    """Return the dtype in which places are computed."""
    return dt.float64 if dt.float64 in backend.dtypes else dt.float32


@kernels.prepare(specs.ROTATE_WITH_OFFSET)
def rotate_with_offset(
    image: TensorType,
    *,
    radians: float,
    fill_value: tuple[float, ...],
    center: tuple[float, float],
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Read pixels by a table of numbers made on the host, and fill the rest."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    _, height, width, channels = image.shape
    pixel, inside = rotation_sources(height, width, radians, center)
    numbers = backend.runtime.upload_table(np.where(inside, pixel, -1).astype(np.int32))
    fills = backend.runtime.upload_table(np.array(fill_value).astype(out.dtype.numpy))
    ctype, index = ctypes.moved(out.dtype), layouts.index_dtype(out.size)
    launch = calls.launch_sized(
        backend.runtime,
        f"RotateWithOffset {ctype}",
        [
            templates.Array("x", ctype),
            templates.Array("pixels", "int"),
            templates.Array("fills", ctype),
            templates.Array("y", ctype, written=True),
        ],
        {"items": out.size, "channels": channels, "size": height * width},
        """  const index_t c = i % channels, place = i / channels % size;
  const int pixel = pixels[place];
  y[i] = pixel < 0 ? fills[c] : x[i + ((index_t)pixel - place) * channels];""",
        index=index,
    )

    def write(image: DeviceBuffer, result: DeviceBuffer) -> None:
        launch(image, numbers, fills, result)

    return calls.make_producer(backend.runtime, out, write)


# Crops -------------------------------------------------------------------------------------

_CROP: Final = """P place(P low, P high, index_t at, index_t length, index_t count) {
  const P last = (P)length - 1;
  return count > 1 ? low * last + (high - low) * (P)at * last / (P)(count - 1)
    : (P)0.5f * (low + high) * last;
}
#define PIXEL(row, column) (A)x[((index_t)(row) * x_width + (index_t)(column)) * channels]
"""
_ROUNDED: Final = (
    "P rounded(P at) { const P low = floor(at); return low + (at - low >= (P)0.5f); }"
)


@kernels.prepare(specs.CROP_AND_RESIZE)
def crop_and_resize(
    image: TensorType,
    boxes: TensorType,
    box_ind: TensorType,
    *,
    method: str,
    extrapolation_value: float,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Find the place in the box's image, and read the pixel there or blend those around it."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    stored, computed = ctypes.stored(out.dtype), ctypes.computed(out.dtype)
    precision = ctypes.stored(_choose_place_dtype(backend))
    index = layouts.index_dtype(out.size, image.size, boxes.size)
    if method == "nearest":
        read = "  y[i] = x[((index_t)rounded(v) * x_width + (index_t)rounded(u)) * channels];"
    else:
        read = f"""  const P top = floor(v), left = floor(u), bottom = ceil(v), right = ceil(u);
  const A down = (A)(v - top), across = (A)(u - left);
  const A start = PIXEL(top, left), under = PIXEL(bottom, left);
  const A upper = start + (PIXEL(top, right) - start) * across;
  const A lower = under + (PIXEL(bottom, right) - under) * across;
  y[i] = ({stored})(upper + (lower - upper) * down);"""
    which = ctypes.stored(box_ind.dtype)
    text = templates.write_program(
        f"CropAndResize {method} {out.dtype} by {boxes.dtype} of {box_ind.dtype}",
        [
            templates.Array("x", stored),
            templates.Array("boxes", ctypes.stored(boxes.dtype)),
            templates.Array("numbers", which),
            templates.Array("y", stored, written=True),
        ],
        [*templates.declare_indices(*_SIZES, "batch"), f"const {computed} beyond"],
        f"""{_PLACE}
  const {which} number = numbers[image];
  if (number < 0 || (ulong)number >= batch) {{ y[i] = 0; return; }}
  boxes += image * 4;
  const P v = place((P)boxes[0], (P)boxes[2], row, x_height, height);
  const P u = place((P)boxes[1], (P)boxes[3], column, x_width, width);
  if (!(v >= 0 && v <= (P)(x_height - 1) && u >= 0 && u <= (P)(x_width - 1))) {{
    y[i] = ({stored})beyond;
    return;
  }}
  x += (index_t)number * x_height * x_width * channels + c;
{read}""",
        index=index,
        declarations=f"typedef {precision} P;\ntypedef {computed} A;\n{_CROP}{_ROUNDED}",
    )
    numbers = (*_list_sizes(image, out), image.shape[0])
    beyond = calls.make_element(extrapolation_value, out.dtype.compute)
    constants = [*map(index.type, numbers), beyond]
    launch = backend.runtime.launch(text, 4, constants, out.size)
    return calls.make_producer(backend.runtime, out, launch)


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


@kernels.prepare(specs.TRANSFORM)
def transform(
    image: TensorType,
    transforms: TensorType,
    *,
    interpolation: str,
    fill_mode: str,
    fill_value: Scalar,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Find the place in the image, and read the pixel there or blend those around it."""
    if not out.size:
        return calls.make_empty(backend.runtime, out)
    stored, precision = ctypes.stored(out.dtype), ctypes.stored(_choose_place_dtype(backend))
    floating = image.dtype.kind == "float"
    computed = ctypes.computed(image.dtype) if floating else precision
    index = layouts.index_dtype(out.size, image.size)
    low, high = ("-2", "length + 1") if fill_mode == "constant" else ("0", "length - 1")
    declarations = f"""typedef {precision} P;
typedef {computed} A;
typedef {stored} T;
P mapped(P at, P length) {{
{_REPEATED[fill_mode]}  return at < ({low}) ? ({low}) : at > {high} ? {high} : at;
}}
{_ROUNDED}
{_TAKEN}"""
    text = templates.write_program(
        f"Transform {interpolation} {fill_mode} {out.dtype} by {transforms.dtype}",
        [
            templates.Array("x", stored),
            templates.Array("a", ctypes.stored(transforms.dtype)),
            templates.Array("y", stored, written=True),
        ],
        [*templates.declare_indices(*_SIZES, "own"), f"const {stored} fill"],
        f"""{_PLACE}
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
        index=index,
        declarations=declarations,
    )
    own = 8 if transforms.shape[0] > 1 else 0  # from one image's transform to the next
    constants = [
        *map(index.type, (*_list_sizes(image, out), own)),
        calls.make_element(fill_value, out.dtype),
    ]
    launch = backend.runtime.launch(text, 3, constants, out.size)
    return calls.make_producer(backend.runtime, out, launch)
