"""The Tensor: a record of a buffer, its placement and its node on the tape.

``tensors.methods`` attaches operators, indexing, assignment, interchange and chained methods.
The generated ``tensor.pyi`` declares all of them.
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


class _Disposed:
    """Replaces the placement of a disposed tensor; no plan has it in its key."""

    __slots__ = ("type", "what")
    device = None
    committed = False

    def __init__(self, type_: TensorType, what: str = "this tensor") -> None:
        self.type = type_
        self.what = what

    def error(self) -> Exception:
        """Return the error that using the tensor raises."""
        return DisposedError(f"{self.what} ({self.type}) was disposed")


class Tensor:
    """An array of one dtype on one device. Tensors are values: no op changes its inputs.

    ``x[key] = value`` gives new values to ``x`` only, not to other tensors with its data.

    Created by ``tensorplug.asarray`` and by ops, not by calling the class. The buffer is freed
    when the last tensor that shares it is deleted, or earlier by ``dispose``.

    Examples:
        >>> x = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape, x.dtype, x.device
        ((2, 2), tensorplug.float32, 'cpu')
        >>> (2 * x + 1).sum(axis=0)
        Tensor([10., 14.], dtype=float32, device='cpu')
        >>> view = x[0]
        >>> x[0, 1] = 9.0  # other tensors keep their values
        >>> x.tolist(), view.tolist()
        ([[1.0, 9.0], [3.0, 4.0]], [1.0, 2.0])
        >>> x > 3
        Tensor([[False,  True],
                [False,  True]], dtype=bool, device='cpu')

    """

    # Only an assignment sets `_exclusive`: memory that no other tensor shares.
    __slots__ = ("__weakref__", "_buffer", "_exclusive", "_node", "_placement")

    _buffer: Any
    _placement: Placement
    _node: Any
    _exclusive: Any

    def __init__(self) -> None:
        raise TypeError("create tensors with tensorplug.asarray(...) or an op")

    @classmethod
    def _of(cls, buffer: Any, placement: Placement, node: Any = None) -> Tensor:
        tensor = cls.__new__(cls)
        tensor._buffer = buffer
        tensor._placement = placement
        tensor._node = node
        return tensor

    # Type and device ----------------------------------------------------------------

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
        return self._placement.type.rank

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._placement.type.size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes, without padding."""
        return self._placement.type.nbytes

    @property
    def device(self) -> str:
        """The device that holds the data, such as ``"cpu"`` or ``"opencl:1"``."""
        return self._live().name

    @property
    def is_committed(self) -> bool:
        """Whether calls with this tensor run on its device, whichever backend is active.

        True if ``device=`` or ``to`` placed it there, or an input of the call that computed it.
        """
        return self._placement.committed

    @property
    def is_disposed(self) -> bool:
        """Whether ``dispose`` was called."""
        return self._placement.device is None

    # Data -----------------------------------------------------------------------------

    def _live(self) -> Device:
        """Return the device; raise if the tensor was disposed or its backend closed."""
        device = self._placement.device
        if device is None:
            raise self._placement.error()
        if device.closed:
            raise BackendClosedError(
                f"this tensor ({self.type}) is on backend {device.name!r}, which {device.fate}"
            )
        return device

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return the elements as a read-only NumPy array; waits for pending work."""
        device = self._live()
        array = device.read(self._buffer, self.type).view()
        array.flags.writeable = False
        return array

    def item(self) -> Any:
        """Return the only element as a Python scalar.

        Raises:
            ShapeError: the tensor does not have exactly one element.

        """
        if self.size != 1:
            raise ShapeError(f"item() needs a tensor with one element, got {self.type}")
        return self.numpy().item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars."""
        return self.numpy().tolist()

    def dispose(self) -> None:
        """Release the data; using the tensor later raises. Calling it again does nothing."""
        self._dispose("this tensor")

    def _dispose(self, what: str) -> None:
        """Release the data; errors will say that ``what`` was disposed."""
        if not self.is_disposed:
            self._placement = _Disposed(self.type, what)  # type: ignore[assignment]  # a substitute
            self._buffer = self._exclusive = self._node = None

    def __repr__(self) -> str:
        if self.is_disposed:
            return f"<Tensor {self.type}, disposed>"
        shown: str | None = self._placement.device.interpreter.describe(self)
        if shown is not None:
            return shown
        try:
            numbers, digits = self._shown()
            body = np.array2string(numbers, precision=digits, separator=", ", prefix="Tensor(")
        except Exception as error:  # noqa: BLE001  # a debugger must be able to show it
            return f"<Tensor {self._placement!r}, unreadable: {error}>"
        # As NumPy does: the shape if the elements do not show it.
        hidden = self.size > np.get_printoptions()["threshold"] or (
            self.size == 0 and self.ndim != 1
        )
        shape = f", shape={self.shape}" if hidden else ""
        return f"Tensor({body}{shape}, dtype={self.dtype}, device={self.device!r})"

    def _shown(self) -> tuple[np.ndarray[Any, Any], int | None]:
        """Return the elements in a dtype that NumPy can write, and how many digits to write."""
        numbers = self.numpy()
        if self.dtype in dt.WIDENED:  # NumPy writes these without its own formats
            return numbers.astype(self.dtype.compute.numpy), 4
        return numbers, None

    def __format__(self, spec: str) -> str:
        """Format a tensor with one element as a number; without ``spec``, others as ``str``."""
        device = self._placement.device
        if not spec and (self.shape or (device is not None and not device.is_real)):
            return str(self)
        return format(self.item(), spec)

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
            raise ShapeError(f"{what}() needs a tensor with one element, got {self.type}")
        return self.numpy().item()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor of rank 0")
        return self.shape[0]
