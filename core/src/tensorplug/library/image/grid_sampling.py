"""Images read at the places of a grid."""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

import tensorplug as tp
from tensorplug.errors import ShapeError
from tensorplug.plugin import arguments, kinds
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from tensorplug.plugin import Shape, Tensor
    from tensorplug.typing import ArrayLike

__all__ = ["grid_sample"]

Method = Literal["nearest", "linear", "cubic"]
Padding = Literal["zeros", "border", "reflection"]
_CUBIC: Final = -0.75  # Keys' coefficient, that of PyTorch and ONNX


class _Tap(NamedTuple):
    """An element of one axis.

    ``number``: its index, which is never out of range. ``inside``: whether it exists (None:
    always).
    """

    number: Tensor
    inside: Tensor | None
    weight: Tensor


def grid_sample(
    images: ArrayLike,
    grid: ArrayLike,
    method: Method = "linear",
    padding: Padding = "zeros",
    *,
    align_corners: bool = False,
) -> Tensor:
    """Return images sampled at the places of a grid.

    A place holds one coordinate per axis from -1 to 1, the last axis first: (x, y) for [batch,
    height, width, channels]. -1 and 1 are the edges of the image. On an axis of n elements, g is
    the place ``((g + 1) * n - 1) / 2``, counted from the centre of the first element.

    Args:
        images: ``[batch, *sizes, channels]``: sequences, images or volumes. Only "nearest" keeps
            integers and booleans; the other methods turn them into float32.
        grid: ``[batch, *places, d]``, where d is the number of ``sizes``; real numbers.
        method: "nearest" (halves to the even element), "linear" (in each direction) or "cubic"
            (with Keys' coefficient -0.75).
        padding: what lies outside: "zeros"; "border", the nearest element; or "reflection", the
            image mirrored at its edges.
        align_corners: whether -1 and 1 are the centres of the first and the last element: g is
            the place ``(g + 1) / 2 * (n - 1)``.

    Returns:
        ``[batch, *places, channels]``. It is differentiable in the images and, unless the method
        is "nearest", in the grid. At an element's centre, the slope of "linear" is that towards
        the next element. NaN in the grid gives NaN if the dtype can hold it.

    Raises:
        ShapeError: the shapes do not fit, or there are places but no elements.
        ArgumentError: an unknown method or padding.
        DTypeError: the images hold strings, or the grid is not real.

    Source: ONNX's and PyTorch's GridSample, with channels last.

    Examples:
        >>> x = tp.asarray([[[2.0], [4.0]]])  # a sequence of two elements
        >>> tp.image.grid_sample(x, [[[-0.5], [0.0], [0.5]]])
        Tensor([[[2.],
                 [3.],
                 [4.]]], dtype=float32, device='cpu')
        >>> tp.image.grid_sample(x, [[[0.9], [3.0]]], padding="border")
        Tensor([[[4.],
                 [4.]]], dtype=float32, device='cpu')

    """
    arguments.choice(method, get_args(Method), "grid_sample: method")
    arguments.choice(padding, get_args(Padding), "grid_sample: padding")
    arguments.flag(align_corners, "grid_sample: align_corners")
    what = "grid_sample: images"
    x = kinds.numbers(images, what) if method == "nearest" else kinds.inexact(images, what)
    at = kinds.floating(grid, "grid_sample: grid")
    _check_shapes(x, at)
    sizes, lead = x.shape[1:-1], at.shape[:-1]
    wide = kinds.widen_half(at)
    taps = []
    for axis, length in enumerate(sizes):
        coordinate = wide[..., len(sizes) - 1 - axis]
        position = _unscale(coordinate, length, align_corners=align_corners)
        taps.append(_list_taps(position, length, method, padding, align_corners=align_corners))
    values = kinds.widen_half(x)
    return tp.astype(_sum_up(values, taps, _number_first(x.shape, lead)), x.dtype)


def _check_shapes(x: Tensor, grid: Tensor) -> None:
    if x.ndim < 3:
        raise ShapeError(
            f"grid_sample: images are {x.type}, but must have shape [batch, *sizes, channels]"
        )
    depth = x.ndim - 2
    if grid.ndim < 2 or grid.shape[0] != x.shape[0] or grid.shape[-1] != depth:
        raise ShapeError(
            f"grid_sample: grid is {grid.type}, but must have shape [{x.shape[0]}, *places, "
            f"{depth}] for images of {x.type}"
        )
    if prod(grid.shape[:-1]) and not prod(x.shape[1:-1]):
        raise ShapeError(f"grid_sample: images are {x.type}: there is nothing to read")


def _unscale(coordinate: Tensor, length: int, *, align_corners: bool) -> Tensor:
    """Return places counted in elements."""
    if align_corners:
        return (coordinate + 1) * ((length - 1) / 2)
    return ((coordinate + 1) * length - 1) * 0.5


