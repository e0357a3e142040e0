"""Writing by subscripts: ``x[key] = value``."""

from __future__ import annotations

from math import isfinite, trunc
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.spec import KernelSpec, TensorType
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, dispatch
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import DTypeError, ShapeError
from tensorplug.ops import movement
from tensorplug.ops.elementwise import casting, choosing
from tensorplug.ops.indexing import indexing, slicing, subscripts, traced, writing
from tensorplug.ops.indexing.getting import (
    apply_slices,
    combine_indices,
    make_slice_attributes,
    move_axes,
)

if TYPE_CHECKING:
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.ops.indexing.subscripts import Pick, Subscript

__all__: list[str] = []


def _infer_update(
    tensor: TensorType, value: TensorType, *, attributes: dict[str, Any]
) -> TensorType:
    target = slicing.selection(tensor.shape, attributes).shape
    if not _can_broadcast(value.shape, target):
        raise ShapeError(f"value must broadcast to {list(target)}, the shape of the slice")
    return tensor


def _can_broadcast(shape: shapes.Shape, target: shapes.Shape) -> bool:
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
    _infer_update,
    attributes=slicing.SLICE_ATTRIBUTES,
    promote=("tensor", "value"),
    linear=(("tensor", "value"),),
)


def replace_selection(x: Tensor, subscript: Subscript, value: Tensor) -> Tensor:
    """Return a copy of ``x`` in which ``value``, of the same dtype, replaces ``x[key]``.

    Raises:
        ShapeError: the value does not broadcast to the shape of ``x[key]``.

    """
    if not subscript.picks:
        return _replace_block(x, subscript, fit_value(value, subscript.shape, x))
    block = x if subscript.whole else apply_slices(x, subscript)
    written = _replace_picks(block, subscript, value, x)
    return written if subscript.whole else _replace_block(x, subscript, written)


def replace_window(x: Tensor, window: traced.Window, value: Tensor) -> Tensor:
    """Return a copy of ``x`` in which ``value``, of the same dtype, replaces part of a window.

    Raises:
        ShapeError: the value does not broadcast to the shape of that part.

    """
    if window.rest is None:
        return window.write(x, _broadcast_value(value, window.shape, x))
    block = window.read(x)
    subscript = subscripts.parse(block.type, window.rest)
    return window.write(x, replace_selection(block, subscript, value))


def cast_value(value: Any, x: Tensor, what: str = "") -> Tensor:
    """Return ``value`` as a tensor of the dtype of x, if NumPy's "same_kind" rule allows it.

    The rule allows casting integers to floats, and floats to shorter floats. It forbids casting
    floats to integers, signed integers to unsigned ones, and anything else to booleans. ``what``
    begins the messages; the default is "assignment to" and the type of x.

    Raises:
        DTypeError: the rule forbids the cast.
        ArgumentError: a number does not fit the dtype.

    """
    placement, dtype = getattr(value, "_placement", None), x._placement.type.dtype
    if placement is None:
        value = dt.as_number(value)
        if host_values.is_scalar(value):
            return _make_constant(value, x, what)
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
            f"{what}: the value is {tensor.type}, and {tensor.dtype} is not cast to {dtype} "
            f"implicitly; use astype({dtype.name!r})"
        )
    return casting.astype(tensor, dtype)


def cast_assigned(value: Any, x: Tensor) -> Tensor:
    """Return what ``x[key] = value`` assigns: like ``cast_value``, but all real numbers fit.

    NumPy's rule: numbers become integers as by ``astype``, so floats lose their fractions.

    Raises:
        DTypeError: complex numbers, strings or NaN for integers, or what ``cast_value`` refuses.
        ArgumentError: a single number is out of range.

    """
    if x._placement.type.dtype not in dt.INTEGER:
        return cast_value(value, x)
    number = dt.as_number(value)
    if isinstance(number, float) and isfinite(number):
        return cast_value(trunc(number), x)
    if host_values.is_scalar(number):
        return cast_value(number, x)
    tensor = as_tensor(value, what=f"assignment to {x.type}: the value")
    listed = isinstance(value, list | tuple | range) and tensor.dtype in dt.INTEGER
    if listed or tensor.dtype not in dt.REAL:  # the integers of a list must be in range
        return cast_value(value, x)
    return casting.astype(tensor, x.dtype, copy=False)


