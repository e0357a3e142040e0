"""From what a caller passes to live tensors on one device, and what names the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch import host_values, keys
from tensorplug.dispatch.calls import MULTIPLE_OUTPUTS, placements_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    CopyNeededError,
    DisposedError,
    DTypeError,
)
from tensorplug.tensors.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import KernelSpec
    from tensorplug.dispatch.device import Device

__all__ = [
    "bring",
    "index_constant",
    "key",
    "operands",
    "outside",
    "received",
    "transfer",
    "types_of",
    "unsupported",
    "upload",
    "weak",
]


def unsupported(type_: TensorType, device: Device) -> str:
    """Return the message that ``device`` has no such dtype."""
    names = ", ".join(sorted(dtype.name for dtype in device.backend.dtypes))
    return f"{type_} is not possible on backend {device.name!r}, whose dtypes are {names}"


def upload(array: Any, device: Device, *, shared: bool = False) -> Tensor:
    """Return a NumPy array as a tensor on ``device``, over the array's own memory if ``shared``.

    Raises:
        DTypeError: when the device has no such dtype.
        BackendMemoryError: when it has no room.

    """
    type_ = TensorType(dt.of(array.dtype), array.shape)
    home = device.home(type_.dtype)
    if home is None:
        raise DTypeError(unsupported(type_, device))
    backend: Any = home.backend  # the caller knows that it can share
    make = backend.share_from_host if shared else backend.from_host
    return Tensor._of(make(array), home.placement(type_))


def transfer(tensor: Tensor, device: Device) -> Tensor:
    """Copy ``tensor`` to ``device`` through the host."""
    source = tensor._live()
    if device.can_use(tensor._placement):
        return tensor
    moved = upload(source.backend.to_host(tensor._buffer), device)
    moved._node = tensor._node
    return moved


def bring(tensor: Tensor, device: Device, what: str) -> Tensor:
    """Return a tensor of another device here, counted; raise if its data is gone."""
    try:
        tensor._live()
    except (DisposedError, BackendClosedError) as error:
        raise type(error)(f"{what}: {error}") from None
    device.counters.transfers_in += 1
    try:
        return transfer(tensor, device)
    except Exception as error:
        error.add_note(f"while {what} ({tensor.type}) was brought to backend {device.name!r}")
        raise


def operands(device: Device, spec: KernelSpec, inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs as live tensors on ``device`` (lists of them, None if absent)."""
    if len(inputs) != len(spec.declared):
        raise ArgumentError(f"{spec.name} takes {len(spec.declared)} inputs, got {len(inputs)}")
    result: list[Any] = []
    seen: dict[int, Tensor] = {}
    weak = False
    for declared, value in zip(spec.declared, inputs, strict=True):
        if value.__class__ is Tensor and value._placement.device is device:
            result.append(value)
        elif value is None or host_values.is_scalar(value):
            weak = weak or value is not None
            result.append(value)
        else:
            what = f"{spec.name}: input {declared.name!r}"
            if declared.variadic and isinstance(value, list | tuple):
                result.append([_operand(device, item, what, seen) for item in value])
            else:
                result.append(_operand(device, value, what, seen))
    return _fill_scalars(device, spec, result) if weak else result


def _operand(device: Device, value: Any, what: str, seen: dict[int, Tensor]) -> Tensor:
    """Return one input as a tensor on ``device``; ``seen``: the variables read for this call."""
    if isinstance(value, Tensor):
        tensor = value
        if isinstance(value, Variable):
            if id(value) not in seen:
                seen[id(value)] = value._reading()
            tensor = seen[id(value)]
        if tensor._placement.device is device or device.can_use(tensor._placement):
            return tensor
        return bring(tensor, device, what)
    return outside(value, None, device, what)


def outside(value: Any, dtype: DType | None, device: Device, what: str) -> Tensor:
    """Return what is no tensor yet as one on ``device``; ``what`` names it in messages.

    Raises:
        ShapeError, ArgumentError, DTypeError: it is no array, or the device cannot hold it.
        BackendMemoryError: when the device has no room.

    """
    try:
        return upload(host_values.as_array(value, dtype), device)
    except (ArgumentError, DTypeError) as error:
        raise type(error)(f"{what}: {error}") from None
    except Exception as error:
        error.add_note(f"while {what} was brought to backend {device.name!r}")
        raise