def _list_taps(
    at: Tensor, length: int, method: str, padding: str, *, align_corners: bool
) -> list[_Tap]:
    """Return the elements of one axis around each place."""
    if method == "cubic":
        return _list_cubic(at, length, padding, align_corners=align_corners)
    if padding == "zeros":
        at = _clip(at, -1, length)
    else:
        if padding == "reflection":
            at = _reflect(at, length, align_corners=align_corners)
        at = _clip(at, 0, length - 1)
    if method == "nearest":
        return [_make_tap(tp.round(at), at * 0 + 1, length, padding)]  # NaN for NaN
    below = tp.floor(at)
    part = at - below
    return [
        _make_tap(below, 1 - part, length, padding),
        _make_tap(below + 1, part, length, padding),
    ]


def _list_cubic(at: Tensor, length: int, padding: str, *, align_corners: bool) -> list[_Tap]:
    # Beyond two elements outside the edges, nothing changes. A reflected axis repeats itself.
    if padding == "reflection":
        low, span = _span(length, align_corners=align_corners)
        at = low + _wrap(at - low, 2 * span)
    else:
        at = _clip(at, -2, length + 1)
    below = tp.floor(at)
    taps = []
    for step in range(-1, 3):
        pixel = below + step
        weight = _weigh_cubic(at - pixel if step < 1 else pixel - at, outer=step in (-1, 2))
        if padding == "reflection":
            pixel = _reflect(pixel, length, align_corners=align_corners)
        taps.append(_make_tap(pixel, weight, length, padding))
    return taps


def _weigh_cubic(d: Tensor, *, outer: bool) -> Tensor:
    """Return Keys' kernel at distances d: from 1 to 2 if ``outer``, else from 0 to 1."""
    a = _CUBIC
    if outer:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _span(length: int, *, align_corners: bool) -> tuple[float, float]:
    """Return the first edge at which a reflected axis turns, and the distance to the other."""
    return (0.0, length - 1.0) if align_corners else (-0.5, float(length))


def _reflect(at: Tensor, length: int, *, align_corners: bool) -> Tensor:
    """Return places mirrored at the edges as often as it takes."""
    low, span = _span(length, align_corners=align_corners)
    return low + span - tp.abs(_wrap(at - low, 2 * span) - span)


def _wrap(at: Tensor, period: float) -> Tensor:
    """Return ``at`` modulo the period; 0 if that is 0."""
    return at - period * tp.floor(at * (1 / period)) if period else at * 0


def _clip(at: Tensor, low: float, high: float) -> Tensor:
    """Return places moved into the range; NaN remains."""
    return tp.where(tp.less(at, low), low, tp.where(tp.greater(at, high), high, at))


def _make_tap(pixel: Tensor, weight: Tensor, length: int, padding: str) -> _Tap:
    last = length - 1
    inside = None
    if padding == "zeros":
        inside = tp.logical_and(tp.greater_equal(pixel, 0), tp.less_equal(pixel, last))
    # NaN fails all comparisons, so that its index is 0.
    index = tp.where(tp.greater(pixel, 0), tp.where(tp.less(pixel, last), pixel, last), 0)
    return _Tap(tp.astype(index, dt.int32), inside, weight)


def _number_first(images: Shape, lead: Shape) -> Tensor:
    """Return the number of each image's first element; it broadcasts to ``lead``."""
    dtype = dt.int32 if prod(images[:-1]) < 1 << 31 else dt.int64
    count = prod(images[1:-1])
    first = tp.arange(images[0], dtype=dtype) * count
    return tp.reshape(first, (images[0], *(1,) * (len(lead) - 1)))


def _sum_up(x: Tensor, taps: list[list[_Tap]], first: Tensor) -> Tensor:
    """Return the weighted sum over all combinations of one tap of each axis."""
    strides = [prod(x.shape[axis + 2 : -1]) for axis in range(x.ndim - 2)]
    flat = tp.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
    zero = tp.full((), 0, dtype=x.dtype)
    terms = []
    for chosen in product(*taps):
        indices = [tp.astype(tap.number, first.dtype) for tap in chosen]
        number = first
        for place, stride in zip(indices, strides, strict=True):
            number = number + place * stride
        value = tp.gather(flat, number)
        inside = [tap.inside for tap in chosen if tap.inside is not None]
        if inside:
            value = tp.where(tp.expand_dims(reduce(tp.logical_and, inside), axis=-1), value, zero)
        if x.dtype in dt.INEXACT:  # others are read by "nearest", whose weights are 1
            weight = reduce(tp.multiply, [tap.weight for tap in chosen])
            value = value * tp.expand_dims(tp.astype(weight, dt.real_part(x.dtype)), axis=-1)
        terms.append(value)
    return reduce(tp.add, terms)
