"""One call of a kernel, and its expected outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

import numpy as np

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tensorplug.contract.spec import InputType


MARK: Final = " @ "
"""Between the id of a case and that of a presentation of it."""

Array = np.ndarray[Any, Any]
Operand = Array | list[Array] | None
Layout = Literal[
    "dense",
    "transposed", "turned", "turned back", "planes transposed", "planes exchanged",
    "rows sliced", "planes sliced", "columns sliced", "sliced", "end sliced", "slice of slice",
    "row", "column",
    "stepped", "backwards", "by two", "by three", "reversed",
    "transpose reshaped", "slice reshaped", "columns expanded", "joined",
    "rows broadcast", "planes broadcast", "columns broadcast",
]  # fmt: skip
"""How an input lies on the device: see ``layouts``."""

Sharing = Literal["apart", "packed", "one tensor", "views", "overlapping"]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A wide reference value, and the absolute error allowed."""

    value: Array
    bound: Array


@dataclass(frozen=True, slots=True)
class Exactly(Bounded):
    """A reference value whose bits all count: the payload of a NaN too, and whether it signals."""

    bound: Array = field(default_factory=lambda: np.zeros(()))


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
Expected = type[Exception] | tuple[Reference, ...] | Relation | None


@dataclass(frozen=True, slots=True)
class Presentation:
    """One way to make the call of a case.

    ``layouts``: of the inputs that are not dense, by name. ``buffers``: whether each array has a
    buffer of its own, all those of one dtype lie in one (``packed``), or equal arrays do: as one
    tensor, as several views, or ``overlapping``, as other parts or views of one. ``before``: the
    call before: see ``histories``.
    """

    layouts: tuple[tuple[str, Layout], ...] = ()
    buffers: Sharing = "apart"
    before: str = "nothing"

    @property
    def id(self) -> str:
        """What tells it from others of the case."""
        parts = [f"{name}={layout}" for name, layout in self.layouts]
        parts += [f"buffers={self.buffers}"] * (self.buffers != "apart")
        return ", ".join([*parts, f"before={self.before}"])

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the presentation with the id ``text``.

        Raises:
            ValueError: there is none.

        """
        parts = dict(part.split("=") for part in text.split(", "))
        before, buffers = parts.pop("before"), parts.pop("buffers", "apart")
        if buffers not in get_args(Sharing) or not set(parts.values()) <= set(get_args(Layout)):
            raise ValueError(f"no presentation has the id {text!r}")
        layouts: Any = tuple(parts.items())
        shared: Any = buffers
        return cls(layouts, shared, before)


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
        refusal: what the call may raise instead, on a backend that looks at the values.
        period: after so many elements the inputs of an elementwise kernel repeat themselves, all
            of rank 1, or all of rank 2 with such rows; the oracle computes these alone, since
            exact arithmetic takes minutes for millions. 0 where they do not.
        native: it tries how a kernel divides its work, which decompositions leave to primitives.
        light: it is called once, since copies of its inputs take longer than the kernel.
        relative: gradients are judged element by element, relative to each: see ``far_points``.
        alike: names of the inputs whose arrays are equal, or for ``overlapping`` are parts or
            views of one, as ``layouts.overlapping`` finds them; they can lie in one buffer.
        overlapping: whether those are so.
        otherwise: other attributes that the inputs can be called with.
        prelude: the call before the first one: see ``histories``.
        preludes: calls before that one. What is kept from a call under a key that forgets their
            differences is a wrong result for the first call; later ones find what that one left.
        presentations: how else the case is called, after its first calls.

    """

    id: str
    inputs: tuple[Operand, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout = "dense"
    expected: Expected = None
    refusal: type[Exception] | None = None
    period: int = 0
    native: bool = False
    light: bool = False
    relative: bool = False
    alike: tuple[str, ...] = ()
    overlapping: bool = False
    otherwise: Mapping[str, Any] | None = None
    prelude: str = ""
    preludes: tuple[str, ...] = ()
    presentations: tuple[Presentation, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the call raises, or may."""
        return isinstance(self.expected, type) or self.refusal is not None

    @property
    def types(self) -> list[InputType]:
        """The types of the inputs: a list of them for a list, None for an absent one."""
        return types_of(self.inputs)


def types_of(operands: Iterable[Operand]) -> list[InputType]:
    """Return the types of operands: a list of them for a list, None for an absent one."""
    return [mapped(_type_of, operand) for operand in operands]


def mapped(function: Callable[[Any], Any], operand: Any) -> Any:
    """Return what a function makes of an operand: a list of results for a list, None for None."""
    if isinstance(operand, list):
        return [mapped(function, one) for one in operand]
    return None if operand is None else function(operand)


def flat(operands: Iterable[Any]) -> list[Any]:
    """Return all arrays or tensors of operands: those of lists too, none for None."""
    items: list[Any] = []
    for operand in operands:
        items.extend(
            operand if isinstance(operand, list) else [] if operand is None else [operand]
        )
    return items


def refilled(operands: Iterable[Any], arrays: Iterable[Any]) -> list[Any]:
    """Return operands with other arrays or tensors, in the order of ``flat``."""
    left = iter(arrays)
    return [mapped(lambda _: next(left), operand) for operand in operands]


def _type_of(array: Array) -> TensorType:
    return TensorType(dt.of(array.dtype), array.shape)
