"""Pooling over one to three axes: the first largest element, or the average, of each window.

Channels that come first count as images of one channel each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import (
    KernelTable,
    TensorType,
    Window,
    Windows,
    dilated_pooling_windows,
    pooling_windows,
    shapes,
    specs,
)
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, reduction, templates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.kernels.calls import Call
    from tensorplug_opencl.runtime import Launch, Runtime

kernels = KernelTable()

Attributes = dict[str, Any]

_WHOLE: Final = Window(1, 1, 1, 1, 0, 0, 1)  # along a missing axis
_FIELDS: Final = {
    "size": "size",
    "taps": "filter",
    "stride": "stride",
    "dilation": "dilation",
    "before": "before",
    "out": "out",
}


class Pooling(NamedTuple):
    """Windows over depth, height and width of so many images."""

    images: int
    windows: Windows
    channels: int

    @classmethod
    def of(cls, x: TensorType, windows: Windows, form: str = "N..C") -> Pooling:
        """Return the pooling of x in the layout ``form``."""
        three = (_WHOLE,) * (3 - len(windows)) + windows
        if form.endswith("C"):
            return cls(x.shape[0], three, x.shape[-1])
        return cls(x.shape[0] * x.shape[1], three, 1)

    @property
    def pixels(self) -> int:
        """Number of elements of the input."""
        return self.images * self.channels * shapes.size(tuple(at.size for at in self.windows))

    @property
    def results(self) -> int:
        """Number of windows, in all channels of all images."""
        return self.images * self.channels * shapes.size(tuple(at.out for at in self.windows))

    def launch(
        self,
        runtime: Runtime,
        title: str,
        arrays: Sequence[templates.Array],
        items: int,
        body: str,
        declarations: str,
    ) -> Launch:
        """Return the launch of a program with the geometry as constants."""
        values = {"items": items, "channels": self.channels}
        for prefix, window in zip("dhw", self.windows, strict=True):
            for name, field in _FIELDS.items():
                values[f"{prefix}_{name}"] = getattr(window, field)
        index = layouts.index_dtype(self.results, self.pixels)
        taps = shapes.size(tuple(at.filter for at in self.windows))
        return calls.launch_sized(
            runtime,
            title,
            arrays,
            values,
            body,
            index=index,
            declarations=declarations,
            heavy=taps > _MANY_TAPS,
        )


_MANY_TAPS: Final = 32  # beyond which a work-item counts as heavy

# For each element ``v`` under window i, in row-major order of the taps: TAKE. Padding is left out.
_VISIT: Final = """
  const index_t c = i % channels, w_at = i / channels % w_out;
  const index_t h_at = i / channels / w_out % h_out;
  const index_t d_at = i / channels / w_out / h_out % d_out;
  const index_t image = i / channels / w_out / h_out / d_out;
  for (index_t kd = 0; kd < d_taps; kd++) {
    const index_t plane = d_at * d_stride + kd * d_dilation;
    if (plane < d_before || plane - d_before >= d_size) continue;
    for (index_t kh = 0; kh < h_taps; kh++) {
      const index_t row = h_at * h_stride + kh * h_dilation;
      if (row < h_before || row - h_before >= h_size) continue;
      for (index_t kw = 0; kw < w_taps; kw++) {
        const index_t column = w_at * w_stride + kw * w_dilation;
        if (column < w_before || column - w_before >= w_size) continue;
        const index_t place = (((image * d_size + plane - d_before) * h_size
          + row - h_before) * w_size + column - w_before) * channels + c;
        const A v = (A)x[place];
        TAKE
      }
    }
  }"""
# For each window over element i, with the number of its tap there: TAKE. Taps are neighbours.
_COVERING: Final = """
  const index_t c = i % channels;
  const index_t column = i / channels % w_size + w_before;
  const index_t row = i / channels / w_size % h_size + h_before;
  const index_t plane = i / channels / w_size / h_size % d_size + d_before;
  const index_t image = i / channels / w_size / h_size / d_size;
  for (index_t kd = plane % d_stride; kd < d_taps && kd <= plane; kd += d_stride) {
    const index_t d_at = (plane - kd) / d_stride;
    if (d_at >= d_out) continue;
    for (index_t kh = row % h_stride; kh < h_taps && kh <= row; kh += h_stride) {
      const index_t h_at = (row - kh) / h_stride;
      if (h_at >= h_out) continue;
      for (index_t kw = column % w_stride; kw < w_taps && kw <= column; kw += w_stride) {
        const index_t w_at = (column - kw) / w_stride;
        if (w_at >= w_out) continue;
        const index_t window =
          (((image * d_out + d_at) * h_out + h_at) * w_out + w_at) * channels + c;
        const int tap = (kd * h_taps + kh) * w_taps + kw;
        TAKE
      }
    }
  }"""
# Taps along an axis that lie on the image, for the window at a place.
_TAPS_INSIDE: Final = """
index_t inside(index_t at, index_t size, index_t taps, index_t stride, index_t before) {
  return min(at * stride + taps, before + size) - max(at * stride, before);
}"""
# A NaN is larger than anything, and of multiple NaNs the first counts.
_SEARCH: Final = """if (best_tap < 0 || v > best || (v != v && best == best)) {
          best = v;
          best_tap = (kd * h_taps + kh) * w_taps + kw;
          best_place = place;
        }"""


class Result(NamedTuple):
    """An output of a search, for each window: the expression may name ``best`` and its tap."""

    name: str
    ctype: str
    expression: str


def _search(
    runtime: Runtime, title: str, pooling: Pooling, x: TensorType, results: Sequence[Result]
) -> Launch:
    """Return the launch (x, results...) that writes the results of each window.

    ``best_tap`` and ``best_place`` are -1 for a window of padding alone.
    """
    body = "\n".join(
        [
            "  A best = LOWEST;\n  int best_tap = -1;\n  long best_place = -1;",
            _VISIT.replace("TAKE", _SEARCH),
            *(f"  {result.name}[i] = {result.expression};" for result in results),
        ]
    )
    return pooling.launch(
        runtime,
        f"{title} {x.dtype}",
        [
            templates.Array("x", ctypes.stored(x.dtype)),
            *(templates.Array(result.name, result.ctype, written=True) for result in results),
        ],
        pooling.results,
        body,
        f"typedef {ctypes.computed(x.dtype)} A;\n#define LOWEST {reduction.lowest(x.dtype)}",
    )


def _take_largest(runtime: Runtime, pooling: Pooling, x: TensorType, out: TensorType) -> Call:
    """Return the largest under each window; the dtype's lowest value on padding alone."""
    if not out.size:
        return calls.make_empty(runtime, out)
    stored = ctypes.stored(x.dtype)
    launch = _search(runtime, "MaxPool", pooling, x, [Result("y", stored, f"({stored})best")])
    return calls.make_producer(runtime, out, launch)


