"""Writing by subscripts: what ``x[key] = value`` makes of the values of x."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dispatch as seam
from tensorplug import dtypes as dt
from tensorplug import host, shapes
from tensorplug.dispatch import as_tensor, dispatch
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import elementwise, indexing, movement, slicing
from tensorplug.ops.getting import addresses, moved, selecting, sliced
from tensorplug.spec import KernelSpec, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.dtypes import DType
    from tensorplug.ops.subscripts import Pick, Subscript
    from tensorplug.tensor import Tensor

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


def updated(x: Tensor, subscript: Subscript, value: Any) -> Tensor:
    """Return ``x`` with ``value`` in the place of ``x[key]``: another tensor of the same type.

    Raises:
        DTypeError: the value cannot become of the dtype of x (``castable``).
        ShapeError: its shape does not broadcast to that of ``x[key]``.

    """
    given = castable(value, x.dtype, f"assignment to {x.type}", x)
    if not subscript.picks:
        return _with_block(x, subscript, _fitting(given, subscript.shape, x))
    block = x if subscript.whole else sliced(x, subscript)
    written = _with_picks(block, subscript, given, x)
    return written if subscript.whole else _with_block(x, subscript, written)


def castable(value: Any, dtype: DType, what: str, beside: Tensor | None = None) -> Tensor:
    """Return ``value`` as a tensor of ``dtype``, where NumPy's casting of the same kind allows it.

    So integers become floats, and floats become shorter ones; but floats do not become integers,
    signed integers do not become unsigned, and nothing becomes a boolean. ``beside``: the tensor
    assigned to, for which Python numbers are kept as constants.

    Raises:
        DTypeError: naming both.
        ArgumentError: a Python number that does not fit.

    """
    if host.is_scalar(value):
        if dt.of_scalar(value, dtype) is not dtype or beside is None:
            return as_tensor(value, dtype, what=f"{what}: the value")  # or an error
        frame = seam.current()
        return seam.runner(frame).constant(frame, STRIDED_SLICE_UPDATE, 1, value, beside)
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


def _fitting(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value``, which broadcasts to ``shape``, without leading sizes of 1 beyond its rank.

    Raises:
        ShapeError: it does not broadcast.

    """
    extra = value.ndim - len(shape)
    given = value
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        given = movement.reshape(value, value.shape[extra:])
    if not _broadcasts(given.shape, shape):
        raise ShapeError(
            f"assignment to {x.type}: the value is {value.type}, but must broadcast to "
            f"{list(shape)}"
        )
    return given


def _fitted(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value`` broadcast to ``shape``; see ``_fitting``."""
    given = _fitting(value, shape, x)
    return given if given.shape == shape else movement.broadcast_to(given, shape)


def _with_block(x: Tensor, subscript: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value``, broadcast, where the slices and integers are."""
    basic = subscript.basic
    if subscript.whole:
        return movement.identity(_fitted(value, x.shape, x))
    lead = next((at for at, each in enumerate(basic) if not isinstance(each, int)), len(basic))
    rest = basic[lead:]
    if (
        lead
        and subscript.shape == x.shape[lead:]
        and all(isinstance(each, slice) and each.step == 1 for each in rest)
    ):
        return _with_row(x, basic[:lead], value)
    return dispatch(STRIDED_SLICE_UPDATE, x, value, **selecting(basic))


def _with_row(x: Tensor, numbers: Sequence[Any], value: Tensor) -> Tensor:
    """Return ``x`` with ``value`` where its first axes have these numbers.

    They are data, so that one plan serves for all rows.
    """
    sizes, rest = x.shape[: len(numbers)], x.shape[len(numbers) :]
    place = 0
    for number, size in zip(numbers, sizes, strict=True):
        place = place * size + number
    frame = seam.current()
    index = seam.runner(frame).constant(frame, indexing.GATHER_V2, 1, place, x)
    rows = movement.reshape(x, (prod(sizes), *rest)) if len(sizes) > 1 else x
    at, row = movement.reshape(index, (1, 1)), _fitted(value, (1, *rest), x)
    written = indexing.tensor_scatter_update(rows, at, row)
    return movement.reshape(written, x.shape) if len(sizes) > 1 else written


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
