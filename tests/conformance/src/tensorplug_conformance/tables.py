"""Tables of conformance cases: inert, filled with decorators or with rows of data.

A case table says for each kernel which inputs are tried and what an independent oracle makes of
them. The suite's own tables stand in ``cases``; an extension package returns its tables from
the hook ``tensorplug_conformance_cases``::

    cases = CaseTable()

    @cases.of(GELU, oracle=lambda x: x * normal_cdf(wide(x)), ulp={"float32": 8})
    def gelu(corpus: Corpus) -> Iterator[Case]:
        yield Case("edges", (corpus.edges(),))
        yield Case("odd", (corpus.ordinary((7,)),))

    @hookimpl
    def tensorplug_conformance_cases() -> Iterable[CaseTable]:
        return (cases,)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from tensorplug.plugin import RegistrationError, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.derivation import derived

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tensorplug.contract.spec import InputType
    from tensorplug.plugin import DType, KernelSpec
    from tensorplug_conformance.corpus import Corpus

__all__ = [
    "Array",
    "Bounded",
    "Case",
    "CaseEntry",
    "CaseTable",
    "Layout",
    "Operand",
    "Reference",
    "Relation",
]

Array = np.ndarray[Any, Any]
Operand = Array | list[Array] | None
Layout = Literal["dense", "transposed", "sliced", "stepped"]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A wide reference value, and how far a result may lie from it, absolutely."""

    value: Array
    bound: Array


