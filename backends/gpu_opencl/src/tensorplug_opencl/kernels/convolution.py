"""Convolution in two dimensions: patches, then matrix products, a few images at a time.

Filters are [height, width, in, out], which is the matrix [taps, out] as it stands. The patches
of as many images as fit into ``WORKSPACE`` bytes are made at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tensorplug.ops.convolution import (
    CONV2D,
    CONV2D_BACKPROP_FILTER,
    CONV2D_BACKPROP_INPUT,
    windows_of,
)
from tensorplug.spec import TensorType
from tensorplug.tables import KernelTable
from tensorplug_opencl import layouts
from tensorplug_opencl.kernels import calls, ctypes, gemm, patches, pointwise, reduction, rows
from tensorplug_opencl.kernels.gemm import Matrix, Product
from tensorplug_opencl.kernels.patches import Images
from tensorplug_opencl.kernels.pointwise import Input

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dtypes import DType
    from tensorplug.shapes import Shape
    from tensorplug.windows import Window
    from tensorplug_opencl.backend import OpenCLBackend
    from tensorplug_opencl.buffers import DeviceBuffer
    from tensorplug_opencl.runtime import Runtime

    Call = Callable[..., DeviceBuffer]
    Pair = tuple[int, int]

kernels = KernelTable()

Attributes = dict[str, Any]

WORKSPACE: Final = 64 * 2**20  # bytes of patches that one step makes


class Convolution(NamedTuple):
    """Everything the three kernels share: types, windows, and how arrays are laid out.

    ``x`` and ``y`` are the shapes of input and output, ``filter`` the filter's, all as given.
    """

    dtype: DType
    x: Shape
    filter: Shape
    y: Shape
    windows: tuple[Window, Window]
    data_format: str

    @property
    def empty(self) -> bool:
        """Whether nothing is multiplied with anything."""
        return 0 in (*self.x, *self.filter, *self.y)

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.filter[3]

    def strides(self, shape: Shape) -> tuple[int, ...]:
        """Return distances of (image, row, column, channel) in a dense array of ``shape``."""
        own = layouts.row_major(shape)
        order = (0, 1, 2, 3) if self.data_format == "NHWC" else (0, 2, 3, 1)
        return tuple(own[axis] for axis in order)

    def images(self, count: int) -> Images:
        """Return ``count`` of the input images."""
        channels = self.filter[2]
        return Images(count, *self.windows, channels, self.strides(self.x))

    def output_matrix(self) -> Matrix:
        """Return the output as a matrix [positions, channels] for each image."""
        image, _row, column, channel = self.strides(self.y)
        return Matrix(column, channel, (image,))

    def patch_matrix(self) -> Matrix:
        """Return the patches as a matrix [positions, taps] for each image."""
        one = self.images(1)
        return Matrix(one.taps, 1, (one.positions * one.taps,))

    def steps(self) -> list[Pair]:
        """Return (first image, number of images) of each step."""
        one = self.images(1)
        elements = one.taps * max(one.positions, self.outputs)  # patches, or a filter's gradient
        room = max(1, WORKSPACE // (elements * self.dtype.itemsize))
        total = self.x[0]
        return [(first, min(room, total - first)) for first in range(0, total, room)]

    def patches_type(self, count: int) -> TensorType:
        """Return the type of the patches of ``count`` images."""
        one = self.images(1)
        return TensorType(self.dtype, (count, one.positions, one.taps))

    def reach(self, count: int) -> int:
        """Return the number of elements of the largest array that a step touches."""
        sizes = (self.x, self.filter, self.y)
        return max(self.patches_type(count).size, *(TensorType(self.dtype, s).size for s in sizes))


def _multiplier(runtime: Runtime, of: Convolution, count: int, product: Matrices) -> Any:
    return gemm.multiplier(
        runtime,
        Product(of.dtype, (count,), *product.sizes, *product.matrices, of.reach(count)),
    )


class Matrices(NamedTuple):
    """A product for each image: its (rows, inner, columns), and where A, B and C lie."""

    sizes: tuple[int, int, int]
    matrices: tuple[Matrix, Matrix, Matrix]


@kernels.prepare(CONV2D)
def conv2d(
    x: TensorType,
    filter: TensorType,
    *,
    attributes: Attributes,
    data_format: str,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Multiply the patches by the filter."""
    at = windows_of(x.shape, filter.shape, attributes)
    of = Convolution(x.dtype, x.shape, filter.shape, out.shape, at, data_format)
    runtime = backend.runtime
    if of.empty:
        return calls.constant(runtime, out)
    one = of.images(1)
    product = Matrices(
        (one.positions, one.taps, of.outputs),
        (of.patch_matrix(), Matrix(of.outputs, 1, (0,)), of.output_matrix()),
    )
    steps = of.steps()
    counts = {count for _, count in steps}
    extract = {n: patches.extractor(runtime, of.dtype, of.images(n)) for n in counts}
    multiply = {n: _multiplier(runtime, of, n, product) for n in counts}
    workspace = {n: runtime.maker(of.patches_type(n)) for n in counts}
    each_x, each_y = x.size // x.shape[0], out.size // x.shape[0]

    def write(x: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        for first, count in steps:
            taken = workspace[count]()
            extract[count](x.view(x.shape, first * each_x), taken)
            multiply[count](taken, filter, result.view(result.shape, first * each_y))

    return calls.producer(runtime, out, write)


@kernels.prepare(CONV2D_BACKPROP_INPUT)
def conv2d_backprop_input(
    dy: TensorType,
    filter: TensorType,
    *,
    attributes: Attributes,
    data_format: str,
    input_shape: Shape,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Multiply dy by the transposed filter, which gives patches, and fold them."""
    at = windows_of(input_shape, filter.shape, attributes)
    of = Convolution(dy.dtype, input_shape, filter.shape, dy.shape, at, data_format)
    runtime = backend.runtime
    if of.empty:
        return calls.constant(runtime, out)
    one = of.images(1)
    product = Matrices(
        (one.positions, of.outputs, one.taps),
        (of.output_matrix(), Matrix(1, of.outputs, (0,)), of.patch_matrix()),
    )
    steps = of.steps()
    counts = {count for _, count in steps}
    multiply = {n: _multiplier(runtime, of, n, product) for n in counts}
    fold = {n: patches.folder(runtime, of.dtype, of.images(n)) for n in counts}
    workspace = {n: runtime.maker(of.patches_type(n)) for n in counts}
    each_x, each_y = out.size // out.shape[0], dy.size // out.shape[0]

    def write(dy: DeviceBuffer, filter: DeviceBuffer, result: DeviceBuffer) -> None:
        for first, count in steps:
            parts = workspace[count]()
            multiply[count](dy.view(dy.shape, first * each_y), filter, parts)
            fold[count](parts, result.view(result.shape, first * each_x))

    return calls.producer(runtime, out, write)


@kernels.prepare(CONV2D_BACKPROP_FILTER)
def conv2d_backprop_filter(
    x: TensorType,
    dy: TensorType,
    *,
    attributes: Attributes,
    data_format: str,
    filter_shape: Shape,
    backend: OpenCLBackend,
    out: TensorType,
) -> Call:
    """Multiply each image's transposed patches by its dy, and add the products up."""
    at = windows_of(x.shape, filter_shape, attributes)
    of = Convolution(x.dtype, x.shape, filter_shape, dy.shape, at, data_format)
    runtime = backend.runtime
    if of.empty:
        return calls.constant(runtime, out)
    one = of.images(1)
    product = Matrices(
        (one.taps, one.positions, of.outputs),
        (
            Matrix(1, one.taps, (one.positions * one.taps,)),
            of.output_matrix(),
            Matrix(of.outputs, 1, (one.taps * of.outputs,)),
        ),
    )
    steps = of.steps()
    counts = {count for _, count in steps}
    extract = {n: patches.extractor(runtime, of.dtype, of.images(n)) for n in counts}
    multiply = {n: _multiplier(runtime, of, n, product) for n in counts}
    total = {n: _adder(runtime, n, out) for n in counts}
    workspace = {n: runtime.maker(of.patches_type(n)) for n in counts}
    products = {n: runtime.maker(TensorType(of.dtype, (n, *out.shape))) for n in counts}
    stored, computed = ctypes.stored(of.dtype), ctypes.computed(of.dtype)
    both = [Input(name, out, stored, computed) for name in ("a", "b")]
    add = pointwise.prepare(runtime, f"Add {of.dtype}", both, out, stored, "a + b")
    each_x, each_y = x.size // x.shape[0], dy.size // x.shape[0]

    def run(x: DeviceBuffer, dy: DeviceBuffer) -> DeviceBuffer:
        result: DeviceBuffer | None = None
        for first, count in steps:
            taken, parts = workspace[count](), products[count]()
            extract[count](x.view(x.shape, first * each_x), taken)
            multiply[count](taken, dy.view(dy.shape, first * each_y), parts)
            part = total[count](parts)
            result = part if result is None else add(result, part)
        assert result is not None  # there is at least one image
        return result

    return run


def _adder(runtime: Runtime, count: int, out: TensorType) -> Any:
    """Return the sum over the first of (count, *out.shape)."""
    over = rows.walk((count, *out.shape), (0,))
    fold = reduction.sum_fold(out.dtype)
    return rows.reducer(runtime, "Sum", over, out.dtype, out, fold)
