"""Depthwise convolution: every output channel reads one input channel, so nothing is shared.

There is no matrix product: work-items walk the taps themselves. On CPUs each takes neighbouring
channels, which share the index arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.plugin import (
    DType,
    KernelRefusedError,
    KernelTable,
    Shape,
    TensorType,
    channel_axis,
    convolution_windows,
    spatial_axes,
    specs,
)
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import (
    calls,
    ctypes,
    functions,
    patches,
    products,
    slices,
    templates,
)
from tensorplug_opencl.kernels.epilogues import choose_epilogue
from tensorplug_opencl.kernels.matrices import Matrix
from tensorplug_opencl.kernels.patches import Images
from tensorplug_opencl.kernels.products import NO_EPILOGUE, Epilogue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch, Runtime

    Call = Callable[..., DeviceBuffer]

kernels = KernelTable()

Attributes = dict[str, Any]

PART: Final = 64  # positions whose products one work-item adds up


class Depthwise(NamedTuple):
    """The shapes of x, filter and y, the images that x is, and the order of their axes."""

    runtime: Runtime
    dtype: DType
    x: Shape
    filter: Shape
    y: Shape
    images: Images
    order: tuple[int, ...]

    @classmethod
    def of(
        cls,
        backend: OpenCLBackend,
        dtype: DType,
        shapes: tuple[Shape, Shape, Shape],
        attributes: Attributes,
    ) -> Depthwise:
        """Return the convolution of x and filter to y, whose ``shapes`` are given."""
        x, filter, _ = shapes
        data_format = attributes["data_format"]
        order = (0, *spatial_axes(data_format), channel_axis(data_format))
        strides = layouts.permuted_strides(x, order)
        images = Images(x[0], convolution_windows(x, filter, attributes), filter[2], strides)
        return cls(backend.runtime, dtype, *shapes, images, order)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to multiply."""
        return 0 in (*self.x, *self.filter, *self.y)

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.filter[2] * self.filter[3]


class Work(NamedTuple):
    """The work of a program: for each of ``items``, runs of up to ``channels`` channels.

    ``limit`` is the C name of ``channels``. ``body`` can use ``rest`` (the item), ``first`` and
    ``count`` (of the run's channels), and an array ``sum`` with an element for each of them.
    """

    title: str
    items: int
    channels: int
    limit: str
    body: Sequence[str]
    written: str
    more: Mapping[str, int] = {}
    epilogue: Epilogue = NO_EPILOGUE


