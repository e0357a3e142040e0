"""Writing by subscripts: what ``x[key] = value`` makes of the values of x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import elementwise, movement
from tensorplug.ops.indexing import indexing, slicing
from tensorplug.ops.indexing.getting import addresses, moved, selecting, sliced

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.indexing.subscripts import Pick, Subscript

__all__: list[str] = []


def _updated(tensor: TensorType, value: TensorType, *, attributes: dict[str, Any]) -> TensorType:
    wanted = slicing.selection(tensor.shape, attributes).shape
    if not _broadcasts(value.shape, wanted):
        raise ShapeError(f"value must broadcast to {list(wanted)}, the shape of the slice")
    return tensor


def _broadcasts(shape: shapes.Shape, target: shapes.Shape) -> bool:
    """Return whether ``shape`` broadcasts to ``target``."""
    if shape == target or not shape:
        return True
    try:
        return shapes.broadcast(shape, target) == target
    except ShapeError:
        return False


STRIDED_SLICE_UPDATE = KernelSpec(
    "TensorStridedSliceUpdate",
    ("tensor", "value"),
    _updated,
    attributes=slicing.SELECTING,
    promote=("tensor", "value"),
)


def updated(x: Tensor, subscript: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value``, of its dtype, in the place of ``x[key]``: another tensor.

    Raises:
        ShapeError: its shape does not broadcast to that of ``x[key]``.

    """
    if not subscript.picks:
        return _with_block(x, subscript, fitting(value, subscript.shape, x))
    block = x if subscript.whole else sliced(x, subscript)
    written = _with_picks(block, subscript, value, x)
    return written if subscript.whole else _with_block(x, subscript, written)


def castable(value: Any, x: Tensor, what: str = "") -> Tensor:
    """Return ``value`` as a tensor of the dtype of x, where NumPy's same-kind casting allows it.

    So integers become floats, and floats become shorter ones; but floats do not become integers,
    signed integers do not become unsigned, and nothing becomes a boolean. ``what`` begins
    messages; by default it is an assignment to x.

    Raises:
        DTypeError: naming both.
        ArgumentError: a Python number that does not fit.

    """
    placement, dtype = getattr(value, "_placement", None), x._placement.type.dtype
    if placement is None:
        if host_values.is_scalar(value):
            return _number(value, x, what)
    elif placement.type.dtype is dtype and placement.device is x._placement.device:
        return value  # type: ignore[no-any-return]  # a tensor
    what = what or f"assignment to {x.type}"
    if isinstance(value, list | tuple | range):
        return as_tensor(value, dtype, what=f"{what}: the value")
    tensor = as_tensor(value, what=f"{what}: the value")
    if tensor.dtype is dtype:
        return tensor
    if "string" in (tensor.dtype.kind, dtype.kind) or not np.can_cast(
        tensor.dtype.numpy, dtype.numpy, "same_kind"
    ):
        raise DTypeError(
            f"{what}: the value is {tensor.type}, and {tensor.dtype} does not become {dtype} "
            f"without being told to; say astype({dtype.name!r})"
        )
    return elementwise.astype(tensor, dtype)


def _number(value: Any, x: Tensor, what: str) -> Tensor:
    """Return a Python number as a constant, or raise."""
    dtype = x._placement.type.dtype
    if dt.of_scalar(value, dtype) is not dtype:
        return as_tensor(value, dtype, what=f"{what or f'assignment to {x.type}'}: the value")
    context = current_context()
    return engine_of(context).constant(context, STRIDED_SLICE_UPDATE, 1, value, x)


def fitting(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value``, which broadcasts to ``shape``, without leading sizes of 1 beyond its rank.

    Raises:
        ShapeError: it does not broadcast.

    """
    own = value.shape
    if own == shape or not own:
        return value
    extra = len(own) - len(shape)
    given = value
    if extra > 0 and own[:extra] == (1,) * extra:
        given = movement.reshape(value, own[extra:])
    if not _broadcasts(given.shape, shape):
        raise ShapeError(
            f"assignment to {x.type}: the value is {value.type}, but must broadcast to "
            f"{list(shape)}"
        )
    return given


def _fitted(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value`` broadcast to ``shape``; see ``fitting``."""
    given = fitting(value, shape, x)
    return given if given.shape == shape else movement.broadcast_to(given, shape)


def _with_block(x: Tensor, subscript: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value``, broadcast, where the slices and integers are."""
    basic = subscript.basic
    if subscript.whole:
        return movement.identity(_fitted(value, x.shape, x))
    lead = next((at for at, item in enumerate(basic) if not isinstance(item, int)), len(basic))
    rest = basic[lead:]
    if (
        lead
        and subscript.shape == x.shape[lead:]
        and all(isinstance(item, slice) and item.step == 1 for item in rest)
    ):
        return _with_row(x, basic[:lead], value)  # type: ignore[arg-type]  # integers
    return dispatch(STRIDED_SLICE_UPDATE, x, value, **selecting(basic))


def _with_row(x: Tensor, numbers: tuple[int, ...], value: Tensor) -> Tensor:
    """Return ``x`` with ``value`` where its first axes have these numbers.

    They are data, so that one plan serves for all rows.
    """
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_ND, 1, numbers, x)
    row = _fitted(value, x.shape[len(numbers) :], x)
    return indexing.tensor_scatter_update(x, index, row)


def _with_picks(block: Tensor, subscript: Subscript, value: Tensor, x: Tensor) -> Tensor:
    """Return what the slices have left, with ``value`` where the picks are."""
    first = subscript.picks[0]
    if len(subscript.picks) == 1 and first.mask:
        after = block.ndim - first.axis - first.count
        if value.ndim <= after or value.size == 1:
            return _chosen(block, first, value, after, x)
    rows, axes = addresses(block, subscript.picks)
    rest = [axis for axis in range(block.ndim) if axis not in axes]
    count = rows.ndim - 1
    place = subscript.place
    sizes = [block.shape[axis] for axis in rest]
    shape = (*sizes[:place], *rows.shape[:-1], *sizes[place:])
    updates = moved(_fitted(value, shape, x), place, 0, count)
    order = (*axes, *rest)
    straight = order == tuple(range(block.ndim))
    front = block if straight else movement.permute_dims(block, order)
    written = indexing.tensor_scatter_update(front, rows, updates)
    if straight:
        return written
    back = [0] * len(order)
    for at, axis in enumerate(order):
        back[axis] = at
    return movement.permute_dims(written, back)


def _chosen(block: Tensor, pick: Pick, value: Tensor, after: int, x: Tensor) -> Tensor:
    """Return one value wherever a mask is true: how often that is does not matter."""
    mask = as_tensor(pick.index, what="indexing: a mask")
    tail = block.shape[block.ndim - after :]
    if value.ndim > after:
        value = movement.reshape(value, ())
    fitted = _fitted(value, tail, x) if after else value
    return elementwise.where(movement.reshape(mask, (*mask.shape, *(1,) * after)), fitted, block)
