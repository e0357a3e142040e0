"""Data to and from other libraries, through the host's memory: DLPack and NumPy's protocol.

docs/adr/0010 says who sees whose writes. The capsules are NumPy's own; nothing here reads one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.calls import to_device
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    ArgumentError,
    CopyNeededError,
    DLPackNotSupportedError,
    DTypeError,
    InterchangeError,
)
from tensorplug.ops import creation
from tensorplug.tensors import array_namespace

if TYPE_CHECKING:
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device

__all__ = ["Interchange", "from_dlpack"]

HOST: Final = (1, 0)  # DLPack's kDLCPU

_READABLE: Final = {1, 3, 11, 13}  # kDLCPU; pinned and managed memory, which the host reads too
_ELSEWHERE: Final = {
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


class Interchange:
    """Methods of Tensor."""

    __slots__ = ()

    @property
    def __numpy_dtype__(self: Any) -> np.dtype[Any]:
        """What NumPy takes for the dtype, where it would not know ours."""
        dtype: DType = self.dtype
        return dtype.numpy

    def __array_namespace__(self: Any, *, api_version: str | None = None) -> Any:
        """Return the package: its functions are the array API standard's.

        Raises:
            ArgumentError: it does not follow that version of the standard.

        """
        return array_namespace.namespace(api_version)

    def to_device(self: Any, device: str, /, *, stream: Any = None) -> Tensor:
        """Return this tensor on ``device``, as ``to``; under the array API standard's name.

        Raises:
            ArgumentError: ``stream`` is not None: there are none to choose.

        """
        if stream is not None:
            raise ArgumentError(f"to_device: stream must be None, got {stream!r}")
        moved: Tensor = self.to(device)
        return moved

    def to(self: Any, device: str) -> Tensor:
        """Return this tensor on ``device``: itself if it is there, else a copy.

        ``"host"`` is the host's memory: kernels that need the copy take it to their own device.
        """
        tensor: Tensor = self
        return tensor if tensor._live().name == device else to_device(tensor, device)

    def __array__(
        self: Any,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001  # NumPy's protocol
    ) -> np.ndarray[Any, Any]:
        return to_numpy(self._live(), self._buffer, self.type, dtype, copy=copy)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        """Return DLPack's number for the host, to which tensors of any device are exported."""
        self._live()
        return HOST

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return the elements as a DLPack capsule, as the array API standard defines it.

        On a device that shares the host's memory (``"cpu"``) the capsule does too: who writes
        there writes into this tensor. It is flagged read-only if the consumer's DLPack is 1.0
        or newer. From other devices it is a copy of the consumer's own. A tensor on the tape is
        exported as a constant, as by ``numpy``.

        Raises:
            InterchangeError: DLPack has no such dtype, or ``dl_device`` is not the host.
            CopyNeededError: ``copy`` is False, but the memory cannot be shared.
            DisposedError: the data is gone.

        """
        return to_dlpack(
            self._live(),
            self._buffer,
            self.type,
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
        )

    def __copy__(self: Any) -> Tensor:
        """Return another handle: on the same device, at the same place on the tape."""
        self._live()
        handle = Tensor._of(self._buffer, self._placement, self._node)
        scope = current_context().scope
        if scope is not None:
            scope.adopt(handle)
        return handle

    def __deepcopy__(self: Any, _memo: dict[int, Any]) -> Tensor:
        handle: Tensor = self.__copy__()  # no op changes the data, so it is shared
        return handle

    def __reduce__(self: Any) -> tuple[Any, tuple[Any, ...]]:
        """Pickle the elements alone: they come back on the device that is active then."""
        return creation.asarray, (self.numpy(),)


# From a tensor --------------------------------------------------------------------------


def to_numpy(
    device: Device, buffer: Buffer, type_: TensorType, dtype: Any, *, copy: bool | None
) -> np.ndarray[Any, Any]:
    """Return the elements as ``__array__`` shall: read-only unless they are a copy.

    Raises:
        CopyNeededError: ``copy`` is False, but another dtype is asked for, or the elements are
            not in the host's memory.

    """
    wanted = type_.dtype.numpy if dtype is None else np.dtype(dtype)
    same = wanted == type_.dtype.numpy
    if copy is False and not (same and device.capabilities.shares_memory):
        into = f"{wanted}" if not same else f"an array, from backend {device.backend.name!r},"
        raise CopyNeededError(f"{type_} cannot become {into} without a copy")
    array = device.backend.to_host(buffer)
    if copy or not same:
        return array.astype(wanted)
    return _read_only(array)


def to_dlpack(
    device: Device,
    buffer: Buffer,
    type_: TensorType,
    *,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[Any, int] | None,
    copy: bool | None,
) -> Any:
    """Return a DLPack capsule over the elements in the host's memory, as ``__dlpack__`` shall.

    Raises:
        InterchangeError: DLPack has no such dtype, or another device is asked for.
        CopyNeededError: ``copy`` is False, but the backend cannot share its memory, or the
            memory is read-only and the consumer's version of DLPack cannot say so.
        ArgumentError: ``stream`` is not None.

    """
    if stream is not None:
        raise ArgumentError(f"the host has no streams: stream must be None, not {stream!r}")
    if dl_device is not None and _plain(dl_device) != HOST:
        raise InterchangeError(
            f"{type_} is exported in the host's memory, {HOST}; device {_plain(dl_device)} was "
            "asked for. Let the consumer copy it there"
        )
    if type_.dtype not in dt.FIXED:
        raise InterchangeError(f"DLPack has no text: {type_} is read by numpy() or tolist()")
    why = f"backend {device.backend.name!r} does not share the host's memory"
    shares = device.capabilities.shares_memory
    if shares is not None:
        if not copy:
            array = shares.share_to_host(buffer)
            if max_version is not None and max_version[0] >= 1:
                return _read_only(array).__dlpack__(max_version=max_version)
            # JAX, which asks in this old way, refuses elements that do not lie side by side.
            if array.flags.writeable and (copy is False or _compact(array)):
                return array.__dlpack__()
        why = "its memory is read-only, which DLPack says from version 1.0 on"
    if copy is False:
        raise CopyNeededError(f"{type_} is exported as a copy, since {why}")
    return device.backend.to_host(buffer).__dlpack__(max_version=max_version, copy=True)


def _compact(array: np.ndarray[Any, Any]) -> bool:
    """Return whether the elements lie one beside the other, in whatever order of the axes."""
    stride = array.itemsize
    for step, length in sorted(zip(array.strides, array.shape, strict=True)):
        if length > 1:
            if step != stride:
                return False
            stride *= length
    return True


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _plain(dl_device: tuple[Any, int]) -> tuple[Any, int]:
    kind, number = dl_device
    return getattr(kind, "value", kind), number  # an Enum's member, or a plain number


# To a tensor ----------------------------------------------------------------------------


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """Return the data of another library's array as a tensor.

    On a device that shares the host's memory, ``"cpu"`` for one, nothing is copied, and the
    producer's memory lives as long as a tensor shares it. Then what the producer writes there
    later is seen in the tensor; ``copy=True`` keeps it apart.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``, whose data is in the host's
            memory. NumPy, PyTorch, JAX and many others have them, and so do our tensors.
        device: where the tensor is to be, such as ``"opencl"``; the active one by default.
        copy: True always copies, False never does; by default, only if it must be.

    Raises:
        DLPackNotSupportedError: ``x`` has no such methods.
        InterchangeError: its data is not in the host's memory, or NumPy cannot read it.
        CopyNeededError: ``copy`` is False, but the device does not share the host's memory.
        DTypeError: tensors, or the device's, have no such dtype; bfloat16 for one.
        BackendMemoryError: the device has no room for a copy. Besides, what ``x`` raises when
            it cannot export (PyTorch: ``BufferError`` if it requires a gradient), and what
            ``use_backend`` raises for ``device``.

    """
    context = current_context()
    array = _received(x, copy=copy)
    return engine_of(context).convert(
        context, array, None, "from_dlpack: x", device=device, copy=copy
    )


def _received(x: Any, *, copy: bool | None) -> np.ndarray[Any, Any]:
    """Return a view of the producer's memory."""
    kind = type(x)
    given = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise DLPackNotSupportedError(
            f"from_dlpack: {given} has no __dlpack__ and __dlpack_device__; try asarray"
        )
    try:
        place, number = _plain(x.__dlpack_device__())
        capsule = _capsule(x, copy=copy) if place in _READABLE else None
    except Exception as error:
        error.add_note(f"while from_dlpack asked {given} for its data")
        raise
    if capsule is None:
        raise InterchangeError(
            f"from_dlpack: {given} is on device {_ELSEWHERE.get(place, place)}:{number}, not in "
            "the host's memory; copy it there first (in PyTorch with x.cpu())"
        )
    try:
        return np.from_dlpack(_Exported(capsule))
    except (BufferError, RuntimeError) as error:  # NumPy has either for what it cannot read
        dtype = str(getattr(x, "dtype", "an unknown dtype")).rpartition(".")[2]
        message = f"from_dlpack: {given} of {dtype} cannot be read: {error}"
        if dtype in {item.name for item in dt.FIXED}:
            raise InterchangeError(message) from error
        raise DTypeError(
            f"{message} Convert it first; tensors have {', '.join(sorted(map(str, dt.FIXED)))}"
        ) from error


def _capsule(x: Any, *, copy: bool | None) -> Any:
    # That it shall copy is not left to the producer; that it shall not, only it can know.
    never = {"copy": False} if copy is False else {}
    try:
        return x.__dlpack__(max_version=(1, 0), **never)
    except TypeError:  # from before DLPack 1.0; it never copied
        pass
    return x.__dlpack__()


class _Exported:
    """What NumPy takes in the place of a producer that has exported already."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST

    def __dlpack__(self, **_request: Any) -> Any:
        return self._capsule