def _make_constant(value: Any, x: Tensor, what: str) -> Tensor:
    """Return a Python number as a constant of the dtype of x, or raise."""
    dtype = x._placement.type.dtype
    if dt.of_scalar(value, dtype) is not dtype:
        return as_tensor(value, dtype, what=f"{what or f'assignment to {x.type}'}: the value")
    context = current_context()
    return engine_of(context).constant(context, STRIDED_SLICE_UPDATE, 1, value, x)


def fit_value(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value`` without the leading axes of length 1 that ``shape`` does not have.

    Raises:
        ShapeError: the value does not broadcast to ``shape``.

    """
    own = value.shape
    if own == shape or not own:
        return value
    extra = len(own) - len(shape)
    fitted = value
    if extra > 0 and own[:extra] == (1,) * extra:
        fitted = movement.reshape(value, own[extra:])
    if not _can_broadcast(fitted.shape, shape):
        raise ShapeError(
            f"assignment to {x.type}: the value is {value.type}, but must broadcast to "
            f"{list(shape)}"
        )
    return fitted


def _broadcast_value(value: Tensor, shape: shapes.Shape, x: Tensor) -> Tensor:
    """Return ``value`` broadcast to ``shape``; see ``fit_value``."""
    fitted = fit_value(value, shape, x)
    return fitted if fitted.shape == shape else movement.broadcast_to(fitted, shape)


def _replace_block(x: Tensor, subscript: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value``, broadcast, in the block that slices and integers select."""
    basic = subscript.basic
    if subscript.whole:
        return movement.identity(_broadcast_value(value, x.shape, x))
    lead = next((at for at, entry in enumerate(basic) if not isinstance(entry, int)), len(basic))
    rest = basic[lead:]
    if (
        lead
        and subscript.shape == x.shape[lead:]
        and all(isinstance(entry, slice) and entry.step == 1 for entry in rest)
    ):
        return _replace_row(x, basic[:lead], value)  # type: ignore[arg-type]  # integers
    return dispatch(STRIDED_SLICE_UPDATE, x, value, **make_slice_attributes(basic))


def _replace_row(x: Tensor, numbers: tuple[int, ...], value: Tensor) -> Tensor:
    """Return ``x`` with ``value`` at these numbers of its first axes.

    The numbers are an input of the kernel, not attributes, so one plan serves all rows.
    """
    context = current_context()
    index = engine_of(context).constant(context, indexing.GATHER_ND, 1, numbers, x)
    row = _broadcast_value(value, x.shape[len(numbers) :], x)
    return writing.tensor_scatter_update(x, index, row)


def _replace_picks(block: Tensor, subscript: Subscript, value: Tensor, x: Tensor) -> Tensor:
    """Return ``block`` with ``value`` in the places that the picks select.

    ``block`` is the result of the subscript's slices on x.
    """
    first = subscript.picks[0]
    if len(subscript.picks) == 1 and first.mask:
        after = block.ndim - first.axis - first.count
        if value.ndim <= after or value.size == 1:
            return _replace_where(block, first, value, after, x)
    rows, axes = combine_indices(block, subscript.picks)
    rest = [axis for axis in range(block.ndim) if axis not in axes]
    count = rows.ndim - 1
    place = subscript.place
    sizes = [block.shape[axis] for axis in rest]
    shape = (*sizes[:place], *rows.shape[:-1], *sizes[place:])
    updates = move_axes(_broadcast_value(value, shape, x), place, 0, count)
    order = (*axes, *rest)
    in_order = order == tuple(range(block.ndim))
    front = block if in_order else movement.permute_dims(block, order)
    written = writing.tensor_scatter_update(front, rows, updates)
    if in_order:
        return written
    inverse = [0] * len(order)
    for position, axis in enumerate(order):
        inverse[axis] = position
    return movement.permute_dims(written, inverse)


def _replace_where(block: Tensor, pick: Pick, value: Tensor, after: int, x: Tensor) -> Tensor:
    """Return ``block`` with one value wherever a mask is true, however many places these are."""
    mask = as_tensor(pick.index, what="indexing: a mask")
    tail = block.shape[block.ndim - after :]
    if value.ndim > after:
        value = movement.reshape(value, ())
    fitted = _broadcast_value(value, tail, x) if after else value
    return choosing.where(movement.reshape(mask, (*mask.shape, *(1,) * after)), fitted, block)
