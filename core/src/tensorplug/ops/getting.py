"""Reading by subscripts: ``x[key]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug import aliasing, shapes
from tensorplug import dispatch as seam
from tensorplug.dispatch import as_tensor, dispatch, dispatch_binary
from tensorplug.errors import ArgumentError
from tensorplug.ops import coordinates, indexing, movement, slicing, subscripts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.ops.subscripts import Pick, Subscript
    from tensorplug.tensor import Tensor


def getitem(x: Any, key: Any) -> Tensor:
    """Return ``x[key]``, by NumPy's rules.

    Integers, slices, an ellipsis and None give what NumPy would make a view. Integer tensors,
    arrays and lists, which broadcast against one another, and masks of booleans pick elements;
    their axes stand where the first of them stood, or in front if they do not stand together.

    Raises:
        OutOfRangeError: too many indices, or one out of range.
        ShapeError: a mask, or what must broadcast, does not fit.
        ArgumentError: any other kind of index.

    """
    tensor = as_tensor(x, what="indexing: x")
    shape = tensor.shape
    if key.__class__ is int and len(shape) > 1 and -shape[0] <= key < shape[0]:
        return aliasing.view(_at(tensor, 0, key % shape[0]), x, aliasing.indexed, (key,))
    subscript = subscripts.parse(tensor.type, key)
    result = sliced(tensor, subscript)
    if subscript.picks:
        return picked(result, subscript)
    if subscript.scalar:  # NumPy's would be no view
        return result
    return aliasing.view(result, x, aliasing.indexed, subscript.basic)


def _at(x: Tensor, axis: int, number: int) -> Tensor:
    """Return ``x`` at one place along an axis; it is data, so that one plan serves for all."""
    frame = seam.current()
    index = seam.runner(frame).constant(frame, indexing.GATHER_V2, 1, number, x)
    if axis:
        return dispatch(indexing.GATHER_V2, x, index, axis=axis)
    return dispatch_binary(indexing.GATHER_V2, x, index)  # the defaults; a shorter way


def sliced(x: Tensor, subscript: Subscript) -> Tensor:
    """Return what the integers, slices and new axes of a subscript leave of ``x``."""
    basic = subscript.basic
    numbers = [at for at, each in enumerate(basic) if each.__class__ is int]
    sizes = iter(x.shape)
    kept: list[slice | None] = []
    for each in basic:
        size = 0 if each is None else next(sizes)
        kept.append(slice(0, size, 1) if isinstance(each, int) else each)
    result = _block(x, kept)
    for at in reversed(numbers):  # the last first, so that no axis moves that is still to come
        result = _at(result, at, basic[at])  # type: ignore[arg-type]  # an integer
    return movement.identity(x) if result is x else result


def _block(x: Tensor, basic: Sequence[slice | None]) -> Tensor:
    """Return the block of ``x`` that slices take, ``x`` itself if they take all."""
    if None in basic or any(each is not None and each.step != 1 for each in basic):
        return dispatch(slicing.STRIDED_SLICE, x, **selecting(basic))
    begin = tuple(each.start for each in basic)  # type: ignore[union-attr]  # slices, all of them
    size = tuple(each.stop - each.start for each in basic)  # type: ignore[union-attr]
    return x if size == x.shape else dispatch(movement.SLICE, x, begin=begin, size=size)


def selecting(basic: Sequence[int | slice | None]) -> dict[str, Any]:
    """Return the attributes of StridedSlice for integers, slices and new axes."""
    begin, end, strides = [], [], []
    end_mask = new_axis_mask = shrink_axis_mask = 0
    for at, each in enumerate(basic):
        bit = 1 << at
        span: slice = slice(0, 1, 1)
        if each is None:
            new_axis_mask |= bit
        elif isinstance(each, slice):
            span = each
            end_mask |= bit if span.stop is None else 0  # backwards to the first element
        else:
            shrink_axis_mask |= bit
            span = slice(each, each + 1, 1)
        begin.append(span.start)
        end.append(span.stop or 0)
        strides.append(span.step)
    return {
        "begin": tuple(begin),
        "end": tuple(end),
        "strides": tuple(strides),
        "end_mask": end_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }


def picked(x: Tensor, subscript: Subscript) -> Tensor:
    """Return what the picks of a subscript take of ``x``, which its slices have left."""
    picks, place = subscript.picks, subscript.place
    if len(picks) == 1:
        result, rank = _picked_once(x, picks[0])
        return moved(result, picks[0].axis, place, rank)
    rows, axes = addresses(x, picks)
    front = movement.permute_dims(x, (*axes, *_rest(x.ndim, axes)))
    found = indexing.gather_nd(front, rows)
    return moved(found, 0, place, rows.ndim - 1)


def _picked_once(x: Tensor, pick: Pick) -> tuple[Tensor, int]:
    """Return what one pick takes, its axes where it stood; and how many they are."""
    index = as_tensor(pick.index, what="indexing: an index")
    if not pick.mask:
        return indexing.gather(x, index, axis=pick.axis), index.ndim
    return coordinates.boolean_mask(x, index, axis=pick.axis), 1


def moved(x: Tensor, start: int, place: int, count: int) -> Tensor:
    """Return ``x`` with its axes from ``start``, ``count`` of them, at ``place`` instead."""
    if start == place or not count:
        return x
    block = range(start, start + count)
    order = [axis for axis in range(x.ndim) if axis not in block]
    return movement.permute_dims(x, (*order[:place], *block, *order[place:]))


def _rest(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(rank) if axis not in axes)


def addresses(x: Tensor, picks: tuple[Pick, ...]) -> tuple[Tensor, tuple[int, ...]]:
    """Return the rows of indices for which several picks stand together, and of which axes.

    Raises:
        ShapeError: the picks do not broadcast.

    """
    indices: list[Tensor] = []
    axes: list[int] = []
    for pick in picks:
        index = as_tensor(pick.index, what="indexing: an index")
        axes += range(pick.axis, pick.axis + pick.count)
        indices += coordinates.nonzero(index) if pick.mask else (index,)
    try:
        shape = shapes.broadcast(*(each.shape for each in indices))
    except ArgumentError as error:
        raise type(error)(f"indexing {x.type}: {error}") from None
    wide = (e if e.shape == shape else movement.broadcast_to(e, shape) for e in indices)
    columns = [movement.reshape(each, (*shape, 1)) for each in wide]
    rows = columns[0] if len(columns) == 1 else movement.concat(columns, axis=-1)
    return rows, tuple(axes)
