"""Pooling in two dimensions over NHWC: the first largest element of each window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import dtypes as dt
from tensorplug.ops.pooling import MAX_POOL, MAX_POOL_GRAD, geometry
from tensorplug.spec import TensorType
from tensorplug.tables import KernelTable
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, reduction, templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.shapes import Shape
    from tensorplug.windows import Window
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch

    Call = Callable[..., DeviceBuffer]
    Pair = tuple[int, int]

kernels = KernelTable()

Attributes = dict[str, Any]

# Finds `best` and `best_tap`, counted row by row in the window (-1: it lies on padding only).
# A NaN is larger than anything, and of several NaNs the first counts.
_SEARCH = """
  A best = LOWEST;
  int best_tap = -1;
  for (index_t kh = 0; kh < h_taps; kh++) {
    const index_t row = position / w_out % h_out * h_stride + kh;
    if (row < h_before || row - h_before >= h_size) continue;
    for (index_t kw = 0; kw < w_taps; kw++) {
      const index_t column = position % w_out * w_stride + kw;
      if (column < w_before || column - w_before >= w_size) continue;
      const A v = (A)x[((image * h_size + row - h_before) * w_size + column - w_before)
                       * channels + c];
      if (best_tap < 0 || v > best || (v != v && best == best)) {
        best = v;
        best_tap = kh * w_taps + kw;
      }
    }
  }"""
_PLACE = """  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t c = i % channels, position = i / channels;
  const index_t image = position / w_out / h_out;"""


@kernels.prepare(MAX_POOL)
def max_pool(
    x: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Return the largest under each window; the dtype's lowest value on padding alone."""
    if not out.size:
        return calls.empty(backend.runtime, out)
    at = geometry(x.shape, **attributes)
    launch = _search(backend, x, at, out, f"({ctypes.stored(x.dtype)})best", "MaxPool")
    return calls.producer(backend.runtime, out, launch)


def _search(
    backend: OpenCLBackend,
    x: TensorType,
    at: tuple[Window, ...],
    out: TensorType,
    result: str,
    title: str,
) -> Launch:
    """Return the launch (x, y) that writes the expression ``result`` for every window."""
    values, declared, index = _constants(x.shape, at, out.size)
    text = templates.program(
        f"{title} {x.dtype}",
        [
            templates.Array("x", ctypes.stored(x.dtype)),
            templates.Array("y", ctypes.stored(out.dtype), written=True),
        ],
        declared,
        f"{_PLACE}{_SEARCH}\n  y[i] = {result};",
        index=index,
        declarations=(
            f"typedef {ctypes.computed(x.dtype)} A;\n#define LOWEST {reduction.lowest(x.dtype)}"
        ),
    )
    return backend.runtime.launch(text, 2, values, out.size)


def _constants(
    x: Shape, at: tuple[Window, ...], items: int
) -> tuple[list[Any], list[str], templates.Index]:
    values = {"items": items, "channels": x[3]}
    for prefix, window in zip("hw", at, strict=True):
        values[f"{prefix}_size"] = window.size
        values[f"{prefix}_taps"] = window.filter
        values[f"{prefix}_stride"] = window.stride
        values[f"{prefix}_before"] = window.before
        values[f"{prefix}_out"] = window.out
    index = layouts.index_dtype(items, TensorType(dt.bool_, x).size)
    declared = templates.indices(*values)
    return [index.type(n) for n in values.values()], declared, index


@kernels.prepare(MAX_POOL_GRAD)
def max_pool_grad(
    dy: TensorType,
    input: TensorType,
    output: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Find the winner of each window, then let each element ask the windows that cover it."""
    runtime = backend.runtime
    if not out.size:
        return calls.empty(runtime, out)
    at = geometry(input.shape, **attributes)
    winners = TensorType(dt.int32, output.shape)
    collect = _collector(backend, input, at, out)
    make_winners = runtime.maker(winners)
    if not dy.size:
        return calls.constant(runtime, out)
    find = _search(backend, input, at, winners, "best_tap", "MaxPool winners")

    def write(
        dy: DeviceBuffer, input: DeviceBuffer, _output: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        won = make_winners()
        find(input, won)
        collect(dy, won, result)

    return calls.producer(runtime, out, write)


def _collector(
    backend: OpenCLBackend, x: TensorType, at: tuple[Window, ...], out: TensorType
) -> Launch:
    values, declared, index = _constants(x.shape, at, x.size)
    stored, computed = ctypes.stored(x.dtype), ctypes.computed(x.dtype)
    text = templates.program(
        f"MaxPoolGrad {x.dtype}",
        [
            templates.Array("dy", stored),
            templates.Array("winners", "int"),
            templates.Array("y", stored, written=True),
        ],
        declared,
        f"""  const index_t i = get_global_id(0);
  if (i >= items) return;
  const index_t c = i % channels;
  const index_t column = i / channels % w_size + w_before;
  const index_t row = i / channels / w_size % h_size + h_before;
  const index_t image = i / channels / w_size / h_size;
  {computed} sum = 0;
  for (index_t kh = row % h_stride; kh < h_taps && kh <= row; kh += h_stride) {{
    const index_t down = (row - kh) / h_stride;
    if (down >= h_out) continue;
    for (index_t kw = column % w_stride; kw < w_taps && kw <= column; kw += w_stride) {{
      const index_t across = (column - kw) / w_stride;
      if (across >= w_out) continue;
      const index_t window = ((image * h_out + down) * w_out + across) * channels + c;
      if (winners[window] == (int)(kh * w_taps + kw)) sum += ({computed})dy[window];
    }}
  }}
  y[i] = ({stored})sum;""",
        index=index,
    )
    return backend.runtime.launch(text, 3, values, out.size)
