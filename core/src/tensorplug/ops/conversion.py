"""What a caller has, as a tensor: copied, or over the caller's own memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import as_tensor, placed_beside
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
        dtype: of the result. By default an array keeps its own, Python floats become float32,
            ints int32 (int64 if they do not fit), bools bool.
        device: where it is to be, such as ``"cpu"``, or ``x.device`` of a tensor; by default
            a tensor stays where it is, and all else goes to the active one.
        copy: True gives a tensor a new handle (tensors are values, so they share the data).
            Data from outside is copied by default, so that later writes to it are not seen.
            False shares the memory of an array, or of what else has Python's buffer protocol,
            as ``from_dlpack`` does: then they are seen. It refuses where a copy is needed.

    Raises:
        ShapeError: ragged lists.
        DTypeError: object arrays, or a dtype the device does not have.
        ArgumentError: a number that does not fit ``dtype``.
        CopyNeededError: ``copy=False``, but ``obj`` is a list or a number, or there is another
            dtype or device, or one that does not share the host's memory.

    """
    wanted = None if dtype is None else dt.of(dtype, "asarray")
    if copy is False and not hasattr(obj, "_placement"):
        return _borrowed(obj, wanted, device)
    if _stays(obj, wanted, device):
        return placed_beside(obj, None, lambda: identity(obj)) if copy else obj
    tensor = placed_beside(obj, device, lambda: as_tensor(obj, wanted, what="asarray: obj"))
    if copy is False:
        asked = f"{tensor.dtype} on {tensor.device!r}"
        raise CopyNeededError(
            f"asarray: obj, {obj.type} on {obj.device!r}, must be copied to become {asked}; "
            "leave copy=False out"
        )
    return tensor


def _stays(obj: Any, dtype: DType | None, device: str | None) -> bool:
    """Return whether ``obj`` is a live tensor of that dtype, and there already."""
    if not hasattr(obj, "_placement") or hasattr(obj.__class__, "_reading") or obj.is_disposed:
        return False  # no tensor, or a variable, which is read
    return dtype in (None, obj.dtype) and device in (None, obj.device)


def _borrowed(obj: Any, dtype: DType | None, device: str | None) -> Tensor:
    """Return the elements of an array, or of what else lends its memory, without a copy.

    What the owner writes there later is seen in the tensor, as with ``from_dlpack``.

    Raises:
        CopyNeededError: ``obj`` lends no memory, or its elements are not laid out as ``dtype``
            is on the device, or the device does not share the host's memory.
        DTypeError: tensors, or the device's, have no such dtype.

    """
    try:
        array = np.asarray(obj, copy=False)
    except ValueError:
        why = f"a {type(obj).__name__} has no memory that a tensor could share"
        raise CopyNeededError(_refusal(why)) from None
    own = dt.of(array.dtype, "asarray")
    if own is dt.string:
        raise CopyNeededError(_refusal("text is laid out in another way in tensors"))
    if dtype not in (None, own):
        raise CopyNeededError(_refusal(f"it is {own}, and {dtype} is wanted"))
    if array.dtype != own.numpy or not array.flags.aligned:
        why = f"its elements ({array.dtype.str!r}) are not laid out as this machine reads them"
        raise CopyNeededError(_refusal(why))
    context = current_context()
    return engine_of(context).convert(
        context, array, None, "asarray: obj", device=device, copy=False
    )


def _refusal(why: str) -> str:
    return f"asarray: obj must be copied, since {why}; leave copy=False out"
