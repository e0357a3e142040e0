"""The gradient of a convolution's input through patches: a product, then a sum over taps.

CPUs use it for inputs of few channels. These would be the columns of the implicit product, fewer
than its tile has. The columns of patches are all taps of all channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tensorplug.plugin import TensorType
from tensorplug_opencl.codegen import ctypes
from tensorplug_opencl.codegen.templates import Array
from tensorplug_opencl.products import gemm
from tensorplug_opencl.products.matrices import Matrix
from tensorplug_opencl.products.product_texts import Product
from tensorplug_opencl.windows import strips
from tensorplug_opencl.windows.strips import Lanes, Visit, Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_opencl.memory.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Launch
    from tensorplug_opencl.windows.sliding import Convolution

    Step = Callable[[DeviceBuffer, DeviceBuffer, DeviceBuffer], None]


WORKSPACE: Final = 8 * 2**20  # bytes of patches that one step makes: they stay in the cache


def prepare_input_gradient(convolution: Convolution) -> Callable[..., None]:
    """Return a function (dy, filter, result): dy times the turned filter, and that folded.

    Channels come last.
    """
    total = convolution.x[0]
    room = max(
        1, WORKSPACE // (convolution.taps * convolution.positions * convolution.dtype.itemsize)
    )
    counts = {first: min(room, total - first) for first in range(0, total, room)}
    steps = {count: _prepare_step(convolution, count) for count in {*counts.values()}}

    def write(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        for first, count in counts.items():
            steps[count](_skip_images(dy, first), filter, _skip_images(result, first))

    return write


def _skip_images(buffer: DeviceBuffer, first: int) -> DeviceBuffer:
    return buffer.view(buffer.shape, first * (buffer.type.size // buffer.shape[0]))


def _prepare_step(convolution: Convolution, count: int) -> Step:
    """Return the function for ``count`` of the images."""
    rows, taps = count * convolution.positions, convolution.taps
    product = Product(
        convolution.dtype,
        (),
        rows,
        convolution.outputs,
        taps,
        convolution.results(count),
        Matrix(1, convolution.outputs, ()),
        Matrix(taps, 1, ()),
        max(convolution.reach, rows * taps),
    )
    multiply = gemm.make_multiplier(convolution.runtime, product)
    make = convolution.runtime.prepare_empty(TensorType(convolution.dtype, (rows, taps)))
    fold = _launch_fold(convolution, count)

    def run(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        parts = make()
        multiply(dy, filter, parts)
        fold(parts, result)

    return run


def _launch_fold(convolution: Convolution, count: int) -> Launch:
    """Return the launch (patches, images) that sums, for each pixel, its values in all patches."""
    stored, computed = ctypes.stored(convolution.dtype), ctypes.computed(convolution.dtype)

    def write(lanes: Lanes, visit: Visit) -> str:
        source = "x + ((image * sources + from) * spatial_taps + tap) * channels + c"
        take = f"sum += {lanes.load(stored, source)};"
        store = lanes.store(stored, f"y + {strips.RESULT}", "sum")
        return f"A sum = 0;\n{visit(take)}\n  {store}"

    return strips.launch(
        Walk(convolution.runtime, convolution.windows, count, convolution.channels, back=True),
        f"fold patches {convolution.dtype}",
        [Array("x", stored), Array("y", stored, written=True)],
        write,
        computed,
        values={"spatial_taps": convolution.spatial_taps},
        reach=count * convolution.positions * convolution.taps,
    )
