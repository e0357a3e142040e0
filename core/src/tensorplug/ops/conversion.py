"""Conversion to tensors, by a copy or over the caller's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import flag
from tensorplug.dispatch import host_values
from tensorplug.dispatch.calls import as_tensor, run_near, run_on, to_device
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.errors import ArgumentError, CopyNeededError, DTypeError, ShapeError
from tensorplug.ops.joining import stack
from tensorplug.ops.movement import identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.typing import DTypeLike, SupportsBuffer, TensorLike

__all__ = ["asarray"]

_WHAT: Final = "asarray: obj"


def asarray(
    obj: TensorLike | SupportsBuffer,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Return ``obj`` as a tensor.

    Args:
        obj: a tensor, a Python number, nested lists of them, a NumPy array, or anything that
            NumPy can read as an array. Tensors in a list are stacked, with their gradients.
        dtype: of the result: a dtype, its name, a Python type or a NumPy dtype. By default an
            array keeps its dtype, Python floats become float32, ints int32 (int64 if they do not
            fit), bools bool. Tensors and arrays in a list are promoted, and Python numbers beside
            them follow.
        device: of the result, such as ``"cpu"`` or ``x.device``. By default a tensor stays on
            its device; other data goes to the active device.
        copy: True gives a tensor a new handle (tensors are values, so they share the data).
            Data from outside is copied by default, so that later writes to it are not seen.
            False shares the memory of an array, or of another object with Python's buffer
            protocol, as ``from_dlpack`` does. Later writes to it are seen then.

    Raises:
        ShapeError: ragged lists.
        DTypeError: object arrays, or a dtype the device does not have; no common dtype.
        ArgumentError: a number does not fit ``dtype``.
        CopyNeededError: ``copy=False``, but ``obj`` is a list or a number, or has another dtype
            or device, or the device does not share the host's memory.

    Source: the array API standard.

    Examples:
        >>> tp.asarray([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [3, 4]], dtype=int32, device='cpu')
        >>> tp.asarray(np.linspace(0, 1, 3))
        Tensor([0. , 0.5, 1. ], dtype=float64, device='cpu')
        >>> tp.asarray([1, 2], dtype="bfloat16")
        Tensor([1., 2.], dtype=bfloat16, device='cpu')
        >>> x = tp.asarray([2.0, 3.0])
        >>> tp.asarray([[x[0], 0.0], [1.0, x[1]]])
        Tensor([[2., 0.],
                [1., 3.]], dtype=float32, device='cpu')

    """
    result_dtype = None if dtype is None else dt.of(dtype, "asarray")
    if copy is not None:
        flag(copy, "asarray: copy")
    if copy is False and not hasattr(obj, "_placement"):
        return _borrow(obj, result_dtype, device)
    if _stays(obj, result_dtype, device):
        tensor = run_near(obj, None, lambda: identity(obj)) if copy else obj
        return tensor if device is None else to_device(tensor, device)
    try:
        tensor = run_near(obj, device, lambda: as_tensor(obj, result_dtype, what=_WHAT))
    except ShapeError:
        raise
    except ArgumentError:  # asked only now, because it takes a walk through the list
        if not _holds_tensors(obj):
            raise
        members: Sequence[Any] = obj
        tensor = run_on(device, lambda: _join(members, result_dtype or _common_dtype(members)))
    if copy is False:
        source: Any = obj  # a tensor or a variable
        asked = f"{tensor.dtype} on {tensor.device!r}"
        raise CopyNeededError(
            f"asarray: obj, {source.type} on {source.device!r}, must be copied to become {asked}; "
            "leave copy=False out"
        )
    return tensor


def _stays(obj: Any, dtype: DType | None, device: str | None) -> TypeGuard[Tensor]:
    """Return whether ``obj`` is a live tensor of that dtype on that device."""
    if not hasattr(obj, "_placement") or hasattr(obj.__class__, "_reading") or obj.is_disposed:
        return False  # not a tensor, or a variable, which must be read
    return dtype in (None, obj.dtype) and device in (None, obj.device)


def _holds_tensors(obj: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether nested lists hold a tensor."""
    return isinstance(obj, list | tuple) and any(
        hasattr(member, "_placement")
        for level in host_values.levels(obj)
        for row in level
        for member in row
    )


def _common_dtype(obj: Sequence[Any]) -> DType:
    """Return the dtype to which the elements of nested lists promote; numbers are weak.

    Raises:
        DTypeError: there is none, or an element is neither a number nor an array.

    """
    numbers: list[Any] = []
    own: list[DType] = []
    pending: list[Any] = [*obj]
    while pending:
        member = pending.pop()
        if isinstance(member, list | tuple):
            pending.extend(member)
        elif host_values.is_scalar(member):
            numbers.append(member)
        else:
            placed = hasattr(member, "_placement")
            own.append(member.dtype if placed else as_tensor(member, what=_WHAT).dtype)
    try:
        peer = dt.promote(own)
        return dt.promote([peer, *(dt.of_scalar(number, peer) for number in numbers)])
    except DTypeError as error:
        raise DTypeError(f"{_WHAT}: {error}") from None


def _join(members: Sequence[Any], dtype: DType) -> Tensor:
    """Return nested lists of tensors, arrays and numbers as one tensor, connected to the tape.

    Raises:
        ShapeError: the lists are ragged.

    """
    parts = [
        _join(member, dtype) if _holds_tensors(member) else as_tensor(member, dtype, what=_WHAT)
        for member in members
    ]
    shapes = sorted({part.shape for part in parts})
    if len(shapes) > 1:
        listed = " and ".join(str(list(shape)) for shape in shapes)
        raise ShapeError(
            f"{_WHAT}: nested lists must be rectangular, but have members of {listed}"
        )
    return stack(parts)


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
    return engine_of(context).convert(context, array, None, _WHAT, device=device, copy=False)


def _explain_refusal(why: str) -> str:
    return f"asarray: obj must be copied, since {why}; leave copy=False out"