def _take_average(runtime: Runtime, pooling: Pooling, x: TensorType, out: TensorType) -> Call:
    """Return the average of the elements under each window; NaN on padding alone."""
    if not out.size:
        return calls.make_empty(runtime, out)
    fold, stored = reduction.sum_fold(out.dtype), ctypes.stored(out.dtype)
    take = f"count++;\n        {fold.step}"
    launch = pooling.launch(
        runtime,
        f"AvgPool {x.dtype} to {out.dtype}",
        [
            templates.Array("x", ctypes.stored(x.dtype)),
            templates.Array("y", stored, written=True),
        ],
        pooling.results,
        f"  {fold.state}\n  index_t count = 0;{_VISIT.replace('TAKE', take)}\n"
        f"  y[i] = ({stored})({fold.result} / (A)count);",
        f"typedef {fold.element} A;",
    )
    return calls.make_producer(runtime, out, launch)


def _launch_collect(
    runtime: Runtime,
    title: str,
    pooling: Pooling,
    arrays: Sequence[templates.Array],
    take: str,
    out: TensorType,
) -> Launch:
    """Return the launch that adds up, for each element, the shares of the windows over it.

    ``take`` declares ``v``, or continues with the next window.
    """
    fold, stored = reduction.sum_fold(out.dtype), ctypes.stored(out.dtype)
    visit = f"{take}\n        {fold.step}"
    return pooling.launch(
        runtime,
        f"{title} {out.dtype}",
        [*arrays, templates.Array("y", stored, written=True)],
        pooling.pixels,
        f"  {fold.state}{_COVERING.replace('TAKE', visit)}\n  y[i] = ({stored})({fold.result});",
        f"typedef {fold.element} A;{_TAPS_INSIDE}",
    )


def _read_form(attributes: Attributes) -> str:
    return str(attributes.get("data_format", "NHWC"))


for _spec in (specs.MAX_POOL, specs.MAX_POOL_3D):

    @kernels.prepare(_spec)
    def max_pool(
        x: TensorType, *, attributes: Attributes, backend: OpenCLBackend, out: TensorType
    ) -> Call:
        """Take the largest."""
        at = pooling_windows(x.shape, **attributes)
        return _take_largest(backend.runtime, Pooling.of(x, at, _read_form(attributes)), x, out)


