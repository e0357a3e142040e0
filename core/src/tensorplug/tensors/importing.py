"""Tensors of other libraries' arrays, by DLPack, and of a backend's own buffers.

docs/adr/0010 defines which memory is shared. NumPy reads all capsules (see ``dlpack_codes``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import dtypes as dt
from tensorplug.contract.arguments import is_text, optional_flag
from tensorplug.dispatch.calls import HOST
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    CopyNeededError,
    DLPackNotSupportedError,
    DTypeError,
    InterchangeError,
)
from tensorplug.tensors import dlpack_codes

if TYPE_CHECKING:
    import numpy as np

    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.device import Device
    from tensorplug.typing import SupportsDLPack


_READABLE: Final = {1, 3, 11, 13}  # kDLCPU; pinned and managed memory, also readable by the host
_UNREADABLE: Final = {
    2: "kDLCUDA",
    4: "kDLOpenCL",
    7: "kDLVulkan",
    8: "kDLMetal",
    9: "kDLVPI",
    10: "kDLROCM",
    12: "kDLExtDev",
    14: "kDLOneAPI",
    15: "kDLWebGPU",
    16: "kDLHexagon",
    17: "kDLMAIA",
    18: "kDLTrn",
}


def from_dlpack(
    x: SupportsDLPack, /, *, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """Return the data of another library's array as a tensor.

    If the device uses host memory, such as ``"cpu"``, the tensor shares the memory of ``x``, and
    keeps it alive. Later writes to ``x`` then change the tensor, unless ``copy=True``. The same
    holds on the device of a backend that exchanges its memory.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``, whose data is in host memory,
            or on the device if its backend exchanges memory. Arrays of NumPy, PyTorch and JAX
            have these methods, and so do tensors.
        device: of the tensor, such as ``"opencl"``; by default the active one, or that of ``x`` if
            it is a committed tensor.
        copy: True always copies, False never does; by default, copy only if necessary.

    Raises:
        DLPackNotSupportedError: ``x`` has no such methods.
        GradientError: ``x`` is a tensor for which a gradient is being recorded.
        InterchangeError: its data is neither in host memory nor on the device, or NumPy cannot
            read it.
        CopyNeededError: ``copy`` is False, but the memory cannot be shared.
        DTypeError: tensorplug or the device does not support the dtype, such as float6_e3m2fn.
        BackendMemoryError: the device has no room for a copy.
        BufferError: PyTorch raises it if ``x`` requires a gradient. Other libraries may raise
            other errors if they cannot export, and ``device`` those of ``use_backend``.

    Examples:
        >>> array = np.asarray([1.0, 2.0])
        >>> x = tp.from_dlpack(array)
        >>> array[0] = 5.0  # the tensor shares the memory
        >>> x
        Tensor([5., 2.], dtype=float64, device='cpu')

    """
    context = current_context()
    optional_flag(copy, "from_dlpack: copy")
    engine = engine_of(context)
    if device is None and isinstance(x, Tensor) and x.is_committed:
        device = x.device
    place, producer = _look_at(x)
    if not is_text(device, HOST):
        target = context.device or engine.open(None) if device is None else engine.open(device)
        exchanges = target.capabilities.exchanges
        if exchanges is not None and place == exchanges.dlpack_device():
            buffer = exchanges.from_dlpack(x, copy=copy)
            type_ = target.backend.describe(buffer)
            return _take(context, target, buffer, type_, committed=device is not None)
    array = _import_array(x, place, producer, copy=copy)
    return engine.convert(context, array, None, "from_dlpack: x", device=device, copy=copy)


def tensor_from_buffer(buffer: Buffer, device: str) -> Tensor:
    """Return a buffer of a backend as a tensor.

    A backend's package offers functions with this that take arrays of the library below it, as
    ``tensorplug_dask.from_dask`` does. Nothing is copied, so the buffer must not change any more.

    Args:
        buffer: as kernels of the backend return them.
        device: the backend's name, or one of its devices, as for ``use_backend``. The tensor is
            committed to it.

    Raises:
        TypeError: ``buffer`` is not one of the backend's buffers.
        DTypeError: the backend does not support its dtype.

    ``device`` raises as in ``use_backend``.

    """
    context = current_context()
    target = engine_of(context).open(device)
    type_ = target.backend.describe(buffer)
    if type_.dtype not in target.backend.dtypes:
        raise DTypeError(
            f"tensor_from_buffer: {type_.dtype} is not among the dtypes of backend {device!r}"
        )
    return _take(context, target, buffer, type_, committed=True)


def _take(
    context: Context, device: Device, buffer: Buffer, type_: TensorType, *, committed: bool
) -> Tensor:
    """Return a tensor of a buffer that the backend has made of foreign memory."""
    tensor = Tensor._of(buffer, device.placement(type_, committed=committed))
    if context.scope is not None:
        context.scope.adopt(tensor)
    for observer in (*context.observers, *engine_of(context).observers):
        observer.uploaded(tensor)
    return tensor


def _look_at(x: Any) -> tuple[tuple[Any, int], str]:
    """Return the DLPack device of ``x``, and the name of its class for messages.

    Raises:
        DLPackNotSupportedError: it has no methods of DLPack.

    """
    cls = type(x)
    producer = f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise DLPackNotSupportedError(
            f"from_dlpack: {producer} has no __dlpack__ and __dlpack_device__; try asarray"
        )
    try:
        return plain_device(x.__dlpack_device__()), producer
    except Exception as error:
        error.add_note(f"while from_dlpack exported {producer}")
        raise


def _import_array(
    x: Any, device: tuple[Any, int], producer: str, *, copy: bool | None
) -> np.ndarray[Any, Any]:
    """Return a view of the producer's memory."""
    kind, number = device
    try:
        capsule = _request_capsule(x, copy=copy) if kind in _READABLE else None
    except Exception as error:
        error.add_note(f"while from_dlpack exported {producer}")
        raise
    if capsule is None:
        raise InterchangeError(
            f"from_dlpack: {producer} is on device {_UNREADABLE.get(kind, kind)}:{number}, not in "
            "host memory; copy it there first (in PyTorch with x.cpu())"
        )
    try:
        array = dlpack_codes.read(capsule)
    except (BufferError, RuntimeError) as error:  # NumPy raises either
        dtype = str(getattr(x, "dtype", "an unknown dtype")).rpartition(".")[2]
        message = f"from_dlpack: {producer} of {dtype} cannot be read: {error}"
        supported = sorted(map(str, dt.FIXED | dlpack_codes.CODES.keys()))
        if dtype in supported:
            raise InterchangeError(message) from error
        raise DTypeError(
            f"{message} Convert it first; supported are {', '.join(supported)}"
        ) from error
    if copy is False and dlpack_codes.count_lanes(dt.of(array.dtype)) > 1:
        raise CopyNeededError(
            f"from_dlpack: {producer} has packed elements, which cannot be unpacked without a copy"
        )
    return array


def _request_capsule(x: Any, *, copy: bool | None) -> Any:
    # copy=True is not passed on: the device copies. Only the producer can refuse to copy.
    options = {"copy": False} if copy is False else {}
    try:
        return x.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # a producer from before DLPack 1.0, which never copies
        pass
    return x.__dlpack__()


def plain_device(dl_device: tuple[Any, int]) -> tuple[Any, int]:
    """Return a DLPack device whose kind is a number, not an enum member."""
    kind, number = dl_device
    return getattr(kind, "value", kind), number
