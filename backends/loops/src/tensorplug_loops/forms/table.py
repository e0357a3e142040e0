"""Tables of forms: which group a kernel is, given the types of its inputs and its attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from tensorplug.plugin import (
    DType,
    Group,
    KernelSpec,
    KernelTable,
    Shape,
    TensorType,
    dtypes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

F = TypeVar("F", bound="Callable[..., Any]")


Table: TypeAlias = "NDArray[Any]"
"""Numbers made on the host that a kernel reads."""


class Form(NamedTuple):
    """A group, and for each of its inputs the number of the buffer that it reads, or a table.

    Buffers are numbered: the kernel's inputs, then the outputs of the groups before this one.
    """

    group: Group
    sources: tuple[int | Table, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a kernel: the type of its buffer, and its number among the kernel's buffers.

    ``number`` may be a table instead.
    """

    type: TensorType
    number: int | Table

    @classmethod
    def of(cls, table: Table) -> Operand:
        """Return numbers made on the host."""
        return cls(TensorType(dtypes.of(table.dtype), table.shape), table)

    @property
    def dtype(self) -> DType:
        """The dtype of its elements."""
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """Its shape."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return self.type.rank

    def reshaped(self, shape: Shape) -> Operand:
        """Return the same buffer, whose elements are counted in another shape."""
        return Operand(TensorType(self.dtype, shape), self.number)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return self.type.size


class FormTable(KernelTable):
    """Forms by kernel; parameters as in ``KernelTable.prepare``, with operands for types."""

    def form(self, *specs: KernelSpec, dtypes: Iterable[DType] | None = None) -> Callable[[F], F]:
        """Decorate a function that returns the form of each of these kernels.

        It takes an ``Operand`` for each input (None for an absent one, a list for a variadic
        one), then keyword-only ``out`` and attributes; there are elements to compute. It
        returns a ``Form``, or a list of them, whose last outputs are the kernel's; or a function
        that returns the list, given how many arrays a group may have.
        It raises ``KernelRefusedError`` where it has none.
        """

        def decorate(function: F) -> F:
            for spec in specs:
                self.prepare(spec, dtypes=dtypes)(function)
            return function

        return decorate
