"""Depthwise convolution: every output channel reads one input channel, so nothing is shared.

There is no matrix product: work-items walk the taps themselves (``strips``). Channels that come
first count as images of one channel each. As forms, on 2^20 elements, the convolution and the
gradient of its input take 0.8 to 1.06 of the time, but 2.6 where an input channel has two filters,
and the gradient of the filter 1.9; and forms have no epilogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.algorithms import CONVOLUTION_DEPTHWISE
from tensorplug.plugin import KernelRefusedError, Shape, TensorType, specs
from tensorplug_opencl.codegen import calls, ctypes, layouts
from tensorplug_opencl.kernels.convolution import enter
from tensorplug_opencl.movement import channels_last
from tensorplug_opencl.products import product_texts
from tensorplug_opencl.products.epilogues import choose_epilogue
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import NO_EPILOGUE, Epilogue
from tensorplug_opencl.windows import depthwise_filters, strips
from tensorplug_opencl.windows.depthwise_walks import Depthwise
from tensorplug_opencl.windows.strips import RESULT, SOURCE, Lanes, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug_opencl.codegen.calls import Call, Write
    from tensorplug_opencl.opened import OpenedDevice
    from tensorplug_opencl.runtime import Launch

kernels = calls.Kernels()

Attributes = dict[str, Any]


def _launch_forward(
    depthwise: Depthwise,
    epilogue: Epilogue = NO_EPILOGUE,
    steps: Mapping[str, Sequence[int]] | None = None,
) -> Launch:
    """Return the launch (x, filter, the epilogue's inputs, result).

    ``steps``: the distances in each of these inputs along (image, row, column, channel).
    """
    stored = ctypes.stored(depthwise.dtype)
    at = ("image", "at0", "at1", "(c + k)")
    channel = "c"
    if not depthwise.last:
        at = ("(image / outputs)", "at0", "at1", "(image % outputs)")
        channel = "image % outputs"
    more: dict[str, int] = {}
    offsets: dict[str, str] = {}
    for name, along in (steps or {}).items():
        moving = [(axis, step) for axis, step in enumerate(along) if step]
        more |= {f"{name}{axis}_by": step for axis, step in moving}
        offsets[name] = " + ".join(["0", *(f"{at[axis]} * {name}{axis}_by" for axis, _ in moving)])

    def read(lanes: Lanes) -> str:
        if not depthwise.last:
            return lanes.load(stored, "x + image / multiplier * sources + from")
        if depthwise.multiplier == 1:
            return lanes.load(stored, f"x + {SOURCE}")
        pixel = "(image * sources + from) * (outputs / multiplier)"
        return lanes.gather(f"x[{pixel} + {{c}} / multiplier]")

    def write(lanes: Lanes, visit: Visit) -> str:
        w = lanes.load(stored, f"w + tap * outputs + {channel}")
        loops = visit(f"row += {read(lanes)} * {w};", "A row = 0;", "sum.all += row;")
        ended = product_texts.call_epilogue(epilogue, "sum.each[k]", offsets)
        lines = [
            f"union {{ {lanes.element} each[{lanes.width}]; A all; }} sum;",
            "sum.all = 0;",
            loops,
            f"for (int k = 0; k < {lanes.width}; k++) sum.each[k] = {ended};",
            lanes.store(stored, f"y + {RESULT}", "sum.all"),
        ]
        if epilogue is NO_EPILOGUE:
            del lines[3]
        return "\n  ".join(lines)

    return depthwise.launch("", depthwise.walk(back=False), write, epilogue, more)


def _turn_images(
    depthwise: Depthwise,
    prepare: Callable[[Depthwise], Callable[..., Any]],
    images: Sequence[Shape],
    result: Shape | None = None,
) -> Callable[..., Any]:
    """Return what ``prepare`` returns, a function of images and others, for any order of axes.

    CPUs compute with channels last. ``images`` are the shapes of its first arguments, and
    ``result`` that of the last one, if this is images to be written.
    """
    runtime = depthwise.runtime
    if depthwise.last or not runtime.is_cpu or depthwise.outputs < strips.FEWEST:
        return prepare(depthwise)
    x, y = channels_last.turn(depthwise.x), channels_last.turn(depthwise.y)
    run = prepare(depthwise._replace(x=x, y=y, order=(0, 1, 2, 3)))
    return channels_last.turn_images(runtime, depthwise.dtype, run, images, result)


@kernels.prepare(specs.FUSED_DEPTHWISE_CONV2D)
def fused_depthwise_conv2d(
    x: TensorType,
    filter: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: Attributes,
    backend: OpenedDevice,
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
    write = _turn_images(
        depthwise, lambda of: _launch_forward(of, epilogue, steps), (x.shape,), out.shape
    )
    return calls.make_producer(backend.runtime, out, fused.reorder(write))


def _launch_input_gradient(depthwise: Depthwise) -> Launch:
    """Return the launch (dy, filter, result)."""
    stored = ctypes.stored(depthwise.dtype)

    def read(lanes: Lanes) -> tuple[str, str]:
        if not depthwise.last:
            channel = "image % (outputs / multiplier) * multiplier + m"
            return (
                lanes.load(stored, "x + (image * multiplier + m) * sources + from"),
                lanes.load(stored, f"w + tap * outputs + {channel}"),
            )
        if depthwise.multiplier == 1:
            return lanes.load(stored, f"x + {SOURCE}"), lanes.load(stored, "w + tap * outputs + c")
        return (
            lanes.gather("x[(image * sources + from) * outputs + {c} * multiplier + m]"),
            lanes.gather("w[tap * outputs + {c} * multiplier + m]"),
        )

    def write(lanes: Lanes, visit: Visit) -> str:
        dy, w = read(lanes)
        many = "for (index_t m = 0; m < multiplier; m++) " if depthwise.multiplier > 1 else ""
        m = "" if many else "const index_t m = 0; "
        store = lanes.store(stored, f"y + {RESULT}", "sum")
        return f"A sum = 0;\n{visit(f'{many}{{ {m}sum += {dy} * {w}; }}')}\n  {store}"

    return depthwise.launch("gradient of input", depthwise.walk(back=True), write)


def _add_taps(depthwise: Depthwise) -> Write:
    """Add up the taps of each position, row by row of the filter."""
    return _turn_images(depthwise, _launch_forward, (depthwise.x,), depthwise.y)


def _add_positions(depthwise: Depthwise) -> Write:
    """Add up, for each pixel, the positions that read it through some tap."""
    return _turn_images(depthwise, _launch_input_gradient, (depthwise.y,), depthwise.x)


def _add_products(depthwise: Depthwise, _out: TensorType) -> Call:
    """Add up the products of each part of the positions, then these sums, compensated."""
    return _turn_images(depthwise, depthwise_filters.prepare, (depthwise.x, depthwise.y))


enter(kernels, CONVOLUTION_DEPTHWISE, Depthwise.of, _add_taps, _add_positions, _add_products)
