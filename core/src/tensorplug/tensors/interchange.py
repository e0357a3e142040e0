"""Exporting data to other libraries: DLPack and NumPy's protocol.

Data pass through host memory, unless a backend exchanges its device's memory.

docs/adr/0010 defines which memory is shared. NumPy creates all capsules (see ``dlpack_codes``).
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.contract import shapes
from tensorplug.contract.arguments import optional_flag, quoted
from tensorplug.dispatch.calls import HOST as HOST_NAME
from tensorplug.dispatch.calls import compute_at, to_device
from tensorplug.dispatch.context import current_context, is_recorded
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import (
    ArgumentError,
    BackendClosedError,
    BackendNotInstalledError,
    BackendUnavailableError,
    BackendWarning,
    CopyNeededError,
    DataNeededError,
    DTypeError,
    GradientError,
    InterchangeError,
    PluginLoadError,
    PluginVersionError,
)
from tensorplug.ops import creation
from tensorplug.tensors import array_namespace, dlpack_codes
from tensorplug.tensors.importing import plain_device

if TYPE_CHECKING:
    from tensorplug.contract.backend import Buffer
    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device


HOST: Final = (1, 0)  # DLPack's kDLCPU


class Interchange:
    """Methods of Tensor."""

    __slots__ = ()

    @property
    def __numpy_dtype__(self: Any) -> np.dtype[Any]:
        """The NumPy dtype, for NumPy functions that take a dtype."""
        dtype: DType = self.dtype
        return dtype.numpy

    def __array_namespace__(self: Any, *, api_version: str | None = None) -> Any:
        """Return the package, which has the array API standard's functions.

        Raises:
            ArgumentError: it does not follow that version of the standard.

        """
        return array_namespace.namespace(api_version)

    def to_device(self: Any, device: str, /, *, stream: Any = None) -> Tensor:
        """Return this tensor on ``device``; the array API standard's name of ``to``.

        Raises:
            ArgumentError: ``stream`` is not None.

        """
        if stream is not None:
            raise ArgumentError(f"to_device: stream must be None, got {quoted(stream)}")
        moved: Tensor = self.to(device)
        return moved

    def to(self: Any, device: str) -> Tensor:
        """Return this tensor committed to ``device``, a copy if it is on another one.

        Calls with the result run there, whichever backend is active, and so do calls with what
        they return. ``"host"`` is host memory: kernels copy tensors from there to their device.

        Raises:
            DeviceMismatchError: a function is being compiled for another device.
            DataNeededError: it is being compiled, and ``device`` is ``"host"``.

        Examples:
            >>> x = tp.ones(2).to("cpu")
            >>> x.is_committed, (x + 1).device
            (True, 'cpu')

        """
        tensor: Tensor = self
        try:
            return to_device(tensor, device)
        except DataNeededError as error:
            raise DataNeededError(
                f"to({device!r}): a compiled function runs on one device. Move its results "
                "after the call",
                error.reason,
            ) from error

    def __array__(
        self: Any,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001  # NumPy's protocol
    ) -> np.ndarray[Any, Any]:
        """Return the elements as a new NumPy array, for ``numpy.asarray`` and the like.

        With ``copy=False`` the array shares the memory of the tensor, and is read-only.

        Raises:
            GradientError: a gradient is being recorded for the tensor. ``numpy()`` returns
                the elements even then.
            CopyNeededError: ``copy`` is False, but the memory cannot be shared.
            DisposedError: the tensor was disposed.

        """
        device = self._live()
        _check_unrecorded(self, "becomes a NumPy array", "x.numpy()")
        return to_numpy(device, self._buffer, self.type, dtype, copy=copy)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        """Return DLPack's device: the tensor's, if its backend exchanges memory, else the host."""
        exchanges = self._live().capabilities.exchanges
        return HOST if exchanges is None else exchanges.dlpack_device()

    def __dlpack__(
        self: Any,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return the elements as a DLPack capsule, as the array API standard defines it.

        If the device uses host memory (``"cpu"``), the capsule shares it, and writing to it
        changes this tensor; for a consumer of DLPack 1.0 or newer it is read-only. If the backend
        exchanges its device's memory, the capsule is on that device, unless ``dl_device`` is the
        host. From other devices it is a copy in host memory.

        Raises:
            GradientError: a gradient is being recorded for the tensor.
            InterchangeError: DLPack has no such dtype, or ``dl_device`` is neither the host nor
                the tensor's device.
            CopyNeededError: ``copy`` is False, but the memory cannot be shared.
            DisposedError: the tensor was disposed.

        """
        device = self._live()
        _check_unrecorded(self, "is exported by DLPack", "stop_gradient(x)")
        return to_dlpack(
            device,
            self._buffer,
            self.type,
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
        )

    def __copy__(self: Any) -> Tensor:
        """Return another tensor that shares the data and the node on the tape."""
        self._live()
        context = current_context()
        placement = context.interpreter.placement_of_copy(self._placement)
        handle = Tensor._of(self._buffer, placement, self._node)
        scope = context.scope
        if scope is not None:
            scope.adopt(handle)
        return handle

    def __deepcopy__(self: Any, _memo: dict[int, Any]) -> Tensor:
        handle: Tensor = self.__copy__()  # no op changes the data, so sharing it is safe
        return handle

    def __reduce__(self: Any) -> tuple[Any, tuple[Any, ...]]:
        """Pickle the elements and the device's name, where unpickling creates a tensor.

        The tensor is committed if this one is. A process without that device warns, and takes the
        active one.
        """
        return _unpickled, (self.numpy(), self.device, self.is_committed)