def received(
    array: np.ndarray[Any, Any], device: Device, what: str, *, copy: bool | None
) -> Tensor:
    """Return an array as a tensor on ``device``, over its own memory if ``copy`` allows it.

    Raises:
        CopyNeededError: ``copy`` is False, but the device does not share the host's memory.
        DTypeError, BackendMemoryError: the device cannot hold it.

    """
    shares = device.capabilities.shares_memory is not None
    if copy is False and not shares:
        raise CopyNeededError(
            f"{what} must be copied, since backend {device.name!r} does not share the host's "
            "memory; leave copy=False out"
        )
    try:
        return upload(array, device, shared=shares and not copy)
    except DTypeError as error:
        raise DTypeError(f"{what}: {error}") from None
    except Exception as error:
        error.add_note(f"while {what} was brought to backend {device.name!r}")
        raise


def _fill_scalars(device: Device, spec: KernelSpec, values: list[Any]) -> list[Any]:
    """Replace Python scalars by constants of the dtype they take beside the tensors."""
    peer: DType | None = None
    for name, value in zip(spec.input_names, values, strict=True):
        if name in spec.promote and isinstance(value, Tensor) and value.dtype is not peer:
            peer = value.dtype if peer is None else _common(spec, peer, value.dtype)
    return [
        value
        if value is None or isinstance(value, Tensor | list)
        else weak(device, spec, at, value, peer)
        for at, value in enumerate(values)
    ]


def weak(
    device: Device, spec: KernelSpec, position: int, value: Any, peer: DType | None
) -> Tensor:
    """Return a Python number, input ``position`` of a call, as a constant of the dtype it takes.

    ``peer``: the dtype of the tensors beside it, None without any.
    """
    name = spec.input_names[position]
    beside = peer if name in spec.promote else None
    # Equal numbers share a constant unless they differ in type or in the sign of a zero, of
    # which a complex number has two. A NaN equals nothing: its text stands for it where it is
    # part of a complex number, which are new objects at each call.
    whole = value.__class__ is complex
    known = None if whole and value != value else value  # noqa: PLR0124
    kind = (known, value.__class__, beside, str(value) if whole or value == 0 else "")
    constant: Tensor | None = device.constants.get(kind)
    if constant is None:
        constant = _constant(device, f"{spec.name}: input {name!r}", value, beside)
        device.remember(device.constants, kind, constant)
    return constant


def index_constant(device: Device, numbers: tuple[int, ...]) -> Tensor:
    """Return integers, which are not negative, as a constant of rank 1."""
    kind = ("index", numbers)
    constant: Tensor | None = device.constants.get(kind)
    if constant is None:
        wide = any(number >> 31 for number in numbers)
        constant = upload(np.array(numbers, np.int64 if wide else np.int32), device)
        device.remember(device.constants, kind, constant)
    return constant


def _common(spec: KernelSpec, a: DType, b: DType) -> DType:
    try:
        return dt.promote((a, b))
    except DTypeError as error:
        raise DTypeError(f"{spec.name}: {error}") from None


def _constant(device: Device, what: str, value: dt.Scalar, beside: DType | None) -> Tensor:
    try:
        return upload(host_values.scalar(value, dt.of_scalar(value, beside)), device)
    except (ArgumentError, DTypeError) as error:
        raise type(error)(f"{what}: {error}") from None
    except Exception as error:
        error.add_note(f"while {what} was brought to backend {device.name!r}")
        raise


def types_of(tensors: Sequence[Any]) -> list[Any]:
    """Return the types of a call's inputs: of a list a list, None of an absent one."""
    return [
        types_of(tensor) if isinstance(tensor, list) else None if tensor is None else tensor.type
        for tensor in tensors
    ]


def key(
    spec: KernelSpec, tensors: Sequence[Any], attributes: Mapping[str, Any]
) -> Hashable | None:
    """Return what names a plan, the same as in ``dispatch``.

    None where an attribute cannot be hashed: such a call is resolved every time.
    """
    multiple = [MULTIPLE_OUTPUTS] if spec.multiple_outputs else []
    placements = [*multiple, *placements_of(tensors)]
    if not attributes:
        return (spec, *placements)
    try:
        return (spec, *placements, *keys.freeze_attributes(attributes))
    except TypeError:
        return None
