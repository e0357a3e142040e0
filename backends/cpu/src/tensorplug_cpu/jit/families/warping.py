"""Projected images in one pass: points in float64, then the pixels around them.

All is computed in the order of ``kernels/image/warping.py``, with the same roundings and bits.

By hand, for the form took 1.0 to 1.4 times as long with 1, and with 8 or more channels, and 3 to
10 times with 3 or 4: its lanes are channels.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tensorplug.algorithms import fill_modes
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.functions import Function
from tensorplug_cpu.jit.codegen.lanes import Lanes
from tensorplug_cpu.jit.codegen.settings import is_worthwhile
from tensorplug_cpu.jit.loops.addresses import address
from tensorplug_cpu.memory.pool import empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.plugin import TensorType
    from tensorplug_cpu.arrays import Array

    Value = Any  # of llvmlite


_SHARED: Final = 1 << 16  # elements of a result that are worth threads
_LANES: Final = 8  # points at a time
_FEW: Final = 4  # channels up to which vectors hold several pixels
_BYTES: Final = 64  # of a vector of channels
_PERIODIC: Final = ("reflect", "wrap")

_POINTERS: Final = ("image", "transforms", "fill", "out")
_INTEGERS: Final = (
    *("height", "width", "channels"),
    *("rows", "columns"),  # of each result
    *("between", "start", "stop"),  # elements from a transform to the next; rows of all results
)


def warper(
    image: TensorType, out: TensorType, interpolation: str, fill_mode: str
) -> Callable[[Array, Array, Array], Array] | None:
    """Return what projects images as ``Transform`` says.

    It takes images ``[batch, height, width, channels]``, transforms ``[1 or batch, 8]`` in
    float64, and what stands for pixels outside, an array without dimensions of the images' dtype.
    The result is None if NumPy is to do it: for small images, and for dtypes other than float32
    and float64.
    """
    dtype, shape = out.dtype.numpy, out.shape
    batch, height, width, channels = image.shape
    if dtype not in (np.float32, np.float64) or not is_worthwhile(out.size):
        return None
    if not image.size or (fill_mode in _PERIODIC and 1 in (height, width)):
        return None
    few = channels if channels <= _FEW else 0

    def run(images: Array, transforms: Array, fill: Array) -> Array:
        result = empty(shape, dtype)
        function = _function(dtype.name, interpolation, fill_mode, few)
        arrays = (*map(np.ascontiguousarray, (images, transforms, fill)), result)
        pointers = [address(array) for array in arrays]
        between = 8 if len(transforms) > 1 else 0
        sizes = (height, width, channels, *shape[1:3], between)
        parallel.in_parts(
            lambda start, stop: function(*pointers, *sizes, start, stop),
            batch * shape[1],
            shared=out.size >= _SHARED,
        )
        return result

    return run


def _floor(x: Lanes) -> Lanes:
    return _Floats(x.f, x.f.intrinsic("floor", x.value))


def _where(condition: Value, then: float | Lanes, otherwise: float | Lanes) -> Lanes:
    one = then if isinstance(then, Lanes) else otherwise
    assert isinstance(one, Lanes)
    return one.chosen(condition, then, otherwise)


_Floats: Final = partial(Lanes, dtype=np.float64)
_BY_LLVM: Final = fill_modes.Arithmetic(_floor, _where)


class _Corner(NamedTuple):
    """A pixel to read: the offset of its first channel in the image, 0 if it is not inside."""

    offset: Value
    inside: Value


class _Pixels(NamedTuple):
    """What is known of one pixel of a result, or of several side by side."""

    source: Value  # the image
    target: Value  # the row of the result
    fill: Value
    known: Value  # whether the point is finite
    corners: list[_Corner]  # 1, or 4: upper left, upper right, lower left, lower right
    weights: list[Value]  # none, or those of the lower ones and the right ones


@cache
def _function(dtype: str, interpolation: str, fill_mode: str, few: int) -> Callable[..., None]:
    """Return the function that makes rows ``start`` to ``stop`` of all results.

    ``few``: the channels, where vectors hold several pixels; else 0.
    """
    name = f"warp_{dtype}_{interpolation}_{fill_mode}_{few}"
    f = Function(name, dtype, _POINTERS, _INTEGERS)
    lanes = _LANES if few else 1
    fill = f.load(f["fill"], 0)
    size = f.multiply(f.multiply(f["height"], f["width"]), f["channels"])
    length = f.multiply(f["columns"], f["channels"])
    height, width = (_float(f, f[name], lanes) for name in ("height", "width"))
    with f.loop(f["start"], f["stop"]) as number:
        image, row = f.builder.sdiv(number, f["rows"]), f.builder.srem(number, f["rows"])
        source = f.pointer_to(f["image"], f.multiply(image, size))
        target = f.pointer_to(f["out"], f.multiply(number, length))
        terms = _terms(f, f.multiply(image, f["between"]), lanes)
        with f.loop(0, f["columns"], lanes) as column:
            x, y, known = _project(f, terms, row, column, lanes)
            x, y = (
                fill_modes.mapped(_where(known, point, 0.0), along, fill_mode, _BY_LLVM)
                for point, along in ((x, width), (y, height))
            )
            corners, weights = _around(f, (y, x), (height, width), interpolation)
            pixels = _Pixels(source, target, fill, known, corners, weights)
            to = f.multiply(column, f["channels"])
            if few:
                _store_pixels(f, few, pixels, to, length)
            else:
                _store_channels(f, pixels, to)
    return f.compiled()


def _terms(f: Function, first: Value, lanes: int) -> list[Lanes]:
    """Return the eight numbers of a transform, each in every lane."""
    wide = f.scalar("float64")
    return [
        _Floats(f, f.spread(f.load(f["transforms"], f.add(first, at), 1, wide), lanes))
        for at in range(8)
    ]


def _around(
    f: Function, point: tuple[Lanes, Lanes], size: tuple[Lanes, Lanes], interpolation: str
) -> tuple[list[_Corner], list[Value]]:
    """Return the pixels around points in images of a size, and their weights."""
    y, x = point
    if interpolation == "nearest":
        return [_corner(f, (_rounded(y), _rounded(x)), size)], []
    top, left = _floor(y), _floor(x)
    corners = [_corner(f, (top + down, left + right), size) for down in (0, 1) for right in (0, 1)]
    return corners, [_narrow(f, y - top), _narrow(f, x - left)]


def _project(
    f: Function, terms: list[Lanes], row: Value, column: Value, lanes: int
) -> tuple[Lanes, Lanes, Value]:
    """Return the points x and y at which a transform reads, and whether they are finite."""
    a0, a1, a2, b0, b1, b2, c0, c1 = terms
    rows = _float(f, row, lanes)
    columns = _float(f, column, lanes)
    if lanes > 1:
        columns += _Floats(f, f.builder.sitofp(f.lane_numbers(lanes), columns.value.type))
    x = a0 * columns + a1 * rows + a2
    y = b0 * columns + b1 * rows + b2
    scale = c0 * columns + c1 * rows + 1  # of an affine transform, 1: it changes no bit
    x, y = x / scale, y / scale
    finite = [_Floats(f, f.intrinsic("fabs", point.value)) < float("inf") for point in (x, y)]
    return x, y, f.builder.and_(*finite)


def _rounded(at: Lanes) -> Lanes:
    below = _floor(at)
    return _where(at - below >= 0.5, below + 1, below)


def _corner(f: Function, point: tuple[Lanes, Lanes], size: tuple[Lanes, Lanes]) -> _Corner:
    (row, column), (height, width) = point, size
    build, lanes = f.builder, getattr(row.value.type, "count", 1)
    inside = build.and_(
        build.and_(row >= 0, row < height), build.and_(column >= 0, column < width)
    )
    whole = f.vector(lanes, f.integer)
    pixel = build.fptosi(_where(inside, row * width + column, 0.0).value, whole)
    return _Corner(f.multiply(pixel, f.spread(f["channels"], lanes)), inside)


def _store_pixels(f: Function, channels: int, pixels: _Pixels, to: Value, stop: Value) -> None:
    """Write as many vectors as pixels have channels; each holds several pixels."""
    integers = f.lane_numbers(_LANES).type
    for vector in range(channels):
        elements = range(vector * _LANES, (vector + 1) * _LANES)
        pixel = [element // channels for element in elements]
        channel = f.builder.urem(
            f.add(f.lane_numbers(_LANES), f.number(vector * _LANES, integers)),
            f.number(channels, integers),
        )
        nothing = f.spread(pixels.fill, _LANES)
        values = [
            f.gather_at(
                f.pick(corner.inside, pixel),
                nothing,
                pixels.source,
                f.add(f.pick(corner.offset, pixel), channel),
            )
            for corner in pixels.corners
        ]
        weights = [f.pick(weight, pixel) for weight in pixels.weights]
        result = f.builder.select(f.pick(pixels.known, pixel), _blend(f, values, weights), nothing)
        first = f.add(to, vector * _LANES)
        f.store_where(f.mask(first, stop, _LANES), result, pixels.target, first)


def _store_channels(f: Function, pixel: _Pixels, to: Value) -> None:
    """Write one pixel, vector by vector of its channels."""
    lanes = _BYTES // f.itemsize
    nothing = f.spread(pixel.fill, lanes)
    weights = [f.spread(weight, lanes) for weight in pixel.weights]
    with f.loop(0, f["channels"], lanes) as channel:
        mask = f.mask(channel, f["channels"], lanes)
        values = [
            f.builder.select(
                corner.inside,
                f.load_where(mask, nothing, pixel.source, f.add(corner.offset, channel)),
                nothing,
            )
            for corner in pixel.corners
        ]
        result = f.builder.select(pixel.known, _blend(f, values, weights), nothing)
        f.store_where(mask, result, pixel.target, f.add(to, channel))


def _blend(f: Function, values: list[Value], weights: list[Value]) -> Value:
    """Return the one value, or that between the four corners."""
    if not weights:
        return values[0]
    build = f.builder
    down, across = weights

    def between(start: Value, end: Value, weight: Value) -> Value:
        rest = build.fsub(f.number(1.0, weight.type), weight)
        return build.fadd(build.fmul(start, rest), build.fmul(end, weight))

    a, b, c, d = values
    return between(between(a, b, across), between(c, d, across), down)


def _float(f: Function, value: Value, lanes: int) -> Any:
    """Return an integer as a number in each lane."""
    return _Floats(f, f.spread(f.builder.sitofp(value, f.scalar("float64")), lanes))


def _narrow(f: Function, x: Lanes) -> Value:
    """Return numbers as those of the images."""
    type_ = f.vector(getattr(x.value.type, "count", 1))
    return x.value if x.value.type == type_ else f.builder.fptrunc(x.value, type_)
