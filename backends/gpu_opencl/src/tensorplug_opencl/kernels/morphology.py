"""The gradients of grayscale dilation, itself a form: the first largest tap takes all of dy.

Their forms are sums at indices, which devices add up atomically, in an order that differs from run
to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.algorithms import dilation_windows
from tensorplug.plugin import TensorType, Window, specs
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.codegen import calls, ctypes, folds, layouts
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.reductions import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug_opencl.codegen.calls import Call, Write
    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = calls.Kernels()

Attributes = dict[str, Any]

_FIELDS: Final = ("size", "filter", "stride", "dilation", "before", "out")
# Of the window at element i of the output: its first largest sum and the tap that gave it. A NaN
# is larger than anything, and of multiple NaNs the first counts.
_SEARCH: Final = """
  const index_t c = i % channels, column = i / channels % w_out;
  const index_t row = i / channels / w_out % h_out, image = i / channels / w_out / h_out;
  A best = LOWEST;
  int best_tap = -1;
  for (index_t kh = 0; kh < h_filter; kh++) {
    const index_t y_at = row * h_stride + kh * h_dilation;
    if (y_at < h_before || y_at - h_before >= h_size) continue;
    for (index_t kw = 0; kw < w_filter; kw++) {
      const index_t x_at = column * w_stride + kw * w_dilation;
      if (x_at < w_before || x_at - w_before >= w_size) continue;
      const int tap = kh * w_filter + kw;
      const A v = (A)SUM(x[((image * h_size + y_at - h_before) * w_size + x_at - w_before)
        * channels + c], filter[tap * channels + c]);
      if (best_tap < 0 || v > best || (v != v && best == best)) {
        best = v;
        best_tap = tap;
      }
    }
  }
"""
_COLLECT: Final = """
  const index_t c = i % channels, column = i / channels % w_size + w_before;
  const index_t row = i / channels / w_size % h_size + h_before;
  const index_t image = i / channels / w_size / h_size;
  for (index_t kh = 0; kh < h_filter && kh * h_dilation <= row; kh++) {
    const index_t down = row - kh * h_dilation;
    if (down % h_stride || down / h_stride >= h_out) continue;
    for (index_t kw = 0; kw < w_filter && kw * w_dilation <= column; kw++) {
      const index_t across = column - kw * w_dilation;
      if (across % w_stride || across / w_stride >= w_out) continue;
      const index_t window =
        ((image * h_out + down / h_stride) * w_out + across / w_stride) * channels + c;
      if (winners[window] != (int)(kh * w_filter + kw)) continue;
      const A v = (A)dy[window];
      STEP
    }
  }
"""


class _Dilation(NamedTuple):
    """The windows of height and width over so many images."""

    x: TensorType
    windows: tuple[Window, Window]
    result: TensorType

    @classmethod
    def of(cls, x: TensorType, filter: TensorType, attributes: Attributes) -> _Dilation:
        height, width = dilation_windows(x.shape, filter.shape, attributes)
        shape = (x.shape[0], height.out, width.out, x.shape[3])
        return cls(x, (height, width), TensorType(x.dtype, shape))

    @property
    def taps(self) -> int:
        """Number of taps in one channel."""
        return self.windows[0].filter * self.windows[1].filter

    def launch(
        self,
        runtime: Runtime,
        title: str,
        arrays: Sequence[Array],
        items: int,
        body: str,
        declarations: str,
    ) -> Launch:
        """Return the launch of a program with the geometry as constants."""
        values = {"items": items, "channels": self.x.shape[3]}
        for prefix, window in zip("hw", self.windows, strict=True):
            for name in _FIELDS:
                values[f"{prefix}_{name}"] = getattr(window, name)
        return calls.launch_sized(
            runtime,
            f"{title} {self.x.dtype}",
            arrays,
            values,
            body,
            index=layouts.index_dtype(self.x.size, self.result.size, items),
            declarations=declarations,
        )

    def search(self, runtime: Runtime, title: str, ctype: str, expression: str) -> Launch:
        """Return the launch (x, filter, y) that writes the result of each window."""
        dtype = self.x.dtype
        stored, computed = ctypes.stored(dtype), ctypes.computed(dtype)
        # Integers wrap, and a sum of halves is rounded before it is compared.
        wrapped = "((a) + (b))" if dtype.kind == "float" else f"({stored})((RING)(a) + (RING)(b))"
        if dtype is dt.float16:
            wrapped = "(half)((float)(a) + (float)(b))"
        return self.launch(
            runtime,
            title,
            [
                Array("x", stored),
                Array("filter", stored),
                Array("y", ctype, written=True),
            ],
            self.result.size,
            f"{_SEARCH}  y[i] = {expression};",
            f"typedef {computed} A;\n#define RING {ctypes.ring(dtype)}\n"
            f"#define LOWEST {folds.lowest(dtype)}\n#define SUM(a, b) {wrapped}",
        )

    def winners(self, runtime: Runtime) -> Launch:
        """Return the launch (x, filter, y) that writes each window's tap, -1 for none."""
        return self.search(runtime, "Dilation2D winners", "int", "best_tap")


