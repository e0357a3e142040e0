"""Writing by subscripts: what ``x[key] = value`` makes of the values of x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug import dispatch as seam
from tensorplug import host, shapes
from tensorplug.dispatch import as_tensor, dispatch
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import elementwise, indexing, movement, slicing
from tensorplug.ops.getting import addresses, moved, selecting, sliced
from tensorplug.spec import KernelSpec, TensorType

if TYPE_CHECKING:
    from tensorplug.dtypes import DType
    from tensorplug.ops.subscripts import Pick, Subscript
    from tensorplug.tensor import Tensor

__all__: list[str] = []


def _updated(tensor: TensorType, value: TensorType, *, attributes: dict[str, Any]) -> TensorType:
    wanted = slicing.selection(tensor.shape, attributes).shape
    if value.shape != wanted:
        raise ShapeError(f"value must have shape {list(wanted)}, that of the slice")
    return tensor


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
    given = castable(value, x.dtype, f"assignment to {x.type}")
    if not subscript.picks:
        return _with_block(x, subscript, _fitted(given, subscript.shape, x))
    block = sliced(x, subscript)
    written = _with_picks(block, subscript, given, x)
    return written if subscript.whole else _with_block(x, subscript, written)


def castable(value: Any, dtype: DType, what: str) -> Tensor:
    """Return ``value`` as a tensor of ``dtype``, where NumPy's casting of the same kind allows it.

    So integers become floats, and floats become shorter ones; but floats do not become integers,
    signed integers do not become unsigned, and nothing becomes a boolean.

    Raises:
        DTypeError: naming both.
        ArgumentError: a Python number that does not fit.

    """
    if host.is_scalar(value) or isinstance(value, list | tuple | range):
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


def _fitted(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value`` broadcast to ``shape``; leading sizes of 1 beyond its rank are dropped."""
    if value.shape == shape:
        return value
    extra = value.ndim - len(shape)
    given = value
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        given = movement.reshape(value, value.shape[extra:])
    try:
        fits = shapes.broadcast(given.shape, shape) == shape
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"assignment to {x.type}: the value is {value.type}, but must broadcast to "
            f"{list(shape)}"
        )
    return given if given.shape == shape else movement.broadcast_to(given, shape)


def _with_block(x: Tensor, subscript: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value`` where the slices and integers are."""
    basic = subscript.basic
    if subscript.whole:
        return movement.identity(value)
    lead = next((at for at, each in enumerate(basic) if each.__class__ is not int), len(basic))
    if lead and all(
        isinstance(each, slice) and each == slice(0, size, 1)
        for each, size in zip(basic[lead:], x.shape[lead:], strict=False)
    ):  # rows: their place is data, so that one plan serves for all
        frame = seam.current()
        place = np.array([basic[:lead]], np.int32)
        row = seam.runner(frame).receive(frame, place, None, "indexing: an index", copy=None)
        return indexing.tensor_scatter_update(
            x, row, movement.reshape(value, (1, *x.shape[lead:]))
        )
    return dispatch(STRIDED_SLICE_UPDATE, x, value, **selecting(subscript.basic))


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