@dataclass(frozen=True, slots=True)
class Relation:
    """What must hold of the outputs together, where the inputs do not determine each of them.

    ``check`` takes the outputs and yields, for each thing that must hold, its name, what it
    comes to, and what that must be. ``first`` is the first output where that one is determined,
    as gradients are tried of.
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
            themselves; what is right is said for these alone, since exact arithmetic takes
            minutes for millions. 0 where they do not.

    """

    id: str
    inputs: tuple[Operand, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout = "dense"
    expected: Expected = None
    period: int = 0

    @property
    def types(self) -> list[InputType]:
        """The types of the inputs: of each in a list, and None of an absent one."""
        return [
            [_type_of(one) for one in operand]
            if isinstance(operand, list)
            else operand
            if operand is None
            else _type_of(operand)
            for operand in self.inputs
        ]


def _type_of(array: Array) -> TensorType:
    return TensorType(dt.of(array.dtype), array.shape)


F = TypeVar("F", bound="Callable[[Any], Iterable[Case]]")


@dataclass(slots=True)
class CaseEntry:
    """All that is tried of one kernel.

    ``dtypes``: of the rows, that is of the input that leads. ``ulp``: the error allowed, by
    dtype name or ``"*"``, where the suite's own table has no line. ``signed_zero``: a zero
    result must have the oracle's sign. ``ordinary``: inputs into which no special values are put
    but by the cases themselves. ``wrt``: inputs whose gradients are tried, on the cases of
    ``smooth``.
    """

    spec: KernelSpec
    dtypes: tuple[DType, ...]
    generate: Callable[[Corpus], Iterable[Case]]
    oracle: Callable[..., Any] | None
    ulp: Mapping[str, float]
    signed_zero: bool
    ordinary: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()
    smooth: Callable[[Corpus], Iterable[Case]] | None = None

    def cases(self, corpus: Corpus) -> Iterator[Case]:
        """Yield the cases for the dtype of ``corpus``.

        Raises:
            RegistrationError: when two have one id, or one has no oracle.

        """
        own = list(self._checked(self.generate(corpus)))
        return self._checked((*own, *derived(self, own)))

    def answered(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Return what the oracle says; infinities among the inputs make NaN without a warning."""
        assert self.oracle is not None  # the table saw to it
        with np.errstate(all="ignore"):
            return self.oracle(*inputs, **attributes)

    def answer(self, case: Case) -> Any:
        """Return what the oracle says of a case, or of the first period of one that has it."""
        inputs: Sequence[Any] = case.inputs
        if case.period:
            inputs = [operand[: case.period] for operand in inputs]
        return self.answered(inputs, case.attributes)

    def gradient_cases(self, corpus: Corpus) -> Iterator[Case]:
        """Yield the cases at which gradients are tried."""
        return self._checked(self.smooth(corpus) if self.smooth else ())

    def _checked(self, cases: Iterable[Case]) -> Iterator[Case]:
        seen: set[str] = set()
        for case in cases:
            if case.id in seen:
                raise RegistrationError(f"{self.spec.name}: two cases are called {case.id!r}")
            if case.expected is None and self.oracle is None:
                raise RegistrationError(
                    f"{self.spec.name}, case {case.id!r}: nothing says what is right"
                )
            seen.add(case.id)
            yield case


def row_dtypes(spec: KernelSpec) -> tuple[DType, ...]:
    """Return the dtypes in which a kernel of ``spec`` can see its leading input.

    The leading input is the first promoted one, else the first that takes more than integers
    or booleans: of ``(indices, updates)`` the updates. Where integers become floats before a
    kernel sees them, only inexact dtypes are left.
    """
    if not spec.input_names:
        allowed = dt.FIXED
    else:
        leading = spec.promote[0] if spec.promote else _leading(spec)
        allowed = spec.accepted(leading)
    if spec.inexact:
        allowed &= dt.INEXACT
    return tuple(sorted(allowed, key=lambda dtype: dtype.name))


def _leading(spec: KernelSpec) -> str:
    """Return the first input that is not a mere index or condition."""
    for name in spec.input_names:
        if spec.accepted(name) not in (dt.INTEGER, dt.BOOL):
            return name
    return spec.input_names[0]


class CaseTable:
    """Cases by kernel name."""

    def __init__(self) -> None:
        self._entries: dict[str, CaseEntry] = {}

    def of(
        self,
        spec: KernelSpec,
        *,
        oracle: Callable[..., Any] | None = None,
        dtypes: Iterable[DType] | None = None,
        ulp: Mapping[str, float] | None = None,
        signed_zero: bool = False,
        ordinary: Sequence[str] = (),
    ) -> Callable[[F], F]:
        """Decorate the function that yields the cases of ``spec`` for a ``Corpus``.

        Args:
            spec: the kernel.
            oracle: takes the case's inputs and attributes and returns what is right: arrays
                of the output dtype where that is exact, else wide ones (``corpus.wide``), or
                ``Bounded``; a tuple for several outputs, or one ``Relation`` between them. It
                must not be the code under test.
            dtypes: of the rows; by default what the spec accepts in its leading input.
            ulp: error allowed by dtype name, ``"*"`` for the rest; default: correctly rounded.
            signed_zero: whether the sign of a zero is part of the result.
            ordinary: inputs that must keep to the values of the cases: sorted ones, say, or
                those of which NaN and infinities have no one answer.

        Raises:
            RegistrationError: when the kernel has cases in this table already, or no such input.

        """

        def decorate(generate: F) -> F:
            if spec.name in self._entries:
                raise RegistrationError(f"kernel {spec.name!r} has cases in this table already")
            unknown = set(ordinary) - set(spec.input_names)
            if unknown:
                raise RegistrationError(f"{spec.name}: {sorted(unknown)} are not inputs of it")
            given = row_dtypes(spec) if dtypes is None else dtypes
            chosen = tuple(sorted(given, key=lambda dtype: dtype.name))  # a set has no fixed order
            self._entries[spec.name] = CaseEntry(
                spec, chosen, generate, oracle, dict(ulp or {}), signed_zero, tuple(ordinary)
            )
            return generate

        return decorate

    def rows(self, spec: KernelSpec, dtype: DType, cases: Sequence[Case], **options: Any) -> None:
        """Add cases given as data, each with its ``expected``, for one dtype."""
        self.of(spec, dtypes=(dtype,), **options)(lambda _corpus: iter(cases))

    def gradients(self, spec: KernelSpec, *wrt: str) -> Callable[[F], F]:
        """Decorate the function that yields smooth points, where gradients are tried.

        The oracle's own slope there (central differences in wide arithmetic) is what is right,
        unless a case's ``expected`` holds the gradients, one per name in ``wrt``, for an
        incoming gradient of ones. ``of`` must come first.
        """

        def decorate(smooth: F) -> F:
            entry = self._entries[spec.name]
            unknown = set(wrt) - set(spec.input_names)
            if unknown or not wrt:
                raise RegistrationError(f"{spec.name}: {sorted(unknown)} are not inputs of it")
            entry.wrt, entry.smooth = wrt, smooth
            return smooth

        return decorate

    def __iter__(self) -> Iterator[CaseEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
