"""All cases of one kernel, with their oracle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import RegistrationError
from tensorplug.plugin import dtypes as dt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tensorplug.plugin import DType, KernelSpec
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Published:
    """Errors of a function in tables that vendors publish, for the profile ``vendor``.

    ``ulp``: the largest error, by dtype name; CUDA's tables compare with the rounded value, so add
    half a unit. ``absolute``: by dtype name, the error allowed instead where |x| is at least
    ``absolute_from``. ``gap``: between these x, no number is published.
    """

    ulp: Mapping[str, float] = field(default_factory=dict)
    absolute: Mapping[str, float] = field(default_factory=dict)
    absolute_from: float = 0.0
    gap: tuple[float, float] | None = None


@dataclass(slots=True)
class CaseEntry:
    """All cases of one kernel.

    ``dtypes``: of the rows, that is of the calls (``KernelSpec.dtype_of``). ``ulp``: the error
    allowed, by dtype name or ``"*"``, where the suite's own table has no line. ``signed_zero``: a
    zero result must have the oracle's sign. ``ordinary``: inputs that get special values from the
    cases alone. ``wrt``: inputs whose gradients are tried, on the cases of ``smooth``.
    ``grown``: cases of other sizes are derived. ``near_only``: why gradients are tried nowhere
    else; empty if far from 0 too. ``cancelled``: the size of terms that cancel in a gradient far
    from 0, which may be off by as many eps. ``slopes``: a formula for gradients far from 0, where
    differences of the oracle lose them: it takes the incoming gradient and the inputs, all wide,
    and returns the gradients by input, and the sizes of the terms that they are sums of.
    ``published``: beside the suite's own tables of the profile ``vendor``.
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
    grown: bool = True
    near_only: str = ""
    cancelled: float = 0.0
    slopes: Callable[..., Mapping[str, tuple[Array, Array]]] | None = None
    published: Published = field(default_factory=Published)

    @property
    def leading(self) -> DType:
        """The dtype in which a kernel is tried in most ways."""
        return dt.float32 if dt.float32 in self.dtypes else self.dtypes[0]

    @property
    def moves(self) -> bool:
        """Whether the kernel can only move elements: it takes all dtypes, texts too."""
        return any(self.spec.accepted(name) == dt.STORED for name in self.spec.input_names)

    def answered(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Return the oracle's answer; infinities among the inputs make NaN without a warning."""
        assert self.oracle is not None  # the table requires it
        with np.errstate(all="ignore"):
            return self.oracle(*inputs, **attributes)

    def answer(self, case: Case) -> Any:
        """Return the oracle's answer to a case, or to the first period of one that has it."""
        inputs: Sequence[Any] = case.inputs
        if case.period:
            inputs = [x[0] if x.ndim == 2 else x[: case.period] for x in inputs]
        return self.answered(inputs, case.attributes)

    def gradient_cases(self, corpus: Corpus) -> Iterator[Case]:
        """Yield the cases at which gradients are tried."""
        return self.checked(self.smooth(corpus) if self.smooth else ())

    def checked(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield cases of this kernel.

        Raises:
            RegistrationError: when two have one id, or one has no oracle.

        """
        seen: set[str] = set()
        for case in cases:
            if case.id in seen:
                raise RegistrationError(f"{self.spec.name}: two cases are called {case.id!r}")
            if case.expected is None and self.oracle is None:
                raise RegistrationError(
                    f"{self.spec.name}, case {case.id!r}: neither expected outputs nor an oracle"
                )
            seen.add(case.id)
            yield case


def row_dtypes(spec: KernelSpec) -> tuple[DType, ...]:
    """Return the dtypes that calls of a kernel can have (``KernelSpec.dtype_of``).

    ``dtypes=`` means these everywhere: of a kernel's registration, of a case table, of a row. They
    are those of the input that ``spec.typed_by`` names: of (indices, updates) the updates. Where
    integers become floats before a kernel sees them, only inexact dtypes are left.
    """
    allowed = spec.accepted(spec.typed_by) if spec.typed_by else dt.FIXED
    if spec.inexact:
        allowed &= dt.INEXACT
    # Those that only store have a check of their own.
    return tuple(sorted(allowed - dt.STORAGE, key=lambda dtype: dtype.name))