for _spec in (specs.AVG_POOL, specs.AVG_POOL_3D):

    @kernels.prepare(_spec)
    def avg_pool(
        x: TensorType, *, attributes: Attributes, backend: OpenCLBackend, out: TensorType
    ) -> Call:
        """Take the average."""
        at = pooling_windows(x.shape, **attributes)
        return _take_average(backend.runtime, Pooling.of(x, at, _read_form(attributes)), x, out)


@kernels.prepare(specs.POOL)
def pool(
    input: TensorType,
    *,
    pooling_type: str,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Take the largest or the average; taps may lie apart."""
    pooling = Pooling.of(input, dilated_pooling_windows(input.shape, **attributes))
    take = _take_largest if pooling_type == "max" else _take_average
    return take(backend.runtime, pooling, input, out)


for _spec in (specs.AVG_POOL_GRAD, specs.AVG_POOL_3D_GRAD):

    @kernels.prepare(_spec)
    def avg_pool_grad(
        dy: TensorType,
        input: TensorType,
        *,
        attributes: Attributes,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        """Add up, for each element, its shares of the windows over it."""
        runtime = backend.runtime
        if not dy.size or not out.size:
            return calls.make_constant(runtime, out)
        at = pooling_windows(input.shape, **attributes)
        pooling = Pooling.of(input, at, _read_form(attributes))
        counts = " * ".join(
            f"inside({p}_at, {p}_size, {p}_taps, {p}_stride, {p}_before)" for p in "dhw"
        )
        take = f"const A v = (A)dy[window] / (A)({counts});"
        arrays = [templates.Array("dy", ctypes.stored(dy.dtype))]
        collect = _launch_collect(runtime, "AvgPoolGrad", pooling, arrays, take, out)

        def write(dy: DeviceBuffer, _input: DeviceBuffer, result: DeviceBuffer) -> None:
            collect(dy, result)

        return calls.make_producer(runtime, out, write)


for _spec in (specs.MAX_POOL_GRAD, specs.MAX_POOL_3D_GRAD):

    @kernels.prepare(_spec)
    def max_pool_grad(
        dy: TensorType,
        input: TensorType,
        output: TensorType,
        *,
        attributes: Attributes,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        """Find the winner of each window, then add up dy for each element."""
        runtime = backend.runtime
        if not dy.size or not out.size:
            return calls.make_constant(runtime, out)
        at = pooling_windows(input.shape, **attributes)
        pooling = Pooling.of(input, at, _read_form(attributes))
        return calls.make_producer(
            runtime, out, _route_to_winners(runtime, pooling, input, output, out)
        )


def _route_to_winners(
    runtime: Runtime, pooling: Pooling, x: TensorType, output: TensorType, out: TensorType
) -> Callable[..., None]:
    make_winners = runtime.prepare_empty(TensorType(dt.int32, output.shape))
    winner = Result("winners", "int", "best_tap")
    find = _search(runtime, "MaxPool winners", pooling, x, [winner])
    arrays = [
        templates.Array("dy", ctypes.stored(output.dtype)),
        templates.Array("winners", "int"),
    ]
    take = "if (winners[window] != tap) continue;\n        const A v = (A)dy[window];"
    collect = _launch_collect(runtime, "MaxPoolGrad", pooling, arrays, take, out)

    def write(
        dy: DeviceBuffer, x: DeviceBuffer, _output: DeviceBuffer, result: DeviceBuffer
    ) -> None:
        winners = make_winners()
        find(x, winners)
        collect(dy, winners, result)

    return write


@kernels.prepare(specs.MAX_POOL_WITH_ARGMAX)
def max_pool_with_argmax(
    x: TensorType,
    *,
    filter_size: tuple[int, ...],
    strides: tuple[int, ...],
    pad: Any,
    include_batch_in_index: bool,
    backend: OpenCLBackend,
    out: tuple[TensorType, TensorType],
) -> Callable[..., Any]:
    """Return the largest element of each window, and its place."""
    runtime = backend.runtime
    makers = [runtime.prepare_empty(type_) for type_ in out]
    if not out[0].size:
        return lambda _x: [make() for make in makers]
    at = pooling_windows(x.shape, filter_size=filter_size, strides=strides, pad=pad)
    pooling, stored = Pooling.of(x, at), ctypes.stored(x.dtype)
    first = "0" if include_batch_in_index else "image * (h_size * w_size * channels)"
    place = f"best_place < 0 ? -1 : (int)(best_place - (long)({first}))"
    results = [Result("y", stored, f"({stored})best"), Result("places", "int", place)]
    find = _search(runtime, f"MaxPoolWithArgmax from {first}", pooling, x, results)

    def run(x: DeviceBuffer) -> list[DeviceBuffer]:
        made = [make() for make in makers]
        find(x, *made)
        return made

    return run
