"""Convolution in two and three dimensions: patches, then matrix products, some images at a time.

Filters are [taps along each axis, in, out], which is the matrix [taps, out] as it stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.errors import KernelRefusedError
from tensorplug.ops import convolution as plane
from tensorplug.ops import volumes
from tensorplug.ops.correlation import windows_of
from tensorplug.ops.fused import FUSED_CONV2D
from tensorplug.spec import TensorType
from tensorplug.tables import KernelTable
from tensorplug.windows import channel_axis, spatial_axes
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, gemm, moving, patches, slices
from tensorplug_opencl.kernels.endings import fused
from tensorplug_opencl.kernels.gemm import NOTHING, Ending, Matrix, Product
from tensorplug_opencl.kernels.patches import Images

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.ops.correlation import Family
    from tensorplug.shapes import Shape
    from tensorplug.windows import Windows
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime

    Call = Callable[..., DeviceBuffer]
    Pair = tuple[int, int]

kernels = KernelTable()

Attributes = dict[str, Any]

# Bytes of patches that one step makes, by whether the device is a CPU: there they should still
# be in the cache when they are multiplied.
WORKSPACE: Final = {True: 8 * 2**20, False: 64 * 2**20}


class Convolution(NamedTuple):
    """Everything the three kernels share: types, windows, and how arrays are laid out.

    ``x``, ``filter`` and ``y`` are the shapes of input, filter and output, all as given.
    """

    runtime: Runtime
    dtype: DType
    x: Shape
    filter: Shape
    y: Shape
    windows: Windows
    data_format: str

    @classmethod
    def of(
        cls,
        backend: OpenCLBackend,
        dtype: DType,
        shapes: tuple[Shape, Shape, Shape],
        attributes: Attributes,
    ) -> Convolution:
        """Return the convolution of x and filter to y, whose ``shapes`` are given."""
        windows = windows_of(shapes[0], shapes[1], attributes)
        return cls(backend.runtime, dtype, *shapes, windows, attributes["data_format"])

    @property
    def empty(self) -> bool:
        """Whether nothing is multiplied with anything."""
        return 0 in (*self.x, *self.filter, *self.y)

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.filter[-1]

    def strides(self, shape: Shape) -> tuple[int, ...]:
        """Return distances of (image, spatial axes, channel) in a dense array of ``shape``."""
        own = layouts.row_major(shape)
        order = (0, *spatial_axes(self.data_format), channel_axis(self.data_format))
        return tuple(own[axis] for axis in order)

    def images(self, count: int) -> Images:
        """Return ``count`` of the input images."""
        return Images(count, self.windows, self.filter[-2], self.strides(self.x))

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
        one = self.images(1)
        return Matrix(one.taps, 1, (one.positions * one.taps,))

    def steps(self) -> list[Pair]:
        """Return (first image, number of images) of each step."""
        total = self.x[0]
        if self.direct:
            return [(0, total)]
        one = self.images(1)
        size = one.taps * one.positions * self.dtype.itemsize
        room = max(1, WORKSPACE[self.runtime.is_cpu] // size)
        return [(first, min(room, total - first)) for first in range(0, total, room)]

    def patches_type(self, count: int) -> TensorType:
        """Return the type of the patches of ``count`` images."""
        one = self.images(1)
        return TensorType(self.dtype, (count, one.positions, one.taps))

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
        shapes = (self.x, self.filter, self.y)
        reach = max(
            self.patches_type(count).size, *(TensorType(self.dtype, each).size for each in shapes)
        )
        product = Product(self.dtype, (count,), *sizes, *matrices, reach, ending)
        rows = sizes[0]
        if all(each.batch[0] == rows * each.row for each in (product.a, product.c)):
            a, c = (each._replace(batch=()) for each in (product.a, product.c))
            inputs = tuple((name, each._replace(batch=())) for name, each in ending.inputs)
            product = product._replace(
                batch=(),
                rows=count * rows,
                a=a,
                b=product.b._replace(batch=()),
                c=c,
                ending=ending._replace(inputs=inputs),
            )
        return gemm.multiplier(self.runtime, product)

    def per_step(self, make: Callable[[int], Any]) -> list[tuple[int, Any]]:
        """Return (first image, what ``make`` makes for the number of images) of each step."""
        made = {count: make(count) for count in {count for _, count in self.steps()}}
        return [(first, made[count]) for first, count in self.steps()]


def _images_from(buffer: DeviceBuffer, first: int) -> DeviceBuffer:
    return buffer.view(buffer.shape, first * (buffer.type.size // buffer.shape[0]))


def _forward(of: Convolution, ending: Ending) -> Callable[..., None]:
    """Return a function (x, filter, the ending's inputs, result): patches times filter."""
    one = of.images(1)
    sizes = (one.positions, one.taps, of.outputs)
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


def _enter(family: Family) -> None:
    @kernels.prepare(family.forward)
    def forward(
        x: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        of = Convolution.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
        if of.empty:
            return calls.constant(backend.runtime, out)
        return calls.producer(backend.runtime, out, _forward(of, NOTHING))

    @kernels.prepare(family.backprop_input)
    def backprop_input(
        dy: TensorType,
        filter: TensorType,
        *,
        attributes: Attributes,
        input_shape: Shape,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        shapes = (input_shape, filter.shape, dy.shape)
        of = Convolution.of(backend, dy.dtype, shapes, attributes)
        if of.empty:
            return calls.constant(backend.runtime, out)
        return calls.producer(backend.runtime, out, _spread(of))

    @kernels.prepare(family.backprop_filter)
    def backprop_filter(
        x: TensorType,
        dy: TensorType,
        *,
        attributes: Attributes,
        filter_shape: Shape,
        backend: OpenCLBackend,
        out: TensorType,
    ) -> Call:
        shapes = (x.shape, filter_shape, dy.shape)
        of = Convolution.of(backend, x.dtype, shapes, attributes)
        if of.empty:
            return calls.constant(backend.runtime, out)
        return calls.producer(backend.runtime, out, _filter_gradient(of))


def _spread(of: Convolution) -> Callable[..., None]:
    """Return a function (dy, filter, result): dy times the turned filter, and that folded."""
    one = of.images(1)
    sizes = (one.positions, of.outputs, one.taps)
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


def _filter_gradient(of: Convolution) -> Callable[..., None]:
    """Return a function (x, dy, result): the patches, turned, times dy, summed over the steps.

    Channels come last first, so that all positions of all images of a step are one inner axis.
    """
    runtime = of.runtime
    if of.data_format[-1] != "C":
        return _channels_last(of)
    one = of.images(1)
    taps, outputs = one.taps, of.outputs
    size = taps * outputs

    several = len(of.steps()) > 1

    def step(count: int) -> Any:
        product = Product(
            of.dtype,
            (),
            taps,
            count * one.positions,
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
    write = _filter_gradient(of._replace(x=x_shape, y=y_shape, data_format=last))
    return lambda x, dy, result: write(turn_x(x), turn_y(dy), result)


for _each in (plane.FAMILY, volumes.FAMILY):
    _enter(_each)


@kernels.prepare(FUSED_CONV2D)
def fused_conv2d(
    x: TensorType,
    filter: TensorType,
    bias: TensorType | None,
    prelu_activation_weights: TensorType | None,
    *,
    attributes: Attributes,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Convolve, and end each element before it is stored."""
    of = Convolution.of(backend, x.dtype, (x.shape, filter.shape, out.shape), attributes)
    if of.empty:
        raise KernelRefusedError("there is nothing to convolve")
    how = fused(out.dtype, out.rank, bias, prelu_activation_weights, attributes)
    channel = channel_axis(of.data_format)

    def view(steps: layouts.Strides) -> Matrix:
        if any(step for axis, step in enumerate(steps) if axis != channel):
            raise KernelRefusedError("the bias or the slopes differ between positions")
        return Matrix(0, steps[channel], (0,))

    write = _forward(of, how.ending(out.shape, view))
    return calls.producer(backend.runtime, out, how.launched(write))
