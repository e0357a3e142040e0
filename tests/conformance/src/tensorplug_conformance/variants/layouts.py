"""Layouts: how the elements of an input lie on a device whose movement kernels return views.

Each layout is made there, by the kernels with which a program makes it. A backend that copies
has dense inputs in all of them, at other places in memory.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import as_tensor, dispatch, specs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plugin import Tensor
    from tensorplug_conformance.case import Array, Layout


_Shape = tuple[int, ...]
# Of high rank, a tensor that is larger along each axis has too many elements.
_HIGH: Final = 8
_MOST_AROUND: Final = 1 << 30
_OF_LARGER: Final = ("sliced", "end sliced", "slice of slice", "stepped", "by two", "by three")


def laid_out(array: Array, layout: Layout) -> Tensor:
    """Return ``array`` on the current device, in a layout; dense if it cannot lie so."""
    if layout == "dense" or layout not in layouts_of(array):
        return _dense(array)
    return _LAYOUTS[layout][1](array)


def layouts_of(array: Array) -> tuple[Layout, ...]:
    """Return the layouts that ``array`` can have on a device, ``dense`` among them."""
    layouts = _layouts_of_shape(array.shape)
    repeated = tuple(name for name, axis in _REPEATED if _repeats(array, axis))
    return (*layouts, *repeated)


@cache
def _layouts_of_shape(shape: _Shape) -> tuple[Layout, ...]:
    names = (name for name, (fits, _) in _LAYOUTS.items() if fits(shape))
    if math.prod(3 * n + 5 for n in shape) > _MOST_AROUND and len(shape) > _HIGH:
        return tuple(name for name in names if name not in _OF_LARGER)
    return tuple(names)


def packed(arrays: Sequence[Array]) -> list[Tensor]:
    """Return arrays of one dtype as views of one buffer, one behind the other, on the device."""
    around = as_tensor(np.concatenate([array.reshape(-1) for array in arrays]))
    items = []
    begin = 0
    for array in arrays:
        items.append(_part(around, begin, array.shape))
        begin += array.size
    return items


def overlapping(arrays: Sequence[Array]) -> list[Tensor]:
    """Return arrays as parts or views of one buffer.

    They are the first one with fewer elements or in other shapes, transposed or reversed; or each
    begins one element later than the one before, or one earlier.

    Raises:
        ValueError: they are none of these.

    """
    first, *others = arrays
    if all(_is_beginning(array, first) for array in others):
        around = as_tensor(first.reshape(-1))
        return [_part(around, 0, array.shape) for array in arrays]
    one = _dense(first)
    if all(_equal(array, first.T) for array in others):
        perm = tuple(range(first.ndim))[::-1]
        return [one, *(dispatch(specs.TRANSPOSE, one, perm=perm) for _ in others)]
    if all(_equal(array, np.flip(first)) for array in others):
        dims = tuple(range(first.ndim))
        return [one, *(dispatch(specs.REVERSE, one, dims=dims) for _ in others)]
    if _equal(others[0], np.roll(first.reshape(-1), 1).reshape(first.shape)):
        return overlapping(arrays[::-1])[::-1]
    if not _equal(others[0], np.roll(first.reshape(-1), -1).reshape(first.shape)):
        raise ValueError("the arrays are no parts of one")
    tail = [array.reshape(-1)[-1:] for array in others]
    around = as_tensor(np.concatenate([first.reshape(-1), *tail]))
    return [_part(around, begin, array.shape) for begin, array in enumerate(arrays)]


def _equal(x: Array, other: Array) -> bool:
    return x.shape == other.shape and x.tobytes() == other.tobytes()


def _is_beginning(x: Array, whole: Array) -> bool:
    return x.size <= whole.size and x.tobytes() == whole.reshape(-1)[: x.size].tobytes()


def view(tensor: Tensor) -> Tensor:
    """Return all of a tensor as another one: of the same buffer, if the backend has views."""
    if not tensor.ndim:
        return _shaped(_shaped(tensor, (1,)), ())
    return _slice(tensor, (0,) * tensor.ndim, tensor.shape)


def _part(around: Tensor, begin: int, shape: _Shape) -> Tensor:
    return _shaped(_slice(around, (begin,), (math.prod(shape),)), shape)


# The kernels.


def _dense(array: Array) -> Tensor:
    return as_tensor(np.array(array, order="C"))


def _slice(x: Tensor, begin: _Shape, size: _Shape) -> Tensor:
    return dispatch(specs.SLICE, x, begin=begin, size=size)


def _shaped(x: Tensor, shape: _Shape) -> Tensor:
    return dispatch(specs.RESHAPE, x, shape=shape)


def _sliced(array: Array, before: Sequence[int], after: Sequence[int]) -> Tensor:
    """Return a slice of a larger tensor, with so many more elements on each side of each axis."""
    sizes = zip(before, array.shape, after, strict=True)
    padded = np.zeros([sum(three) for three in sizes], dtype=array.dtype)
    padded[tuple(slice(b, b + n) for b, n in zip(before, array.shape, strict=True))] = array
    return _slice(as_tensor(padded), tuple(before), array.shape)


def _along(rank: int, axis: int, count: int) -> list[int]:
    """Return ``count`` for one axis, 0 for the others."""
    items = [0] * rank
    items[axis] = count
    return items


def _rows(array: Array) -> Tensor:
    return _sliced(array, _along(array.ndim, 0, 1), _along(array.ndim, 0, 2))


def _planes(array: Array) -> Tensor:
    return _sliced(array, _along(array.ndim, 1, 1), _along(array.ndim, 1, 2))


def _columns(array: Array) -> Tensor:
    return _sliced(array, _along(array.ndim, -1, 1), _along(array.ndim, -1, 2))


def _inner(array: Array) -> Tensor:
    return _sliced(array, [1] * array.ndim, [2] * array.ndim)


def _end(array: Array) -> Tensor:
    return _sliced(array, [3] * array.ndim, [0] * array.ndim)


def _slice_of_slice(array: Array) -> Tensor:
    rank = array.ndim
    padded = np.zeros([n + 5 for n in array.shape], dtype=array.dtype)
    padded[tuple(slice(3, n + 3) for n in array.shape)] = array
    outer = _slice(as_tensor(padded), (1,) * rank, tuple(n + 3 for n in array.shape))
    return _slice(outer, (2,) * rank, array.shape)


def _row(array: Array) -> Tensor:
    """Return one row of a tensor with one axis more."""
    around = np.zeros((3, *array.shape), dtype=array.dtype)
    around[1] = array
    begin = (1, *(0,) * array.ndim)
    return _shaped(_slice(as_tensor(around), begin, (1, *array.shape)), array.shape)


def _column(array: Array) -> Tensor:
    """Return every third element of a tensor with one axis more."""
    around = np.zeros((*array.shape, 3), dtype=array.dtype)
    around[..., 1] = array
    begin = (*(0,) * array.ndim, 1)
    return _shaped(_slice(as_tensor(around), begin, (*array.shape, 1)), array.shape)


def _permuted(order: Callable[[int], _Shape]) -> Callable[[Array], Tensor]:
    """Return what transposes a tensor into the array; ``order`` gives the axes for a rank."""

    def make(array: Array) -> Tensor:
        perm = order(array.ndim)
        back = np.argsort(perm)
        return dispatch(specs.TRANSPOSE, _dense(array.transpose(back)), perm=perm)

    return make


def _stepped(step: int) -> Callable[[Array], Tensor]:
    """Return what takes every so many elements of a larger tensor, backwards if negative."""

    def make(array: Array) -> Tensor:
        by, rank = abs(step), array.ndim
        larger = np.zeros([by * n + 1 for n in array.shape], dtype=array.dtype)
        if step < 0:
            begin = tuple(by * n - 1 for n in array.shape)
            end = tuple(by - 2 if by > 1 else -by * n - 2 for n in array.shape)
        else:
            begin, end = (1,) * rank, tuple(by * n + 1 for n in array.shape)
        larger[tuple(slice(first, None, step) for first in begin)] = array
        return dispatch(
            specs.STRIDED_SLICE, as_tensor(larger), begin=begin, end=end, strides=(step,) * rank
        )

    return make


def _reversed(array: Array) -> Tensor:
    """Return the last axis reversed by the kernel for that."""
    return dispatch(specs.REVERSE, _dense(array[..., ::-1]), dims=(array.ndim - 1,))


def _reshaped_transpose(array: Array) -> Tensor:
    rows = _divisor(array.size)
    turned = _dense(array.reshape(rows, -1).T)
    return _shaped(dispatch(specs.TRANSPOSE, turned, perm=(1, 0)), array.shape)


def _reshaped_slice(array: Array) -> Tensor:
    return _shaped(_sliced(array.reshape(-1), [1], [2]), array.shape)


def _expanded(array: Array) -> Tensor:
    """Return columns of a larger tensor that went through a shape with one axis more."""
    wider = dispatch(specs.EXPAND_DIMS, _columns(array), dim=0)
    return _shaped(wider, array.shape)


def _joined(array: Array) -> Tensor:
    """Return the result of an earlier call: two parts concatenated."""
    parts = [_dense(array[:1]), _dense(array[1:])]
    return dispatch(specs.CONCAT, parts, axis=0)


def _broadcast(axis: int) -> Callable[[Array], Tensor]:
    """Return what stretches one element along an axis; with all equal, one element at all."""

    def make(array: Array) -> Tensor:
        one = np.take(array, [0], axis)
        return dispatch(specs.BROADCAST_TO, _dense(one), shape=array.shape)

    return make


def _repeats(array: Array, axis: int) -> bool:
    """Return whether all elements along an axis have the same bits."""
    if array.ndim < (3 if axis == 1 else 1) or array.size < 2 or array.dtype.kind == "T":
        return False
    if array.shape[axis] < 2:
        return False
    turned = np.moveaxis(array, axis, 0)
    if turned[0].tobytes() != turned[-1].tobytes():
        return False  # the usual answer, at once
    return bool(turned.tobytes() == turned[0].tobytes() * array.shape[axis])


@cache
def _divisor(size: int) -> int:
    """Return the largest divisor of ``size`` up to its root."""
    return max((n for n in range(1, math.isqrt(max(size, 1)) + 1) if size % n == 0), default=1)


# Which shapes can lie so, differently from a dense tensor.


def _anything(_shape: _Shape) -> bool:
    return True


def _has_axes(shape: _Shape) -> bool:
    return len(shape) > 0


def _has_rows(shape: _Shape) -> bool:
    return len(shape) > 1


def _has_planes(shape: _Shape) -> bool:
    return len(shape) > 2 and math.prod(shape) > 0


def _has_elements(shape: _Shape) -> bool:
    return len(shape) > 0 and math.prod(shape) > 1


def _is_rectangle(shape: _Shape) -> bool:
    return _divisor(math.prod(shape)) > 1


def _has_parts(shape: _Shape) -> bool:
    return len(shape) > 0 and shape[0] > 1 and math.prod(shape) > 0


_LAYOUTS: Final[dict[Layout, tuple[Callable[[_Shape], bool], Callable[[Array], Tensor]]]] = {
    "dense": (_anything, _dense),
    "transposed": (_has_rows, _permuted(lambda rank: tuple(range(rank))[::-1])),
    "turned": (_has_planes, _permuted(lambda rank: (*range(1, rank), 0))),
    "turned back": (_has_planes, _permuted(lambda rank: (rank - 1, *range(rank - 1)))),
    "planes transposed": (_has_planes, _permuted(lambda r: (*range(r - 2), r - 1, r - 2))),
    "planes exchanged": (_has_planes, _permuted(lambda rank: (1, 0, *range(2, rank)))),
    "rows sliced": (_has_axes, _rows),
    "planes sliced": (_has_planes, _planes),
    "columns sliced": (_has_rows, _columns),
    "sliced": (_has_axes, _inner),
    "end sliced": (_has_axes, _end),
    "slice of slice": (_has_elements, _slice_of_slice),
    "row": (_anything, _row),
    "column": (_anything, _column),
    "stepped": (_has_elements, _stepped(-2)),
    "backwards": (_has_elements, _stepped(-1)),
    "by two": (_has_elements, _stepped(2)),
    "by three": (_has_elements, _stepped(3)),
    "reversed": (_has_elements, _reversed),
    "transpose reshaped": (_is_rectangle, _reshaped_transpose),
    "slice reshaped": (_has_rows, _reshaped_slice),
    "columns expanded": (_has_rows, _expanded),
    "joined": (_has_parts, _joined),
    "rows broadcast": (lambda _shape: False, _broadcast(0)),
    "planes broadcast": (lambda _shape: False, _broadcast(1)),
    "columns broadcast": (lambda _shape: False, _broadcast(-1)),
}
_REPEATED: Final[tuple[tuple[Layout, int], ...]] = (
    ("rows broadcast", 0),
    ("planes broadcast", 1),
    ("columns broadcast", -1),
)
LAYOUTS: Final[tuple[Layout, ...]] = tuple(_LAYOUTS)
