"""Conversion to tensors, by a copy or over the caller's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor, run_near
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import CopyNeededError
from tensorplug.ops.movement import identity

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor

__all__ = ["asarray"]


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """Return ``obj`` as a tensor.

    Args:
        obj: a tensor, a Python number, nested lists of them, a NumPy array, or anything that
            NumPy can read as an array.
        dtype: of the result. By default an array keeps its dtype, Python floats become float32,
            ints int32 (int64 if they do not fit), bools bool.
        device: of the result, such as ``"cpu"`` or ``x.device``. By default a tensor stays on
            its device; other data goes to the active device.
        copy: True gives a tensor a new handle (tensors are values, so they share the data).
            Data from outside is copied by default, so that later writes to it are not seen.
            False shares the memory of an array, or of another object with Python's buffer
            protocol, as ``from_dlpack`` does. Later writes to it are seen then.

    Raises:
        ShapeError: ragged lists.
        DTypeError: object arrays, or a dtype the device does not have.
        ArgumentError: a number does not fit ``dtype``.
        CopyNeededError: ``copy=False``, but ``obj`` is a list or a number, or has another dtype
            or device, or the device does not share the host's memory.

    """
    wanted = None if dtype is None else dt.of(dtype, "asarray")
    if copy is False and not hasattr(obj, "_placement"):
        return _borrow(obj, wanted, device)
    if _stays(obj, wanted, device):
        return run_near(obj, None, lambda: identity(obj)) if copy else obj
    tensor = run_near(obj, device, lambda: as_tensor(obj, wanted, what="asarray: obj"))
    if copy is False:
        asked = f"{tensor.dtype} on {tensor.device!r}"
        raise CopyNeededError(
            f"asarray: obj, {obj.type} on {obj.device!r}, must be copied to become {asked}; "
            "leave copy=False out"
        )
    return tensor


def _stays(obj: Any, dtype: DType | None, device: str | None) -> bool:
    """Return whether ``obj`` is a live tensor of that dtype on that device."""
    if not hasattr(obj, "_placement") or hasattr(obj.__class__, "_reading") or obj.is_disposed:
        return False  # not a tensor, or a variable, which must be read
    return dtype in (None, obj.dtype) and device in (None, obj.device)


def _borrow(obj: Any, dtype: DType | None, device: str | None) -> Tensor:
    """Return a tensor over the memory of an array, or of another object with a buffer.

    The tensor shows later writes of the owner, as with ``from_dlpack``.

    Raises:
        CopyNeededError: ``obj`` has no buffer, or its elements are not laid out as ``dtype``
            is on the device, or the device does not share the host's memory.
        DTypeError: tensors, or the device, do not have the dtype.

    """
    try:
        array = np.asarray(obj, copy=False)
    except ValueError:
        why = f"a {type(obj).__name__} has no memory that a tensor could share"
        raise CopyNeededError(_explain_refusal(why)) from None
    own = dt.of(array.dtype, "asarray")
    if own is dt.string:
        raise CopyNeededError(_explain_refusal("tensors lay strings out differently"))
    if dtype not in (None, own):
        raise CopyNeededError(_explain_refusal(f"it is {own}, not {dtype}"))
    if array.dtype != own.numpy or not array.flags.aligned:
        why = f"its elements ({array.dtype.str!r}) are not in this machine's layout"
        raise CopyNeededError(_explain_refusal(why))
    context = current_context()
    return engine_of(context).convert(
        context, array, None, "asarray: obj", device=device, copy=False
    )


def _explain_refusal(why: str) -> str:
    return f"asarray: obj must be copied, since {why}; leave copy=False out"
