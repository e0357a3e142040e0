"""Preparing the inputs of a call: live tensors on one device, constants, and the plan's key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract.extents import Extent
from tensorplug.contract.spec import TensorType
from tensorplug.dispatch import host_values, keys
from tensorplug.dispatch.calls import MULTIPLE_OUTPUTS, placements_of
from tensorplug.dispatch.commitment import find_root
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


def flatten(operands: Sequence[Any]) -> list[Any]:
    """Return what stands for the inputs of a call in one list, without absent ones.

    An input is one object, a list of them for a variadic one, or None.
    """
    tensors: list[Any] = []
    for operand in operands:
        if isinstance(operand, list):
            tensors += operand
        elif operand is not None:
            tensors.append(operand)
    return tensors


def find_device(device: Device, spec: KernelSpec, inputs: Sequence[Any]) -> Device:
    """Return the device for a call: that of committed inputs, else ``device``, the current one.

    Raises:
        DeviceMismatchError: inputs are committed to different devices.

    """
    for value in inputs:
        if value.__class__ is not Tensor or value._placement.committed:
            break
    else:
        return device  # the most frequent case
    tensors: list[Any] = []
    names: list[str] = []
    for name, value in zip(spec.input_names, inputs, strict=False):
        for member in value if isinstance(value, list | tuple) else (value,):
            if isinstance(member, Tensor) and member._placement.committed:
                tensors.append(member)
                names.append(name)
    if not tensors:
        return device
    root = find_root(tensors, spec.name, lambda at: f"input {names[at]!r}")
    return device if root is None else device.beside(root)


def unsupported(type_: TensorType, device: Device) -> str:
    """Return the message that ``device`` does not support a dtype."""
    names = ", ".join(sorted(dtype.name for dtype in device.dtypes))
    return f"{type_} is not possible on backend {device.name!r}, whose dtypes are {names}"


def upload(array: Any, device: Device, *, shared: bool = False) -> Tensor:
    """Copy a NumPy array to ``device``; if ``shared``, use the array's own memory.

    Raises:
        DTypeError: the device does not support the dtype.
        BackendMemoryError: the device has no room.

    """
    type_ = TensorType(dt.of(array.dtype), array.shape)
    home = device.storage().home(type_.dtype)
    if home is None:
        raise DTypeError(unsupported(type_, device))
    backend: Any = home.backend  # the caller knows that it can share
    make = backend.share_from_host if shared else backend.from_host
    return Tensor._of(make(array), home.placement(type_))


def transfer(tensor: Tensor, device: Device) -> Tensor:
    """Return ``tensor`` on ``device``, copied through the host if necessary."""
    source = tensor._live()
    if device.can_use(tensor._placement):
        return tensor
    moved: Tensor | None = source.carry(tensor, device)
    if moved is None:
        moved = upload(source.read(tensor._buffer, tensor.type), device)
    moved._node = tensor._node
    return moved


def transfer_input(tensor: Tensor, device: Device, what: str) -> Tensor:
    """Copy an input from another device to ``device``, and count it.

    Raises:
        DisposedError, BackendClosedError: the tensor was disposed, or its backend was closed.

    """
    try:
        tensor._live()
    except (DisposedError, BackendClosedError) as error:
        raise type(error)(f"{what}: {error}") from None
    device.counters.transfers_in += 1
    try:
        return transfer(tensor, device)
    except Exception as error:
        error.add_note(f"while copying {what} ({tensor.type}) to backend {device.name!r}")
        raise


def prepare_inputs(device: Device, spec: KernelSpec, inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs as live tensors on ``device``, or lists of them; None if absent."""
    if len(inputs) != len(spec.declared):
        raise ArgumentError(f"{spec.name} takes {len(spec.declared)} inputs, got {len(inputs)}")
    result: list[Any] = []
    made: dict[int, Tensor] = {}
    scalars = False
    for declared, value in zip(spec.declared, inputs, strict=True):
        if value.__class__ is Tensor and value._placement.device is device:
            result.append(value)
        elif value is None or host_values.is_scalar(value):
            scalars = scalars or value is not None
            result.append(value)
        else:
            what = f"{spec.name}: input {declared.name!r}"
            if declared.variadic and isinstance(value, list | tuple):
                result.append([_prepare_input(device, member, what, made) for member in value])
            else:
                result.append(_prepare_input(device, value, what, made))
    return _fill_scalars(device, spec, result) if scalars else result


def _prepare_input(device: Device, value: Any, what: str, made: dict[int, Tensor]) -> Tensor:
    """Return one input as a tensor on ``device``.

    ``made``: what became of tensors that the call has more than once: each variable is read, and
    each tensor copied, only once.
    """
    if not isinstance(value, Tensor):
        return import_value(value, None, device, what)
    tensor = made.get(id(value))
    if tensor is None:
        tensor = value._reading() if isinstance(value, Variable) else value
        if tensor._placement.device is not device and not device.can_use(tensor._placement):
            tensor = transfer_input(tensor, device, what)
        made[id(value)] = tensor
    return tensor


def import_value(value: Any, dtype: DType | None, device: Device, what: str) -> Tensor:
    """Return a value that is not a tensor as a tensor on ``device``.

    ``what`` names the value in messages.

    Raises:
        ShapeError, ArgumentError, DTypeError: it is not an array, or the device does not support
            its dtype.
        BackendMemoryError: the device has no room.

    """
    traced: Tensor | None = device.interpreter.number(value, dtype)
    if traced is not None:
        return traced
    try:
        return upload(host_values.as_array(value, dtype), device)
    except (ArgumentError, DTypeError) as error:
        raise type(error)(f"{what}: {error}") from None
    except Exception as error:
        error.add_note(f"while copying {what} to backend {device.name!r}")
        raise


