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
from tensorplug.errors import ArgumentError
from tensorplug.ops import movement
from tensorplug.ops.indexing import coordinates, indexing, slicing, subscripts

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.indexing.subscripts import Pick, Subscript

_READING: Final = "reading"  # begins the keys of plans that are filed here
_TOGETHER: Final = 64  # rows that an iteration takes at once
_LONG: Final = 1 << 62  # longer than any axis

_FEW: Final = 64
"""Of how many blocks of one shape the plans are kept.

A loop over ``x[i : i + n]`` would fill the cache with its own, and one more is made from a model
in a few microseconds.
"""


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
    named = None
    if hasattr(x, "_placement"):
        if key.__class__ is int:
            short = _numbered(x, key)
        else:
            given = key if key.__class__ is tuple else (key,)
            named = subscripts.form(given)
            short = (
                _addressed(x, given)
                if named is None
                else dispatch_cached((_READING, x._placement, named), x)
            )
        if short is not None:
            return short
    tensor = as_tensor(x, what="indexing: x")
    subscript = subscripts.parse(tensor.type, key)
    if subscript.picks:
        return picked(tensor if subscript.whole else sliced(tensor, subscript), subscript)
    return sliced(tensor, subscript, named)


def _numbered(x: Tensor, number: int) -> Tensor | None:
    """Return ``x[number]``; None if it is out of range."""
    shape = x._placement.type.shape
    if not (shape and -shape[0] <= number < shape[0]):
        return None
    at = number if number >= 0 else number + shape[0]
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_V2, 1, at, x)
    return dispatch_binary(indexing.GATHER_V2, x, index)


def _addressed(x: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """Return ``x[1, 2]`` or ``x[:, 3]``; None for other keys, or if one is out of range."""
    shape = x._placement.type.shape
    numbers = subscripts.integers(shape, key)
    if numbers is not None:
        return _element(x, numbers)
    line = subscripts.along(shape, key) if len(shape) > 1 else None
    return None if line is None else _at(x, *line)


def rows(x: Tensor) -> Iterator[Tensor]:
    """Yield ``x[0]``, ``x[1]`` and so on, each as it is when its turn comes.

    From the second on, many are taken at once, and used unless x was assigned to meanwhile.
    """
    count = len(x)
    source: Any = None  # what the rows that are ready were taken from
    ready: list[Tensor] = []  # the next one last
    for at in range(count):
        if at % _TOGETHER == 1:
            source = x._buffer
            every = range(at, min(at + _TOGETHER, count))
            block = subscripts.parse(x.type, slice(every.start, every.stop))
            ready = dispatch_multiple(slicing.UNPACK, sliced(x, block), axis=0)
            ready.reverse()
        if source is None or source is not x._buffer:
            yield getitem(x, at)
        else:
            yield ready.pop()


def sliced(x: Tensor, subscript: Subscript, named: tuple[Hashable, ...] | None = None) -> Tensor:
    """Return what the integers, slices and new axes of a subscript leave of ``x``.

    ``named``: the key's form, under which a plan is filed that does it all.
    """
    basic = subscript.basic
    numbers = subscript.numbers
    if not numbers:
        return _block(x, basic, subscript.shape, named)  # type: ignore[arg-type]  # no integers
    shape = x.shape
    rest = _without_numbers(basic, shape)
    if rest is None:
        result = x
        if len(numbers) > 1 and basic[: len(numbers)] == numbers:
            return _element(x, numbers)
    else:
        wide = tuple([1 if e is None else len(range(*e.indices(_LONG))) for e in rest])
        result = _block(x, rest, wide, None)
    for axis in range(len(basic) - 1, -1, -1):  # the last first: no axis moves that is to come
        number = basic[axis]
        if number.__class__ is int:
            result = _at(result, axis, number)
    return result


def _without_numbers(
    basic: Sequence[int | slice | None], shape: shapes.Shape
) -> list[slice | None] | None:
    """Return a subscript with whole axes for integers; None if that leaves all as it is."""
    rest: list[slice | None] = []
    whole, axis = True, 0
    for item in basic:
        if item is None:
            rest.append(None)
            whole = False
            continue
        if item.__class__ is int:
            rest.append(slice(0, shape[axis], 1))
        else:
            rest.append(item)  # type: ignore[arg-type]  # a slice
            whole = whole and item == slice(0, shape[axis], 1)
        axis += 1
    return None if whole else rest


def _straight(basic: Sequence[int | slice | None]) -> bool:
    """Return whether there are slices alone, of which none leaves elements out."""
    return all(item.__class__ is slice and item.step == 1 for item in basic)


def _at(x: Tensor, axis: int, number: int) -> Tensor:
    """Return ``x`` at one place along an axis; it is data, so that one plan serves for all."""
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_V2, 1, number, x)
    if not axis:
        return dispatch_binary(indexing.GATHER_V2, x, index)  # the defaults; a shorter way
    key = (_READING, x._placement, axis, index._placement)
    found = dispatch_cached(key, x, index)
    if found is None:
        found = dispatch(indexing.GATHER_V2, x, index, axis=axis)
        options = freeze_attributes({"axis": axis})
        known = (indexing.GATHER_V2, x._placement, index._placement, *options)
        plan = context.plans.get(known)
        if plan is not None:
            plan.device.add_key(key, plan, known, plan)
    return found


