"""Between images and patches: the two gathers that turn a convolution into matrix products.

The patches of a convolution are a matrix with one row for each output position and one column
for each (tap row, tap column, in channel), zero where a tap lies on padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import ctypes, templates

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug.windows import Window
    from tensorplug_opencl.layouts import Strides
    from tensorplug_opencl.runtime import Launch, Runtime

__all__ = ["Images", "extractor", "folder"]


class Images(NamedTuple):
    """Some images: how many, the windows over them, channels, and their distances.

    ``strides`` are in elements, of (image, row, column, channel), whatever the data format.
    """

    number: int
    height: Window
    width: Window
    channels: int
    strides: Strides

    @property
    def positions(self) -> int:
        """Output positions in one image."""
        return self.height.out * self.width.out

    @property
    def taps(self) -> int:
        """Elements of one patch."""
        return self.height.filter * self.width.filter * self.channels

    @property
    def pixels(self) -> int:
        """Elements of one image."""
        return self.height.size * self.width.size * self.channels


_NAMES = ("size", "taps", "stride", "dilation", "before", "out")


def _constants(images: Images, items: int) -> tuple[list[Any], list[str], templates.Index]:
    """Return the geometry as values and as C declarations: all of it, for both programs."""
    index = layouts.index_dtype(
        items, images.number * max(images.positions * images.taps, images.pixels)
    )
    values: dict[str, int] = {"items": items, "channels": images.channels}
    for prefix, window in (("h", images.height), ("w", images.width)):
        fields = (
            window.size,
            window.filter,
            window.stride,
            window.dilation,
            window.before,
            window.out,
        )
        values |= {f"{prefix}_{name}": n for name, n in zip(_NAMES, fields, strict=True)}
    for name, stride in zip(("image", "row", "column", "channel"), images.strides, strict=True):
        values[f"{name}_by"] = stride
    declared = templates.indices(*values)
    return [index.type(n) for n in values.values()], declared, index


def extractor(runtime: Runtime, dtype: DType, images: Images) -> Launch:
    """Return the launch (images, patches) that copies out every patch.

    One work-item copies the channels of one tap, so that the divisions are shared by them.
    """
    items = images.number * images.positions * images.height.filter * images.width.filter
    values, declared, index = _constants(images, items)
    ctype = ctypes.moved(dtype)
    text = templates.program(
        f"extract patches {ctype}",
        [templates.Array("x", ctype), templates.Array("y", ctype, written=True)],
        declared,
        """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t kw = i % w_taps, kh = i / w_taps % h_taps;
  const index_t position = i / w_taps / h_taps;
  const index_t column = position % w_out * w_stride + kw * w_dilation;
  const index_t row = position / w_out % h_out * h_stride + kh * h_dilation;
  y += i * channels;
  if (row < h_before || row - h_before >= h_size
      || column < w_before || column - w_before >= w_size) {
    for (index_t c = 0; c < channels; c++) y[c] = 0;
    return;
  }
  x += position / w_out / h_out * image_by
    + (row - h_before) * row_by + (column - w_before) * column_by;
  for (index_t c = 0; c < channels; c++) y[c] = x[c * channel_by];""",
        index=index,
    )
    return runtime.launch(text, 2, values, items)


def folder(runtime: Runtime, dtype: DType, images: Images) -> Launch:
    """Return the launch (patches, images) that sums, for each pixel, what patches hold of it.

    It is a gather, each pixel asking every tap for its position, and so deterministic.
    """
    items = images.number * images.pixels
    values, declared, index = _constants(images, items)
    ctype, computed = ctypes.stored(dtype), ctypes.computed(dtype)
    text = templates.program(
        f"fold patches {dtype}",
        [templates.Array("x", ctype), templates.Array("y", ctype, written=True)],
        declared,
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t c = i % channels;
  const index_t column = i / channels % w_size;
  const index_t row = i / channels / w_size % h_size;
  const index_t image = i / channels / w_size / h_size;
  {computed} sum = 0;
  for (index_t kh = 0; kh < h_taps; kh++) {{
    if (row + h_before < kh * h_dilation) break;
    const index_t down = row + h_before - kh * h_dilation;
    if (down % h_stride || down / h_stride >= h_out) continue;
    for (index_t kw = 0; kw < w_taps; kw++) {{
      if (column + w_before < kw * w_dilation) break;
      const index_t across = column + w_before - kw * w_dilation;
      if (across % w_stride || across / w_stride >= w_out) continue;
      const index_t position = (image * h_out + down / h_stride) * w_out + across / w_stride;
      sum += ({computed})x[((position * h_taps + kh) * w_taps + kw) * channels + c];
    }}
  }}
  y[image * image_by + row * row_by + column * column_by + c * channel_by] = ({ctype})sum;""",
        index=index,
    )
    return runtime.launch(text, 2, values, items)
