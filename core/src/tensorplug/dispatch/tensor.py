"""The Tensor: a value on a device. Array methods only; ops live in ``ops``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.array_api import namespace
from tensorplug.contract import dtypes as dt
from tensorplug.dispatch.context import current_context, engine_of
from tensorplug.dispatch.methods import Methods
from tensorplug.errors import (
    AliasError,
    ArgumentError,
    BackendClosedError,
    DisposedError,
    ShapeError,
)
from tensorplug.ops import complexes, creation, movement
from tensorplug.ops.indexing import getting
from tensorplug.tensors import interchange
from tensorplug.tensors.assignment import InPlace
from tensorplug.tensors.operators import Operators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensorplug.contract.dtypes import DType
    from tensorplug.contract.shapes import Shape
    from tensorplug.contract.spec import TensorType
    from tensorplug.dispatch.device import Device, Placement

__all__ = ["Tensor"]


class _Disposed:
    """Stands in for the placement of a disposed tensor; no plan is ever found for it."""

    __slots__ = ("type", "what")
    device = None

    def __init__(self, type_: TensorType, what: str = "this tensor") -> None:
        self.type = type_
        self.what = what

    def error(self) -> Exception:
        """Return what is raised where the tensor is used."""
        return DisposedError(f"{self.what} ({self.type}) was disposed")


class _Outdated(_Disposed):
    """Stands in for the placement of a view that NumPy would have changed."""

    __slots__ = ()

    def error(self) -> Exception:
        return AliasError(
            f"{self.what} ({self.type}) is a view of a tensor to which it was then assigned, over "
            "elements that it shows: NumPy would have changed it. Assign a copy: "
            "asarray(x, copy=True)"
        )


class Tensor(Operators, InPlace, Methods):
    """An array of one dtype on one device. Tensors are values: no op changes one.

    ``x[key] = value`` gives this one handle other values.

    Made by ``tensorplug.asarray`` and by every op; not by calling the class. The buffer is
    freed when the last tensor that shares it dies, or earlier by ``dispose``.
    """

    # `_alias` is there only where a view is concerned; nothing else asks for it.
    __slots__ = ("__weakref__", "_alias", "_buffer", "_node", "_placement")

    # NumPy's operators must leave `array + tensor` to us instead of making an object array.
    __array_ufunc__ = None

    _buffer: Any
    _placement: Placement
    _node: Any
    _alias: Any

    def __init__(self) -> None:
        raise TypeError("tensors are made with tensorplug.asarray(...) and by ops")

    @classmethod
    def _of(cls, buffer: Any, placement: Placement, node: Any = None) -> Tensor:
        tensor = cls.__new__(cls)
        tensor._buffer = buffer
        tensor._placement = placement
        tensor._node = node
        return tensor

    # What it is ---------------------------------------------------------------------

    @property
    def type(self) -> TensorType:
        """Dtype and shape together."""
        return self._placement.type

    @property
    def dtype(self) -> DType:
        """Data type of the elements."""
        return self._placement.type.dtype

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """What NumPy takes for the dtype, where it would not know ours."""
        return self.dtype.numpy

    @property
    def shape(self) -> Shape:
        """Sizes of the dimensions."""
        return self._placement.type.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._placement.type.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._placement.type.size

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, laid out densely."""
        return self._placement.type.nbytes

    @property
    def device(self) -> str:
        """The device that holds the data, such as ``"cpu"`` or ``"opencl:1"``."""
        return self._live().name

    @property
    def is_disposed(self) -> bool:
        """Whether ``dispose`` was called."""
        return self._placement.device is None

    # Data -----------------------------------------------------------------------------

    def _live(self) -> Device:
        """Return the device, or raise if the data is gone."""
        device = self._placement.device
        if device is None:
            raise self._placement.error()
        if device.closed:
            raise BackendClosedError(
                f"this tensor ({self.type}) lives on backend {device.name!r}, which {device.fate}"
            )
        return device

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as a read-only NumPy array; waits for pending work."""
        array = self._live().backend.to_host(self._buffer).view()
        array.flags.writeable = False
        return array

    def item(self) -> Any:
        """Return the only element as a Python scalar.

        Raises:
            ShapeError: when there is not exactly one element.

        """
        if self.size != 1:
            raise ShapeError(f"item() needs a tensor of one element, got {self.type}")
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars."""
        return self.numpy().tolist()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the package: its functions are the array API standard's.

        Raises:
            ArgumentError: it does not follow that version of the standard.

        """
        return namespace.namespace(api_version)

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """Return this tensor on ``device``, as ``to``; under the array API standard's name.

        Raises:
            ArgumentError: ``stream`` is not None: there are none to choose.

        """
        if stream is not None:
            raise ArgumentError(f"to_device: stream must be None, got {stream!r}")
        return self.to(device)

    def to(self, device: str) -> Tensor:
        """Return this tensor on ``device``: itself if it is there, else a copy.

        ``"host"`` is the host's memory: kernels that need the copy take it to their own device.
        """
        if self._live().name == device:
            return self
        return engine_of(current_context()).move(self, device)

    def dispose(self) -> None:
        """Free this handle's share of the data now; using it later raises. Twice is fine."""
        self._dispose("this tensor")

    def _dispose(self, what: str) -> None:
        """Free the data; errors will say that ``what`` was disposed."""
        if not self.is_disposed:
            self._placement = _Disposed(self.type, what)  # type: ignore[assignment]  # a stand-in
            self._buffer = None
            self._node = None

    def _become(self, other: Tensor) -> None:
        """Take the values of ``other``, which is of the same type, and its place on the tape."""
        device = self._live()
        if other._placement.device is not device:
            other = engine_of(current_context()).move(other, device.name)
        self._node = other._node
        self._buffer = other._buffer

    def _outdate(self) -> None:
        """Make every later use an ``AliasError``."""
        self._placement = _Outdated(self.type)  # type: ignore[assignment]  # a stand-in
        self._buffer = None
        self._node = None

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,  # noqa: FBT001  # NumPy's protocol
    ) -> np.ndarray[Any, Any]:
        backend = self._live().backend
        return interchange.to_numpy(backend, self._buffer, self.type, dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number for the host, to which tensors of any device are exported."""
        self._live()
        return interchange.HOST

    def __dlpack__(
        self,
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
        return interchange.to_dlpack(
            self._live().backend,
            self._buffer,
            self.type,
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
        )

    def __copy__(self) -> Tensor:
        """Return another handle: on the same device, at the same place on the tape."""
        self._live()
        handle = Tensor._of(self._buffer, self._placement, self._node)
        scope = current_context().scope
        if scope is not None:
            scope.adopt(handle)
        return handle

    def __deepcopy__(self, _memo: dict[int, Any]) -> Tensor:
        return self.__copy__()  # no op changes the data, so it is shared

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle the elements alone: they come back on the device that is active then."""
        return creation.asarray, (self.numpy(),)

    def __repr__(self) -> str:
        if self.is_disposed:
            return f"<Tensor {self.type}, disposed>"
        try:
            body = np.array2string(self.numpy(), separator=", ", prefix="Tensor(")
        except Exception as error:  # noqa: BLE001  # a debugger's view of a broken device
            return f"<Tensor {self.type} on {self._placement!r}, unreadable: {error}>"
        return f"Tensor({body}, dtype={self.dtype}, device={self.device!r})"

    def __format__(self, spec: str) -> str:
        """Format a tensor of one element as its number; any, with no ``spec``, as ``str``."""
        return format(self.item(), spec) if spec or not self.shape else str(self)

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.dtype not in dt.INTEGER:
            raise TypeError(f"only an integer tensor can be an index, got {self.type}")
        return int(self._scalar("index"))

    def _scalar(self, what: str) -> Any:
        if self.size != 1:
            raise ShapeError(f"{what}() needs a tensor of one element, got {self.type}")
        return self.numpy().item()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor of rank 0")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        len(self)  # of rank 0 an error, at once
        return getting.rows(self)

    def __contains__(self, value: Any) -> bool:
        return bool(np.isin(value, self.numpy()).all())

    def __getitem__(self, key: Any) -> Tensor:
        return getting.getitem(self, key)

    @property
    def T(self) -> Tensor:  # noqa: N802  # the array API standard's name
        """The transpose of a matrix.

        Raises:
            ShapeError: when the rank is not 2.

        """
        return movement.matrix_transpose(self, rank=2)

    @property
    def mT(self) -> Tensor:  # noqa: N802  # the array API standard's name
        """The last two axes swapped."""
        return movement.matrix_transpose(self)

    def transpose(self, *axes: Any) -> Tensor:
        """Return the axes in another order, as ``permute_dims``: reversed by default.

        As with NumPy's method, which other libraries call, the order is one sequence or several
        integers.
        """
        return movement.permute_dims(self, axes[0] if len(axes) == 1 else axes or None)

    @property
    def real(self) -> Tensor:
        """The real parts, as ``tensorplug.real``; a property, as NumPy's arrays have it."""
        return complexes.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary parts, as ``tensorplug.imag``; 0 for real numbers."""
        return complexes.imag(self)
