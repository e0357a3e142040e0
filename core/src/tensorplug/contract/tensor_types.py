"""Types of tensors: dtype and shape, all that inference and rules may know of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract import shapes

if TYPE_CHECKING:
    from tensorplug.contract.dtypes import DType


UNKNOWN: Final = -1  # a size that only the data tells, in the type that a spec infers


@dataclass(frozen=True, slots=True)
class TensorType:
    """Dtype and shape: all that inference, preparation and rules may know of a tensor.

    A size is ``UNKNOWN`` in the inferred type of an output whose shape depends on the data;
    tensors themselves have none such.

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
        return (
            self.dtype is other.dtype
            and len(self.shape) == len(other.shape)
            and all(a in (UNKNOWN, b) for a, b in zip(self.shape, other.shape, strict=True))
        )

    def __str__(self) -> str:
        sizes = ("?" if size == UNKNOWN else str(size) for size in self.shape)
        return f"{self.dtype}[{','.join(sizes)}]"


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
