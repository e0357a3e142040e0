"""Types of tensors: dtype and shape, all that inference and rules may know of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import shapes
from tensorplug.contract.extents import Extent

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType


UNKNOWN: Final = -1  # a size that only the data tells, in the type that a spec infers


@dataclass(frozen=True, slots=True)
class TensorType:
    """Dtype and shape: all that inference, preparation and rules may know of a tensor.

    A size is ``UNKNOWN`` in the inferred type of an output whose shape depends on the data;
    tensors themselves know all their sizes.

    ``dtype``: of the elements.

    Examples:
        >>> image = tp.TensorType(tp.uint8, (28, 28))
        >>> str(image), image.size, image.nbytes
        ('uint8[28,28]', 784, 784)
        >>> tp.asarray([[1.0, 2.0]]).type == tp.TensorType(tp.float32, (1, 2))
        True

    """

    dtype: DType
    shape: shapes.Shape

    @property
    def sizes(self) -> shapes.Shape:
        """The shape, to be handed on: in a trace its members are extents, which may be others."""
        return self.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return shapes.size(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, laid out densely."""
        return self.size * self.dtype.itemsize

    @property
    def known(self) -> bool:
        """Whether all sizes are known."""
        return UNKNOWN not in self.shape

    def admits(self, other: TensorType) -> bool:
        """Return whether ``other`` is this type, with any sizes in the place of unknown ones."""
        if self.dtype is not other.dtype:
            return False
        return self.shape == other.shape or (
            len(self.shape) == len(other.shape)
            and all(a in (UNKNOWN, b) for a, b in zip(self.shape, other.shape, strict=True))
        )

    def __str__(self) -> str:
        sizes = ("?" if size == UNKNOWN else str(size) for size in self.shape)
        return f"{self.dtype}[{','.join(sizes)}]"


class WatchedType(TensorType):
    """The type of a tensor in a trace: it notes which sizes are read.

    ``read`` gets them: each size of a shape that was read, hashed, or compared with that of a type
    from elsewhere. Types of one trace may be compared: whoever uses the trace for other sizes
    checks that equal ones stay equal.
    """

    __slots__ = ("_plain", "_read")

    _plain: TensorType
    _read: set[int]

    def __init__(self, plain: TensorType, read: set[int]) -> None:
        for name, value in (("dtype", plain.dtype), ("_plain", plain), ("_read", read)):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> shapes.Shape:
        """Size of each dimension, which is noted."""
        self._read.update(self._plain.shape)
        return self._plain.shape

    @property
    def sizes(self) -> shapes.Shape:
        """The shape, of which a member is noted where it becomes a number."""
        return tuple([Extent.of(size, self._read) for size in self._plain.shape])

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self._plain.shape)

    def admits(self, other: TensorType) -> bool:
        """Return whether ``other`` is this type."""
        return self._plain.admits(unwatched(other))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WatchedType) and other._read is self._read:
            return self._plain == other._plain
        self._read.update(self._plain.shape)
        return self._plain == (other._plain if isinstance(other, WatchedType) else other)

    def __hash__(self) -> int:
        self._read.update(self._plain.shape)
        return hash(self._plain)

    def __repr__(self) -> str:
        self._read.update(self._plain.shape)
        return repr(self._plain)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.dtype, self.shape)


def unwatched(type_: Any) -> Any:
    """Return the type of an input, a list of them or None, with types whose sizes may be read."""
    if type_.__class__ is WatchedType:
        return type_._plain
    return [unwatched(member) for member in type_] if isinstance(type_, list) else type_


InputType = TensorType | list[TensorType] | None  # one, a variadic input's list, or absent
InputTypes = dict[str, Any]  # name -> InputType; Any, because each input's form is the spec's


def members(type_: InputType) -> list[TensorType]:
    """Return the types of an input: one, those in its list, or none if it is absent."""
    if type_ is None:
        return []
    return type_ if isinstance(type_, list) else [type_]


def show(type_: InputType) -> str:
    """Return an input's type as text: ``float32[3,4]``, a list of them, or ``absent``."""
    if type_ is None:
        return "absent"
    if isinstance(type_, list):
        return f"[{', '.join(map(str, type_))}]"
    return str(type_)