def _launch(depthwise: Depthwise, work: Work) -> Launch:
    """Return the launch on two inputs, those of the epilogue, and the result."""
    run = patches.choose_run(depthwise.runtime)
    runs = -(-work.channels // run)
    count = work.items * runs
    sizes = (
        TensorType(depthwise.dtype, shape).size
        for shape in (depthwise.x, depthwise.filter, depthwise.y)
    )
    index = layouts.index_dtype(count, work.items * work.channels, *sizes)
    own = layouts.row_major(depthwise.y)
    values = {
        "items": count,
        "runs": runs,
        "outputs": depthwise.outputs,
        "multiplier": depthwise.filter[3],
        **patches.list_geometry(depthwise.images),
        **{f"y{number}_by": own[axis] for number, axis in enumerate(depthwise.order)},
        **work.more,
    }
    stored, computed = ctypes.stored(depthwise.dtype), ctypes.computed(depthwise.dtype)
    body = [
        "  const index_t i = get_global_id(0);",
        "  if (i >= items) return;",
        f"  const index_t first = i % runs * {run};",
        f"  const index_t count = min((index_t){run}, {work.limit} - first);",
        "  index_t rest = i / runs;",
        f"  A sum[{run}];",
        f"  for (int c = 0; c < {run}; c++) sum[c] = 0;",
        *work.body,
    ]
    numbers = work.epilogue.numbers
    text = templates.write_program(
        f"depthwise convolution {work.title} {depthwise.dtype}",
        [
            templates.Array("x", stored),
            templates.Array("w", stored),
            *(templates.Array(name, stored) for name, _ in work.epilogue.inputs),
            templates.Array("y", work.written, written=True),
        ],
        [
            *templates.declare_indices(*values),
            *(f"const A {name}_argument" for name, _ in numbers),
        ],
        "\n".join(body),
        index=index,
        declarations="\n".join(
            [
                functions.define(work.epilogue.expression, depthwise.dtype),
                products.define_epilogue(work.epilogue, work.written),
            ]
        ),
    )
    kind = ctypes.host(computed).type
    arguments = [*map(index.type, values.values()), *(kind(number) for _, number in numbers)]
    return depthwise.runtime.launch(text, 3 + len(work.epilogue.inputs), arguments, count)


def _launch_forward(
    depthwise: Depthwise,
    epilogue: Epilogue = NO_EPILOGUE,
    steps: Mapping[str, Sequence[int]] | None = None,
) -> Launch:
    """Return the launch (x, filter, the epilogue's inputs, result).

    ``steps``: the distances in each of these inputs along (image, row, column, channel).
    """
    ctype = ctypes.stored(depthwise.dtype)
    inside, place = patches.write_input_place(depthwise.images)
    more: dict[str, int] = {}
    places: dict[str, str] = {}
    for name, along in (steps or {}).items():
        more |= {f"{name}{number}_by": step for number, step in enumerate(along)}
        places[name] = (
            f"rest * {name}0_by + position0 * {name}1_by + position1 * {name}2_by"
            f" + (first + c) * {name}3_by"
        )
    body = [
        *patches.write_split(depthwise.images, "position", "out"),
        "  x += rest * image_by;",
        "  y += rest * y0_by + position0 * y1_by + position1 * y2_by;",
        "  for (index_t tap0 = 0; tap0 < taps0; tap0++) {",
        f"  A row[{patches.choose_run(depthwise.runtime)}];",
        "  for (index_t c = 0; c < count; c++) row[c] = 0;",
        "  for (index_t tap1 = 0; tap1 < taps1; tap1++) {",
        f"    if (!({inside})) continue;",
        f"    global const {ctype} *from = x + {place};",
        f"    global const {ctype} *by = w + (tap0 * taps1 + tap1) * outputs + first;",
        "    if (multiplier == 1 && channel_by == 1)",
        "      for (index_t c = 0; c < count; c++) row[c] += (A)from[first + c] * (A)by[c];",
        "    else",
        "      for (index_t c = 0; c < count; c++)",
        "        row[c] += (A)from[(first + c) / multiplier * channel_by] * (A)by[c];",
        "  }",
        "  for (index_t c = 0; c < count; c++) sum[c] += row[c];",
        "  }",
        "  for (index_t c = 0; c < count; c++)",
        f"    y[(first + c) * y3_by] = {products.call_epilogue(epilogue, 'sum[c]', places)};",
    ]
    items = depthwise.images.number * depthwise.images.positions
    return _launch(
        depthwise, Work("", items, depthwise.outputs, "outputs", body, ctype, more, epilogue)
    )


@kernels.prepare(specs.DEPTHWISE_CONV2D)
def depthwise_conv2d(
    x: TensorType,
    filter: TensorType,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Add up the taps of each position, row by row of the filter."""
    depthwise = Depthwise.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
    if depthwise.empty:
        return calls.make_constant(backend.runtime, out)
    return calls.make_producer(backend.runtime, out, _launch_forward(depthwise))


@kernels.prepare(specs.FUSED_DEPTHWISE_CONV2D)
def fused_depthwise_conv2d(
    x: TensorType,
    filter: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Convolve, and apply the epilogue to each element before it is stored."""
    depthwise = Depthwise.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
    if depthwise.empty:
        raise KernelRefusedError("there is nothing to convolve")
    fused = choose_epilogue(out.dtype, out.rank, bias, prelu_activation_weights, attributes)
    steps: dict[str, Sequence[int]] = {}
    for name, shape in fused.inputs:
        along = layouts.broadcast_strides(shape, out.shape)
        steps[name] = [along[axis] for axis in depthwise.order]
    epilogue = fused.bind(out.shape, lambda _steps: Matrix(0, 0, ()))
    return calls.make_producer(
        backend.runtime, out, fused.reorder(_launch_forward(depthwise, epilogue, steps))
    )


@kernels.prepare(specs.DEPTHWISE_CONV2D_BACKPROP_INPUT)
def depthwise_conv2d_backprop_input(
    dy: TensorType,
    filter: TensorType,
    *,
    attributes: Attributes,
    input_shape: Shape,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Add up, for each pixel, the positions that read it through some tap."""
    depthwise = Depthwise.of(backend, dy.dtype, (input_shape, filter.shape, dy.shape), attributes)
    if depthwise.empty:
        return calls.make_constant(backend.runtime, out)
    ctype = ctypes.stored(depthwise.dtype)
    gathered = f"""  global const {ctype} *from = x + rest * y0_by + position / out1 * y1_by
    + position % out1 * y2_by;
  global const {ctype} *by = w + tap * outputs;
  for (index_t c = 0; c < count; c++)
    for (index_t m = 0; m < multiplier; m++) {{
      const index_t o = (first + c) * multiplier + m;
      sum[c] += (A)from[o * y3_by] * (A)by[o];
    }}"""
    body = [
        *patches.write_split(depthwise.images, "pixel", "size"),
        *patches.write_output_loops(depthwise.images, gathered, "0"),
        "  y += rest * image_by + pixel0 * axis0_by + pixel1 * axis1_by;",
        f"  for (index_t c = 0; c < count; c++) y[(first + c) * channel_by] = ({ctype})sum[c];",
    ]
    items = depthwise.images.number * depthwise.images.pixels
    work = Work("gradient of input", items, depthwise.images.channels, "channels", body, ctype)
    return calls.make_producer(backend.runtime, out, _launch(depthwise, work))


@kernels.prepare(specs.DEPTHWISE_CONV2D_BACKPROP_FILTER)
def depthwise_conv2d_backprop_filter(
    x: TensorType,
    dy: TensorType,
    *,
    attributes: Attributes,
    filter_shape: Shape,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Add up products over ``PART`` positions for each tap, then these sums, compensated."""
    depthwise = Depthwise.of(backend, x.dtype, (x.shape, filter_shape, dy.shape), attributes)
    runtime = backend.runtime
    if depthwise.empty:
        return calls.make_constant(runtime, out)
    ctype, computed = ctypes.stored(depthwise.dtype), ctypes.computed(depthwise.dtype)
    positions = depthwise.images.number * depthwise.images.positions
    parts = -(-positions // PART)
    inside, place = patches.write_input_place(depthwise.images)
    body = [
        "  const index_t part = rest / (taps0 * taps1);",
        "  y += rest * outputs + first;",
        "  rest %= taps0 * taps1;",
        "  const index_t tap0 = rest / taps1, tap1 = rest % taps1;",
        f"  const index_t end = min((part + 1) * {PART}, positions);",
        f"  for (index_t at = part * {PART}; at < end; at++) {{",
        "  rest = at;",
        *patches.write_split(depthwise.images, "position", "out"),
        f"  if (!({inside})) continue;",
        f"  global const {ctype} *from = x + rest * image_by + {place};",
        f"  global const {ctype} *by = w + rest * y0_by + position0 * y1_by + position1 * y2_by;",
        "  for (index_t c = 0; c < count; c++)",
        "    { const index_t o = first + c;",
        "      sum[c] += (A)from[o / multiplier * channel_by] * (A)by[o * y3_by]; }",
        "  }",
        "  for (index_t c = 0; c < count; c++) y[c] = sum[c];",
    ]
    more = {"positions": positions}
    items = parts * depthwise.images.places
    work = Work("gradient of filter", items, depthwise.outputs, "outputs", body, computed, more)
    launch = _launch(depthwise, work)
    make = runtime.prepare_empty(
        TensorType(slices.choose_dtype(depthwise.dtype), (parts, *out.shape))
    )
    total = slices.launch_add(runtime, depthwise.dtype, parts, out.size)

    def write(x: DeviceBuffer, dy: DeviceBuffer, result: DeviceBuffer) -> None:
        sums = make()
        launch(x, dy, sums)
        total(sums, result)

    return calls.make_producer(runtime, out, write)
