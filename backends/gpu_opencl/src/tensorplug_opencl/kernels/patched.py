"""Convolutions as products of patches that are written to memory, some images at a time.

That pays on CPUs, which still have the patches in the cache when they multiply them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.spec import TensorType
from tensorplug.windows import channel_axis, spatial_axes
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, gemm, moving, patches, slices
from tensorplug_opencl.kernels.patches import Images
from tensorplug_opencl.kernels.products import NOTHING, Ending, Matrix, Product
from tensorplug_opencl.kernels.sliding import Convolution

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.shapes import Shape
    from tensorplug_opencl.buffers import DeviceBuffer

    Call = Callable[..., DeviceBuffer]
    Pair = tuple[int, int]

__all__ = ["filter_gradient", "forward", "input_gradient"]

WORKSPACE: Final = 8 * 2**20  # bytes of patches that one step makes: they stay in the cache


class Patched(Convolution):
    """A convolution whose patches are made, some images at a time."""

    def images(self, count: int) -> Images:
        """Return ``count`` of the input images."""
        return Images(count, self.windows, self.channels, self.strides(self.x))

    @property
    def direct(self) -> bool:
        """Whether an image, as a matrix [positions, channels], is its patches."""
        return self.images(1).untouched

    def matrix(self, shape: Shape) -> Matrix:
        """Return images of ``shape`` as a matrix [positions, channels] for each."""
        strides = self.strides(shape)
        return Matrix(strides[-2], strides[-1], (strides[0],))

    def patch_matrix(self) -> Matrix:
        """Return the patches as a matrix [positions, taps] for each image."""
        if self.direct:
            return self.matrix(self.x)
        return Matrix(self.taps, 1, (self.positions * self.taps,))

    def steps(self) -> list[Pair]:
        """Return (first image, number of images) of each step."""
        total = self.x[0]
        if self.direct:
            return [(0, total)]
        size = self.taps * self.positions * self.dtype.itemsize
        room = max(1, WORKSPACE // size)
        return [(first, min(room, total - first)) for first in range(0, total, room)]

    def patches_type(self, count: int) -> TensorType:
        """Return the type of the patches of ``count`` images."""
        return TensorType(self.dtype, (count, self.positions, self.taps))

    def patched(self, count: int) -> Callable[[DeviceBuffer], DeviceBuffer]:
        """Return a function from ``count`` images to their patches."""
        if self.direct:
            return lambda x: x
        extract = patches.extractor(self.runtime, self.dtype, self.images(count))
        return calls.producer(self.runtime, self.patches_type(count), extract)

    def multiplier(
        self,
        count: int,
        sizes: tuple[int, int, int],
        matrices: tuple[Matrix, Matrix, Matrix],
        ending: Ending = NOTHING,
    ) -> Callable[..., None]:
        """Return the product of (rows, inner, columns) for each of ``count`` images.

        Where the images lie behind one another as their rows do, it is one of all rows.
        """
        reach = max(self.patches_type(count).size, self.reach)
        rows, inner, columns = sizes
        a, b, c = matrices
        batch: tuple[int, ...] = (count,)
        if all(each.batch[0] == rows * each.row for each in (a, c)):
            batch, rows = (), count * rows
            a, b, c = (each._replace(batch=()) for each in matrices)
            inputs = tuple((name, each._replace(batch=())) for name, each in ending.inputs)
            ending = ending._replace(inputs=inputs)
        product = Product(self.dtype, batch, rows, inner, columns, a, b, c, reach, ending)
        return gemm.multiplier(self.runtime, product)

    def per_step(self, make: Callable[[int], Any]) -> list[tuple[int, Any]]:
        """Return (first image, what ``make`` makes for the number of images) of each step."""
        made = {count: make(count) for count in {count for _, count in self.steps()}}
        return [(first, made[count]) for first, count in self.steps()]


def _images_from(buffer: DeviceBuffer, first: int) -> DeviceBuffer:
    return buffer.view(buffer.shape, first * (buffer.type.size // buffer.shape[0]))


def forward(of: Convolution, ending: Ending) -> Callable[..., None]:
    """Return a function (x, filter, the ending's inputs, result): patches times filter."""
    of = Patched(*of)
    sizes = (of.positions, of.taps, of.outputs)
    matrices = (of.patch_matrix(), Matrix(of.outputs, 1, (0,)), of.matrix(of.y))
    steps = of.per_step(
        lambda count: (of.patched(count), of.multiplier(count, sizes, matrices, ending))
    )

    def write(x: DeviceBuffer, filter: DeviceBuffer, *rest: DeviceBuffer) -> None:
        *inputs, result = rest
        for first, (patch, multiply) in steps:
            taken = patch(_images_from(x, first))
            multiply(taken, filter, *inputs, _images_from(result, first))

    return write


def input_gradient(of: Convolution) -> Callable[..., None]:
    """Return a function (dy, filter, result): dy times the turned filter, and that folded."""
    of = Patched(*of)
    sizes = (of.positions, of.outputs, of.taps)
    matrices = (of.matrix(of.y), Matrix(1, of.outputs, (0,)), of.patch_matrix())
    runtime = of.runtime

    def step(count: int) -> Callable[..., None]:
        multiply = of.multiplier(count, sizes, matrices)
        if of.direct:
            return multiply
        make = runtime.maker(of.patches_type(count))
        fold = patches.folder(runtime, of.dtype, of.images(count))

        def run(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
            parts = make()
            multiply(dy, filter, parts)
            fold(parts, result)

        return run

    steps = of.per_step(step)

    def write(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        for first, run in steps:
            run(_images_from(dy, first), filter, _images_from(result, first))

    return write


def filter_gradient(of: Convolution) -> Callable[..., None]:
    """Return a function (x, dy, result): the patches, turned, times dy, summed over the steps.

    Channels come last first, so that all positions of all images of a step are one inner axis.
    """
    of = Patched(*of)
    runtime = of.runtime
    if of.data_format[-1] != "C":
        return _channels_last(of)
    taps, outputs = of.taps, of.outputs
    size = taps * outputs
    several = len(of.steps()) > 1

    def step(count: int) -> Any:
        product = Product(
            of.dtype,
            (),
            taps,
            count * of.positions,
            outputs,
            Matrix(1, taps, ()),
            Matrix(outputs, 1, ()),
            Matrix(outputs, 1, ()),
            max(of.patches_type(count).size, size),
            raw=several,
        )
        return of.patched(count), gemm.multiplier(runtime, product)

    steps = of.per_step(step)
    if not several:
        ((_, (patch, multiply)),) = steps
        return lambda x, dy, result: multiply(patch(x), dy, result)
    make = runtime.maker(TensorType(slices.dtype_of(of.dtype), (len(steps), size)))
    total = slices.adder(runtime, of.dtype, len(steps), size)

    def write(x: DeviceBuffer, dy: DeviceBuffer, result: DeviceBuffer) -> None:
        parts = make()
        for number, (first, (patch, multiply)) in enumerate(steps):
            taken = patch(_images_from(x, first))
            multiply(taken, _images_from(dy, first), parts.view((size,), number * size))
        total(parts, result)

    return write


def _channels_last(of: Convolution) -> Callable[..., None]:
    """Return the gradient of the filter from copies of x and dy with channels last."""
    spatial, axis = spatial_axes(of.data_format), channel_axis(of.data_format)

    def copied(shape: Shape) -> tuple[Shape, Call]:
        turned = tuple(shape[at] for at in (0, *spatial, axis))
        target = layouts.row_major(turned)
        size = TensorType(of.dtype, shape).size
        copy = moving.mover(of.runtime, of.dtype, turned, of.strides(shape), target, size)
        return turned, calls.producer(of.runtime, TensorType(of.dtype, turned), copy)

    x_shape, turn_x = copied(of.x)
    y_shape, turn_y = copied(of.y)
    last = f"N{of.data_format[2:]}C"
    write = filter_gradient(of._replace(x=x_shape, y=y_shape, data_format=last))
    return lambda x, dy, result: write(turn_x(x), turn_y(dy), result)
