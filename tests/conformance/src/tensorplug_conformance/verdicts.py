"""The verdicts on rows, cases and checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tensorplug_conformance.case import MARK, mapped

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array, Case, Presentation
    from tensorplug_conformance.denominator import Row


Item = tuple[Any, ...]  # ("check", level, id) or ("row", kernel, dtype, mode), ("evidence", ...)
Status = Literal[
    "pass native",
    "pass widened",
    "pass decomposed",
    "pass gradient",
    "fail",
    "fallback",
    "missing",
    "expected fail",
    "unsupported dtype",
    "not claimed",
]
PASSED: Final = ("pass native", "pass widened", "pass decomposed", "pass gradient")
BLOCKING: Final = ("fail", "fallback", "missing")
"""With any of these a backend is not conformant."""

SMALL: Final = 64  # elements; larger inputs are named by suite version, seed and case id


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an item: the worker's verdict, or why there is none."""

    item: Item
    verdict: dict[str, Any] | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """One case that failed: what is wrong, and the inputs if they are small.

    ``tolerated``: it is within a vendor's bounds.
    """

    case: str
    message: str
    attributes: dict[str, str] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    tolerated: bool = False

    @classmethod
    def of(
        cls,
        case: Case,
        message: str,
        presentation: Presentation | None = None,
        *,
        tolerated: bool = False,
    ) -> Failure:
        """Return the failure of ``case``, perhaps in one of its presentations."""
        attributes = {name: repr(value) for name, value in case.attributes.items()}
        name = case.id if presentation is None else f"{case.id}{MARK}{presentation.id}"
        return cls(name, message, attributes, inputs_as_data(case), tolerated)


@dataclass(slots=True)
class RowVerdict:
    """The verdict on a row.

    ``cases``: how many it has; ``unsupported``: those that need another dtype; ``beyond``: those
    that need a larger buffer than the backend declares that there is; ``examples``:
    random ones, tried in addition, which no other number counts; ``widened``: whether any ran in
    a wider dtype; ``failed``: the ids of all that failed; ``failures`` describes the first ones,
    and an example. ``vendor``: the status within a vendor's bounds, and ``tolerated`` the failed
    cases that are within these. ``pairs``: how many pairs of properties the calls of a native row
    covered, of how many; ``coverage``: the same by pair of properties.
    """

    row: Row
    status: Status
    cases: int
    passed: int = 0
    declined: int = 0
    unsupported: int = 0
    beyond: int = 0
    examples: int = 0
    widened: bool = False
    ulp: float = 0.0
    seconds: float = 0.0
    reason: str = ""
    failed: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    vendor: Status = "fail"
    tolerated: list[str] = field(default_factory=list)
    pairs: list[int] = field(default_factory=lambda: [0, 0])
    coverage: dict[str, list[int]] = field(default_factory=dict)


@dataclass(slots=True)
class CheckVerdict:
    """The verdict on one check."""

    level: int
    check: str
    status: Literal["pass", "fail", "not measured"]
    message: str = ""
    seconds: float = 0.0


def inputs_as_data(case: Case) -> list[Any]:
    """Return small inputs with every element as text that Python reads back exactly."""
    return [mapped(_array, operand) for operand in case.inputs]


def _array(array: Array) -> dict[str, Any]:
    described: dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size <= SMALL:
        described["elements"] = [str(number) for number in np.ravel(array).tolist()]
    return described
