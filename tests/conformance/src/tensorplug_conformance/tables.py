"""Tables of conformance cases: inert, filled with decorators or with rows of data.

A case table holds for each kernel the inputs to try and an independent oracle for the outputs.
The suite's own tables are in ``cases``; an extension package returns its tables from
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

from typing import TYPE_CHECKING, Any, TypeVar

from tensorplug.plugin import RegistrationError
from tensorplug_conformance.case import Array, Bounded, Case, Layout, Operand, Reference, Relation
from tensorplug_conformance.case_entry import CaseEntry, Published, row_dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tensorplug.plugin import DType, KernelSpec

__all__ = [
    "Array",
    "Bounded",
    "Case",
    "CaseEntry",
    "CaseTable",
    "Layout",
    "Operand",
    "Published",
    "Reference",
    "Relation",
]

F = TypeVar("F", bound="Callable[[Any], Iterable[Case]]")


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
        grown: bool = True,
        published: Published | None = None,
    ) -> Callable[[F], F]:
        """Decorate the function that yields the cases of ``spec`` for a ``Corpus``.

        Args:
            spec: the kernel.
            oracle: takes the case's inputs and attributes and returns what is right: arrays
                of the output dtype where that is exact, else wide ones (``corpus.wide``), or
                ``Bounded``; a tuple for multiple outputs, or one ``Relation`` between them. It
                must not be the code under test.
            dtypes: of the calls in each row (``KernelSpec.dtype_of``), as for a kernel's
                registration; by default all that the spec accepts.
            ulp: error allowed by dtype name, ``"*"`` for the rest; default: correctly rounded.
            signed_zero: whether the sign of a zero is part of the result.
            ordinary: inputs that get no values but those of the cases: sorted ones, for
                example, or those for which NaN and infinities have no single answer.
            grown: whether cases of other sizes are derived; not where errors grow with them.
            published: errors that vendors publish, for the profile ``vendor``.

        Raises:
            RegistrationError: when the kernel has cases in this table already, or no such input.

        """

        def decorate(generate: F) -> F:
            if spec.name in self._entries:
                raise RegistrationError(f"kernel {spec.name!r} has cases in this table already")
            unknown = set(ordinary) - set(spec.input_names)
            if unknown:
                raise RegistrationError(f"{spec.name}: {sorted(unknown)} are not inputs of it")
            tried = row_dtypes(spec) if dtypes is None else dtypes
            chosen = tuple(sorted(tried, key=lambda dtype: dtype.name))  # a set has no fixed order
            self._entries[spec.name] = CaseEntry(
                spec, chosen, generate, oracle, dict(ulp or {}), signed_zero, tuple(ordinary)
            )
            self._entries[spec.name].grown = grown
            self._entries[spec.name].published = published or Published()
            return generate

        return decorate

    def rows(self, spec: KernelSpec, dtype: DType, cases: Sequence[Case], **options: Any) -> None:
        """Add cases given as data, each with its ``expected``, for one dtype."""
        self.of(spec, dtypes=(dtype,), **options)(lambda _corpus: iter(cases))

    def gradients(
        self,
        spec: KernelSpec,
        *wrt: str,
        near_only: str = "",
        cancelled: float = 0.0,
        slopes: Callable[..., Mapping[str, tuple[Array, Array]]] | None = None,
    ) -> Callable[[F], F]:
        """Decorate the function that yields smooth points, where gradients are tried.

        The oracle's own slope there (central differences in wide arithmetic) is what is right,
        unless a case's ``expected`` holds the gradients, one per name in ``wrt``, for an
        incoming gradient of ones. ``of`` must come first.

        More points, far from 0 and near it, are derived from these; ``near_only`` says why there
        are none. Each of their gradients may be off by some eps of itself, or of ``cancelled``:
        the size of the terms of which it is the difference. ``slopes`` is a formula for these
        gradients, where differences lose them (``CaseEntry.slopes``).
        """

        def decorate(smooth: F) -> F:
            entry = self._entries[spec.name]
            unknown = set(wrt) - set(spec.input_names)
            if unknown or not wrt:
                raise RegistrationError(f"{spec.name}: {sorted(unknown)} are not inputs of it")
            entry.wrt, entry.smooth = wrt, smooth
            entry.near_only, entry.cancelled, entry.slopes = near_only, cancelled, slopes
            return smooth

        return decorate

    def __iter__(self) -> Iterator[CaseEntry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