_ABSENT: Final = (
    BackendNotInstalledError,
    BackendUnavailableError,
    BackendClosedError,  # by fork
    PluginLoadError,
    PluginVersionError,
)


def _unpickled(elements: np.ndarray[Any, Any], device: str, committed: bool) -> Tensor:  # noqa: FBT001  # pickles call it
    """Return a tensor of a pickle."""
    try:
        if committed or device == HOST_NAME:
            return creation.asarray(elements, device=device)
        return compute_at(device, partial(creation.asarray, elements))
    except _ABSENT as error:
        made = creation.asarray(elements)
        message = f"unpickled from {device!r} onto {made.device!r}: {error}"
        warnings.warn(message, BackendWarning, stacklevel=2)
        return made


# From a tensor --------------------------------------------------------------------------


def _check_unrecorded(tensor: Tensor, what: str, instead: str) -> None:
    """Refuse to drop a gradient where the caller may not know that it would be dropped.

    Raises:
        GradientError: a gradient is being recorded for ``tensor``.

    """
    if is_recorded(tensor):
        raise GradientError(
            f"a gradient is being recorded for {tensor.type}, and would be lost when the tensor "
            f"{what}. Compute with functions of tensorplug; or, for a constant, pass {instead}"
        )


def to_numpy(
    device: Device, buffer: Buffer, type_: TensorType, dtype: Any, *, copy: bool | None
) -> np.ndarray[Any, Any]:
    """Return the elements for ``__array__``: a copy, since callers may write to it.

    With ``copy`` False, a read-only view.

    Raises:
        CopyNeededError: ``copy`` is False, but the requested dtype differs, or the elements are
            not in host memory.
        DTypeError: NumPy has no such dtype.
        ArgumentError: ``copy`` is not True, False or None.

    """
    optional_flag(copy, "__array__: copy")
    try:
        target = type_.dtype.numpy if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError):
        raise DTypeError(f"__array__: NumPy has no dtype {quoted(dtype)}") from None
    same = target == type_.dtype.numpy
    if copy is False and not (same and device.capabilities.shares_memory):
        into = f"{target}" if not same else f"an array, from backend {device.backend.name!r},"
        raise CopyNeededError(f"{type_} cannot become {into} without a copy")
    array = device.read(buffer, type_)
    # A plain array: the memory of an assigned tensor is lent by a subclass.
    return _read_only(array) if copy is False else np.array(array, target)


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
    """Return a DLPack capsule of the elements, for ``__dlpack__``.

    Raises:
        InterchangeError: DLPack has no such dtype, or another device is requested; elements of 4
            or 2 bits along the last axis do not fill whole bytes.
        CopyNeededError: ``copy`` is False, but the backend cannot share its memory, the elements
            must be packed, or the memory is read-only and the consumer's version of DLPack has no
            flag for that.
        ArgumentError: ``stream`` is not None for host memory, a pair is not one of integers, or
            ``copy`` is not True, False or None.

    """
    optional_flag(copy, "__dlpack__: copy")
    if max_version is not None:
        max_version = _read_pair(max_version, "__dlpack__: max_version")
    target = None if dl_device is None else _read_pair(dl_device, "__dlpack__: dl_device")
    if type_.dtype not in dt.FIXED and type_.dtype not in dlpack_codes.CODES:
        raise InterchangeError(
            f"DLPack does not support {type_.dtype}; use numpy() or tolist() to read {type_}"
        )
    exchanges = device.capabilities.exchanges
    if dlpack_codes.count_lanes(type_.dtype) > 1:
        exchanges = None  # packed on the host
    if exchanges is not None and target in (None, exchanges.dlpack_device()):
        return exchanges.to_dlpack(buffer, stream=stream, max_version=max_version, copy=copy)
    if target not in (None, HOST):
        own = "" if exchanges is None else f"stay on {exchanges.dlpack_device()} or "
        raise InterchangeError(
            f"{type_} can only {own}be exported to host memory, {HOST}, but device {target} "
            "was requested. Let the consumer copy it there"
        )
    if stream is not None:
        raise ArgumentError(f"__dlpack__: stream must be None, got {quoted(stream)}")
    return _to_host_dlpack(device, buffer, type_, max_version, copy=copy)


