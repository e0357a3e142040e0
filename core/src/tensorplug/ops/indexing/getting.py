"""Reading by subscripts: ``x[key]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import shapes
from tensorplug.dispatch.calls import (
    as_tensor,
    dispatch,
    dispatch_binary,
    dispatch_cached,
    dispatch_multiple,
    dispatch_planned,
)
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.keys import freeze_attributes
from tensorplug.errors import OutOfRangeError, ShapeError
from tensorplug.ops import extents, joining, movement
from tensorplug.ops.indexing import coordinates, indexing, slicing, subscripts, traced

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.indexing.subscripts import Pick, Subscript

_READING: Final = "reading"  # the first part of the keys of the plans that this module files
_ROWS_AT_ONCE: Final = 64  # how many rows an iteration takes with one call
_ABOVE_ANY_SIZE: Final = 1 << 62  # longer than any axis

_MOST_FILED: Final = 64
"""How many blocks of one shape have plans of their own in the cache.

A loop over ``x[i : i + n]`` would otherwise fill the cache. Deriving a plan from another one for
the same shape takes a few microseconds.
"""


def getitem(x: Any, key: Any) -> Tensor:
    """Return ``x[key]``, by NumPy's rules.

    A key holds integers, slices, an ellipsis and None, which are basic indexing in NumPy. It may
    also hold integer tensors, arrays and lists, and boolean masks, which are advanced indexing:
    they broadcast against one another. Their axes replace the first of them in the result, or
    come first if they are not adjacent in the key.

    In a compiled function, a slice ``i:i + n`` with a tensor i and a number n is a window of n
    elements, as that of ``dynamic_slice``: it is moved, so that it lies inside, where NumPy would
    return fewer elements.

    Raises:
        OutOfRangeError: too many indices, or one out of range.
        ShapeError: a mask has the wrong shape, or integer indices do not broadcast.
        ArgumentError: an index of any other kind.

    """
    frozen = None
    if hasattr(x, "_placement"):
        if key.__class__ is int:
            result = _take_number(x, key)
        else:
            entries = key if key.__class__ is tuple else (key,)
            frozen = subscripts.freeze_key(entries)
            result = (
                _take_numbers(x, entries)
                if frozen is None
                else dispatch_cached((_READING, x._placement, frozen), x)
            )
        if result is not None:
            return result
    tensor = as_tensor(x, what="indexing: x")
    if frozen is None and (window := traced.find_window(tensor.type, key)):
        block = window.read(tensor)
        return block if window.rest is None else getitem(block, window.rest)
    subscript = subscripts.parse(tensor.type, key)
    if subscript.picks:
        block = tensor if subscript.whole else apply_slices(tensor, subscript)
        return apply_picks(block, subscript)
    return apply_slices(tensor, subscript, frozen)


def _take_number(x: Tensor, number: int) -> Tensor | None:
    """Return ``x[number]``; None if it is out of range."""
    shape = x._placement.type.shape
    if not (shape and -shape[0] <= number < shape[0]):
        return None
    position = number if number >= 0 else number + shape[0]
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_V2, 1, position, x)
    return dispatch_binary(indexing.GATHER_V2, x, index)


def _take_numbers(x: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """Return ``x[key]`` for keys like ``[1, 2]`` or ``[:, 3]``.

    It is None for other keys, and for integers out of range.
    """
    shape = x._placement.type.shape
    numbers = subscripts.read_integers(shape, key)
    if numbers is not None:
        return _take_element(x, numbers)
    axis_and_number = subscripts.read_axis_and_number(shape, key) if len(shape) > 1 else None
    return None if axis_and_number is None else _take_along(x, *axis_and_number)


def iterate_rows(x: Tensor) -> Iterator[Tensor]:
    """Yield ``x[0]``, ``x[1]`` and so on, each with its values at the time of the yield.

    After the first row, one call takes many rows. They are discarded if x is assigned to before
    they are yielded.
    """
    count = len(x)
    source: Any = None  # the buffer from which the rows in ``ready`` were taken
    ready: list[Tensor] = []  # in reverse order
    for row in range(count):
        if row % _ROWS_AT_ONCE == 1:
            source = x._buffer
            block = subscripts.parse(x.type, slice(row, min(row + _ROWS_AT_ONCE, count)))
            ready = dispatch_multiple(slicing.UNPACK, apply_slices(x, block), axis=0)
            ready.reverse()
        if source is None or source is not x._buffer:
            yield getitem(x, row)
        else:
            yield ready.pop()


def apply_slices(
    x: Tensor, subscript: Subscript, frozen: tuple[Hashable, ...] | None = None
) -> Tensor:
    """Return ``x`` after the integers, slices and new axes of a subscript.

    ``frozen``: the key, if it can be hashed; the plan is filed under it.
    """
    basic = subscript.basic
    numbers = subscript.numbers
    if not numbers:
        return _take_block(x, basic, subscript.shape, frozen)  # type: ignore[arg-type]  # no integers
    shape = x.shape
    blocks = _replace_numbers(basic, shape)
    if blocks is None:
        result = x
        if len(numbers) > 1 and basic[: len(numbers)] == numbers:
            return _take_element(x, numbers)
    else:
        block_shape = tuple(
            [
                1 if entry is None else len(range(*entry.indices(_ABOVE_ANY_SIZE)))
                for entry in blocks
            ]
        )
        result = _take_block(x, blocks, block_shape, None)
    for axis in range(len(basic) - 1, -1, -1):  # from the last, so that earlier axes stay
        number = basic[axis]
        if number.__class__ is int:
            result = _take_along(result, axis, number)
    return result


def _replace_numbers(
    basic: Sequence[int | slice | None], shape: shapes.Shape
) -> list[slice | None] | None:
    """Return a subscript with a full slice for each integer; None if all slices are full."""
    blocks: list[slice | None] = []
    whole, axis = True, 0
    for entry in basic:
        if entry is None:
            blocks.append(None)
            whole = False
            continue
        if entry.__class__ is int:
            blocks.append(slice(0, shape[axis], 1))
        else:
            blocks.append(entry)  # type: ignore[arg-type]  # a slice
            whole = whole and entry == slice(0, shape[axis], 1)
        axis += 1
    return None if whole else blocks


def _has_unit_steps(basic: Sequence[int | slice | None]) -> bool:
    """Return whether all entries are slices with step 1."""
    return all(entry.__class__ is slice and entry.step == 1 for entry in basic)


def _take_along(x: Tensor, axis: int, number: int) -> Tensor:
    """Return ``x`` at one place along an axis.

    The number is an input of the kernel, not an attribute, so one plan serves all places.
    """
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_V2, 1, number, x)
    if not axis:
        return dispatch_binary(indexing.GATHER_V2, x, index)  # a faster path for axis 0
    key = (_READING, x._placement, axis, index._placement)
    picked = dispatch_cached(key, x, index)
    if picked is None:
        picked = dispatch(indexing.GATHER_V2, x, index, axis=axis)
        options = freeze_attributes({"axis": axis})
        known = (indexing.GATHER_V2, x._placement, index._placement, *options)
        plan = context.plans.get(known)
        if plan is not None:
            plan.device.add_key(key, plan, known, plan)
    return picked


def _take_element(x: Tensor, numbers: tuple[int, ...]) -> Tensor:
    """Return ``x`` at one place of its first axes; the numbers are again an input."""
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_ND, 1, numbers, x)
    return dispatch_binary(indexing.GATHER_ND, x, index)


def _take_block(
    x: Tensor,
    basic: Sequence[slice | None],
    shape: shapes.Shape,
    frozen: tuple[Hashable, ...] | None,
) -> Tensor:
    """Return the block of ``x`` that the slices select; it has this shape.

    Begin and end are attributes. The plan of an earlier block of this shape serves as a model:
    the new plan differs only in its attributes. The first plans are also filed under the frozen
    key, for ``getitem``.
    """
    context = current_context()
    spec, attributes = _choose_kernel(x, basic, shape)
    model = (_READING, x._placement, spec, shape)
    plan = context.plans.get(model)
    if plan is not None:
        other = plan.vary(attributes) if attributes else plan
        if other is not None:
            result = dispatch_planned(context, other, (x,))
            if frozen is not None and plan.varied <= _MOST_FILED:
                plan.device.add_key((_READING, x._placement, frozen), other, model, plan)
            return result
    result = dispatch(spec, x, **attributes)
    known = (spec, x._placement, *freeze_attributes(attributes))
    plan = context.plans.get(known)
    if plan is not None:
        plan.device.add_key(model, plan, known, plan)
        if frozen is not None:
            plan.device.add_key((_READING, x._placement, frozen), plan, known, plan)
    return result


def _choose_kernel(
    x: Tensor, basic: Sequence[slice | None], shape: shapes.Shape
) -> tuple[KernelSpec, dict[str, Any]]:
    """Return the spec of the cheapest kernel that takes a block, and its attributes."""
    if not _has_unit_steps(basic):
        return slicing.STRIDED_SLICE, make_slice_attributes(basic)
    if shape == x.shape:
        return movement.IDENTITY, {}
    begin = tuple([entry.start for entry in basic])  # type: ignore[union-attr]  # all are slices
    return extents.SLICE, {"begin": begin, "size": shape}


def make_slice_attributes(basic: Sequence[int | slice | None]) -> dict[str, Any]:
    """Return the attributes of StridedSlice for integers, slices and new axes."""
    begin, end, strides = [], [], []
    end_mask = new_axis_mask = shrink_axis_mask = 0
    for number, entry in enumerate(basic):
        bit = 1 << number
        span: slice = slice(0, 1, 1)
        if entry is None:
            new_axis_mask |= bit
        elif isinstance(entry, slice):
            span = entry
            end_mask |= bit if span.stop is None else 0  # backwards to the first element
        else:
            shrink_axis_mask |= bit
            span = slice(entry, entry + 1, 1)
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


def apply_picks(x: Tensor, subscript: Subscript) -> Tensor:
    """Return the elements that the picks of a subscript select from ``x``.

    ``x`` is the result of the subscript's slices.
    """
    picks, place = subscript.picks, subscript.place
    if len(picks) == 1:
        result, rank = _apply_pick(x, picks[0])
        return move_axes(result, picks[0].axis, place, rank)
    rows, axes = combine_indices(x, picks)
    front = movement.permute_dims(x, (*axes, *_list_other_axes(x.ndim, axes)))
    picked = indexing.gather_nd(front, rows)
    return move_axes(picked, 0, place, rows.ndim - 1)


def _apply_pick(x: Tensor, pick: Pick) -> tuple[Tensor, int]:
    """Return the elements that one pick selects, and the number of its axes in the result.

    These axes replace the picked one.
    """
    index = as_tensor(pick.index, what="indexing: an index")
    if not pick.mask:
        return indexing.gather(x, index, axis=pick.axis), index.ndim
    return coordinates.boolean_mask(x, index, axis=pick.axis), 1


def move_axes(x: Tensor, start: int, place: int, count: int) -> Tensor:
    """Return ``x`` with the ``count`` axes that begin at ``start`` moved to ``place``."""
    if start == place or not count:
        return x
    block = range(start, start + count)
    order = [axis for axis in range(x.ndim) if axis not in block]
    return movement.permute_dims(x, (*order[:place], *block, *order[place:]))


def _list_other_axes(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for axis in range(rank) if axis not in axes)


def combine_indices(x: Tensor, picks: tuple[Pick, ...]) -> tuple[Tensor, tuple[int, ...]]:
    """Combine several picks into rows of indices, as for ``gather_nd``; return also their axes.

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
        shape = shapes.broadcast(*(index.shape for index in indices))
    except ShapeError as error:
        raise OutOfRangeError(f"indexing {x.type}: {error}") from None
    wide = (
        index if index.shape == shape else movement.broadcast_to(index, shape) for index in indices
    )
    columns = [movement.reshape(column, (*shape, 1)) for column in wide]
    rows = columns[0] if len(columns) == 1 else joining.concat(columns, axis=-1)
    return rows, tuple(axes)
