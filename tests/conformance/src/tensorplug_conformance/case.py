"""One call of a kernel, and its expected outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tensorplug.contract.spec import InputType

__all__ = ["Array", "Bounded", "Case", "Layout", "Operand", "Reference", "Relation", "flat"]

Array = np.ndarray[Any, Any]
Operand = Array | list[Array] | None
Layout = Literal["dense", "transposed", "sliced", "stepped"]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A wide reference value, and the absolute error allowed."""

    value: Array
    bound: Array


@dataclass(frozen=True, slots=True)
class Relation:
    """What must hold for the outputs together, where the inputs do not determine them all.

    ``check`` takes the outputs and yields, for each property, its name, its value, and the
    expected value. ``first`` is the first output where the inputs determine it; its gradients
    are tried.
    """

    check: Callable[..., Iterable[tuple[str, Array, Bounded]]]
    first: Array | None = None


Reference = Array | Bounded
Expected = type[Exception] | tuple[Reference, ...] | None


@dataclass(frozen=True, slots=True)
class Case:
    """One call of a kernel.

    Args:
        id: stable name, unique within the kernel and dtype.
        inputs: one per input of the spec: an array, a list of arrays, or None.
        attributes: as a caller gives them; what is missing takes the spec's default.
        layout: how the inputs lie on the device: ``dense``, or made by transposing, by slicing
            or by taking every other element backwards there, so that a backend with views sees
            strides.
        expected: the outputs; an exception class that the call must raise; or None, and then
            the oracle says.
        period: after so many elements the inputs of rank 1 of an elementwise kernel repeat
            themselves; the oracle computes these alone, since exact arithmetic takes minutes for
            millions. 0 where they do not.

    """

    id: str
    inputs: tuple[Operand, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout = "dense"
    expected: Expected = None
    period: int = 0

    @property
    def types(self) -> list[InputType]:
        """The types of the inputs: a list of them for a list, None for an absent one."""
        return [
            [_type_of(one) for one in operand]
            if isinstance(operand, list)
            else operand
            if operand is None
            else _type_of(operand)
            for operand in self.inputs
        ]


def flat(operands: Iterable[Any]) -> list[Any]:
    """Return all arrays or tensors of operands: those of lists too, none for None."""
    found: list[Any] = []
    for operand in operands:
        found.extend(
            operand if isinstance(operand, list) else [] if operand is None else [operand]
        )
    return found


def _type_of(array: Array) -> TensorType:
    return TensorType(dt.of(array.dtype), array.shape)
