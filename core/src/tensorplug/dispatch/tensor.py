"""The Tensor: a record of a buffer, where and what it is, and its place on the tape.

Operators, indexing, assignment, interchange and chained methods are attached from above, by
``tensors.methods``. ``tensor.pyi`` declares all of them; it is generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.contract import dtypes as dt
from tensorplug.errors import BackendClosedError, DisposedError, ShapeError

if TYPE_CHECKING:
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


class Tensor:
    """An array of one dtype on one device. Tensors are values: no op changes one.

    ``x[key] = value`` gives this one handle other values.

    Made by ``tensorplug.asarray`` and by every op; not by calling the class. The buffer is
    freed when the last tensor that shares it dies, or earlier by ``dispose``.
    """

    # `_exclusive` is set by an assignment only: memory that belongs to this tensor alone.
    __slots__ = ("__weakref__", "_buffer", "_exclusive", "_node", "_placement")

    # NumPy's operators must leave `array + tensor` to us instead of making an object array.
    __array_ufunc__ = None

    _buffer: Any
    _placement: Placement
    _node: Any
    _exclusive: Any

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

    def dispose(self) -> None:
        """Free this handle's share of the data now; using it later raises. Twice is fine."""
        self._dispose("this tensor")

    def _dispose(self, what: str) -> None:
        """Free the data; errors will say that ``what`` was disposed."""
        if not self.is_disposed:
            self._placement = _Disposed(self.type, what)  # type: ignore[assignment]  # a stand-in
            self._buffer = self._exclusive = self._node = None

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