@kernels.write(specs.DILATION2D_BACKPROP_INPUT)
def backprop_input(
    x: TensorType,
    filter: TensorType,
    dy: TensorType,
    *,
    attributes: Attributes,
    backend: OpenedDevice,
    out: TensorType,
) -> Write:
    """Add up, for each element, dy of the windows whose largest it is."""
    runtime = backend.runtime
    if not dy.size:
        return calls.fill_with(runtime, out.dtype)
    dilation = _Dilation.of(x, filter, attributes)
    fold, stored = folds.sum_fold(out.dtype), ctypes.stored(out.dtype)
    find = dilation.winners(runtime)
    collect = dilation.launch(
        runtime,
        "Dilation2DBackpropInput",
        [
            Array("dy", stored),
            Array("winners", "int"),
            Array("y", stored, written=True),
        ],
        out.size,
        f"  {fold.state}{_COLLECT.replace('STEP', fold.step)}  y[i] = ({stored})({fold.result});",
        f"typedef {fold.element} A;",
    )
    make_winners = runtime.prepare_empty(TensorType(dt.int32, dy.shape))

    def write(
        x: DeviceBuffer, filter: DeviceBuffer, dy: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        winners = make_winners()
        find(x, filter, winners)
        collect(dy, winners, result)

    return write


@kernels.prepare(specs.DILATION2D_BACKPROP_FILTER)
def backprop_filter(
    x: TensorType,
    filter: TensorType,
    dy: TensorType,
    *,
    attributes: Attributes,
    backend: OpenedDevice,
    out: TensorType,
) -> Call:
    """Add up, for each tap, dy of the windows whose largest it gave."""
    runtime = backend.runtime
    if not dy.size or not out.size:
        return calls.make_constant(runtime, out)
    dilation = _Dilation.of(x, filter, attributes)
    windows = dy.size // dy.shape[3]
    parts = rows.count_parts(runtime, out.size, windows)
    wide = out.dtype.compute
    sums = TensorType(wide, (parts, *out.shape))
    find, add = dilation.winners(runtime), _launch_tap_sums(runtime, dy, sums)
    walk = rows.make_walk(sums.shape, (0,))
    fold = folds.sum_fold(out.dtype)
    finish = rows.make_reducer(runtime, "Dilation2DBackpropFilter", walk, wide, out, fold)
    make_winners = runtime.prepare_empty(TensorType(dt.int32, dy.shape))
    make_sums = runtime.prepare_empty(sums)

    def run(x: DeviceBuffer, filter: DeviceBuffer, dy: DeviceBuffer) -> DeviceBuffer:
        winners, partial = make_winners(), make_sums()
        find(x, filter, winners)
        add(dy, winners, partial)
        return finish(partial)

    return run


def _launch_tap_sums(runtime: Runtime, dy: TensorType, sums: TensorType) -> Launch:
    """Return the launch (dy, winners, sums) that adds up, for each part of the windows."""
    fold, stored = folds.sum_fold(dy.dtype), ctypes.stored(sums.dtype)
    index = layouts.index_dtype(dy.size, sums.size)
    parts, channels = sums.shape[0], sums.shape[-1]
    windows = dy.size // channels
    return calls.launch_sized(
        runtime,
        f"Dilation2D by taps {dy.dtype}",
        [
            Array("dy", ctypes.stored(dy.dtype)),
            Array("winners", "int"),
            Array("y", stored, written=True),
        ],
        {
            "items": sums.size,
            "channels": channels,
            "taps": sums.size // parts // channels,
            "windows": windows,
            "span": -(-windows // parts),
        },
        f"""  const index_t c = i % channels, part = i / channels / taps;
  const int tap = i / channels % taps;
  const index_t end = min(windows, (part + 1) * span);
  {fold.state}
  for (index_t at = part * span; at < end; at++) {{
    if (winners[at * channels + c] != tap) continue;
    const A v = (A)dy[at * channels + c];
    {fold.step}
  }}
  y[i] = ({stored})({fold.result});""",
        index=index,
        declarations=f"typedef {fold.element} A;",
        heavy=True,
    )