def _element(x: Tensor, numbers: tuple[int, ...]) -> Tensor:
    """Return ``x`` at one place of its first axes; again data."""
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_ND, 1, numbers, x)
    return dispatch_binary(indexing.GATHER_ND, x, index)


def _block(
    x: Tensor,
    basic: Sequence[slice | None],
    shape: shapes.Shape,
    named: tuple[Hashable, ...] | None,
) -> Tensor:
    """Return the block of ``x``, of this shape, that slices take.

    Begin and end are attributes. If a block of this shape was taken before, its plan is the
    model of this one's; the first of them are filed under the key's form, for ``getitem``.
    """
    context = current_context()
    spec, attributes = _call(x, basic, shape)
    model = (_READING, x._placement, spec, shape)
    plan = context.plans.get(model)
    if plan is not None:
        other = plan.vary(attributes) if attributes else plan
        if other is not None:
            result = dispatch_planned(context, other, (x,))
            if named is not None and plan.varied <= _FEW:
                plan.device.add_key((_READING, x._placement, named), other, model, plan)
            return result
    result = dispatch(spec, x, **attributes)
    known = (spec, x._placement, *freeze_attributes(attributes))
    plan = context.plans.get(known)
    if plan is not None:
        plan.device.add_key(model, plan, known, plan)
        if named is not None:
            plan.device.add_key((_READING, x._placement, named), plan, known, plan)
    return result


def _call(
    x: Tensor, basic: Sequence[slice | None], shape: shapes.Shape
) -> tuple[KernelSpec, dict[str, Any]]:
    """Return the kernel that takes a block, and its attributes."""
    if not _straight(basic):
        return slicing.STRIDED_SLICE, selecting(basic)
    if shape == x.shape:
        return movement.IDENTITY, {}
    begin = tuple([item.start for item in basic])  # type: ignore[union-attr]  # slices, all of them
    return movement.SLICE, {"begin": begin, "size": shape}


def selecting(basic: Sequence[int | slice | None]) -> dict[str, Any]:
    """Return the attributes of StridedSlice for integers, slices and new axes."""
    begin, end, strides = [], [], []
    end_mask = new_axis_mask = shrink_axis_mask = 0
    for at, item in enumerate(basic):
        bit = 1 << at
        span: slice = slice(0, 1, 1)
        if item is None:
            new_axis_mask |= bit
        elif isinstance(item, slice):
            span = item
            end_mask |= bit if span.stop is None else 0  # backwards to the first element
        else:
            shrink_axis_mask |= bit
            span = slice(item, item + 1, 1)
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
        shape = shapes.broadcast(*(item.shape for item in indices))
    except ArgumentError as error:
        raise type(error)(f"indexing {x.type}: {error}") from None
    wide = (e if e.shape == shape else movement.broadcast_to(e, shape) for e in indices)
    columns = [movement.reshape(item, (*shape, 1)) for item in wide]
    rows = columns[0] if len(columns) == 1 else movement.concat(columns, axis=-1)
    return rows, tuple(axes)