def import_array(
    array: np.ndarray[Any, Any], device: Device, what: str, *, copy: bool | None
) -> Tensor:
    """Return an array as a tensor on ``device``, sharing its memory if ``copy`` permits.

    Raises:
        CopyNeededError: ``copy`` is False, but the device does not use host memory.
        DTypeError, BackendMemoryError: the device does not support the dtype, or has no room.

    """
    shares = device.capabilities.shares_memory is not None
    if copy is False and not shares:
        raise CopyNeededError(
            f"{what} must be copied, since backend {device.name!r} does not use host memory; "
            "omit copy=False"
        )
    try:
        return upload(array, device, shared=shares and not copy)
    except DTypeError as error:
        raise DTypeError(f"{what}: {error}") from None
    except Exception as error:
        error.add_note(f"while copying {what} to backend {device.name!r}")
        raise


def _fill_scalars(device: Device, spec: KernelSpec, values: list[Any]) -> list[Any]:
    """Replace scalars by constants, whose dtype follows that of the tensors."""
    peer = _peer(spec, values)
    if peer is None:  # without tensors, Python's numbers follow NumPy's scalars
        values = [
            scalar_constant(device, spec, at, value, None) if dt.is_numpy_scalar(value) else value
            for at, value in enumerate(values)
        ]
        peer = _peer(spec, values)
    return [
        value
        if value is None or isinstance(value, Tensor | list)
        else scalar_constant(device, spec, at, value, peer)
        for at, value in enumerate(values)
    ]


def _peer(spec: KernelSpec, values: Sequence[Any]) -> DType | None:
    """Return the common dtype of the tensors among the promoted inputs; None without any."""
    peer: DType | None = None
    for name, value in zip(spec.input_names, values, strict=True):
        if name in spec.promote and isinstance(value, Tensor) and value.dtype is not peer:
            peer = value.dtype if peer is None else _common(spec, peer, value.dtype)
    return peer


def scalar_constant(
    device: Device, spec: KernelSpec, position: int, value: Any, peer: DType | None
) -> Tensor:
    """Return a Python number or a NumPy scalar, input ``position`` of a call, as a constant.

    ``peer``: the common dtype of the call's tensors, which the constant follows; None without any.
    """
    name = spec.input_names[position]
    peer = peer if name in spec.promote else None
    traced: Tensor | None = device.interpreter.number(value, peer=peer)
    if traced is not None:
        return traced
    device = device.interpreter.constants(device)
    if value.__class__ is Extent:
        value = int(value)
    if isinstance(value, np.generic):
        peer = dt.of_scalar(value, peer)
        value = dt.as_number(value)
    # Equal numbers share a constant unless they differ in type or in the sign of a zero, of
    # which a complex number has two. Complex NaNs are new objects in each call, and a NaN is not
    # equal to itself: they are compared as text.
    is_complex = value.__class__ is complex
    number = None if is_complex and value != value else value  # noqa: PLR0124
    key = (number, value.__class__, peer, str(value) if is_complex or value == 0 else "")
    constant: Tensor | None = device.constants.get(key)
    if constant is None:
        constant = _make_constant(device, f"{spec.name}: input {name!r}", value, peer)
        device.remember(device.constants, key, constant)
    return constant


def index_constant(device: Device, numbers: tuple[int, ...]) -> Tensor:
    """Return non-negative integers as a constant of rank 1."""
    device = device.interpreter.constants(device)
    key = ("index", numbers)
    constant: Tensor | None = device.constants.get(key)
    if constant is None:
        wide = any(number >> 31 for number in numbers)
        constant = upload(np.array(numbers, np.int64 if wide else np.int32), device)
        device.remember(device.constants, key, constant)
    return constant


def _common(spec: KernelSpec, a: DType, b: DType) -> DType:
    try:
        return dt.promote((a, b))
    except DTypeError as error:
        raise DTypeError(f"{spec.name}: {error}") from None


def _make_constant(device: Device, what: str, value: dt.Scalar, peer: DType | None) -> Tensor:
    try:
        return upload(host_values.scalar(value, dt.of_scalar(value, peer)), device)
    except (ArgumentError, DTypeError) as error:
        raise type(error)(f"{what}: {error}") from None
    except Exception as error:
        error.add_note(f"while copying {what} to backend {device.name!r}")
        raise


def types_of(tensors: Sequence[Any]) -> list[Any]:
    """Return the types of a call's inputs: a list for a list, None if absent."""
    types: list[Any] = []
    for tensor in tensors:
        if isinstance(tensor, list):
            types.append(types_of(tensor))
        else:
            types.append(None if tensor is None else tensor._placement.type)
    return types


def plan_key(
    spec: KernelSpec, tensors: Sequence[Any], attributes: Mapping[str, Any]
) -> Hashable | None:
    """Return the key of a call's plan, as in ``dispatch``.

    It is None if an attribute is not hashable; such a call is resolved every time.
    """
    multiple = [MULTIPLE_OUTPUTS] if spec.multiple_outputs else []
    placements = [*multiple, *placements_of(tensors)]
    if not attributes:
        return (spec, *placements)
    try:
        return (spec, *placements, *keys.freeze_attributes(attributes))
    except TypeError:
        return None