def _to_host_dlpack(
    device: Device,
    buffer: Buffer,
    type_: TensorType,
    max_version: tuple[int, int] | None,
    *,
    copy: bool | None,
) -> Any:
    """Return a capsule of the elements in host memory.

    Raises:
        CopyNeededError: as for ``to_dlpack``.

    """
    why = f"backend {device.backend.name!r} does not use host memory"
    shares = device.capabilities.shares_memory
    lanes = dlpack_codes.count_lanes(type_.dtype)
    if lanes > 1:
        if not type_.rank or type_.shape[-1] % lanes:
            raise InterchangeError(
                f"DLPack packs {lanes} elements of {type_.dtype} into a byte, but the last axis "
                f"of {type_} has no multiple of that; pad it, or convert it with astype"
            )
        why = f"DLPack packs {lanes} elements of {type_.dtype} into a byte"
    elif shares is not None:
        if not copy:
            array = shares.share_to_host(buffer)
            if max_version is not None and max_version[0] >= 1:
                return dlpack_codes.export(_read_only(array), type_.dtype, max_version=max_version)
            # JAX, which requests an older version, refuses elements with gaps between them.
            if array.flags.writeable and (copy is False or _is_compact(array)):
                return dlpack_codes.export(array, type_.dtype)
        why = "its memory is read-only, for which DLPack has a flag only from version 1.0 on"
    if copy is False:
        raise CopyNeededError(f"{type_} can only be exported as a copy: {why}")
    array = device.read(buffer, type_)
    return dlpack_codes.export(array, type_.dtype, max_version=max_version, copy=True)


def _is_compact(array: np.ndarray[Any, Any]) -> bool:
    """Return whether the elements have no gaps between them, in any order of the axes."""
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


def _read_pair(value: Any, what: str) -> tuple[int, int]:
    """Return two integers, the first of which may be an enum member.

    Raises:
        ArgumentError: it is something else.

    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(f"{what} must be two integers, got {quoted(value)}")
    first, second = plain_device((value[0], value[1]))
    return shapes.index(first, what), shapes.index(second, what)
