"""Level 4: every kernel called thousands of times, and again in a process that has lived for long.

One check calls each kernel in each dtype once, before all rows and other checks of levels 2 to 4
that its process runs, and another one calls them again, after these.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.cases import by_family
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.comparing.compare import same_bits
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.trying.leftovers import pass_over
from tensorplug_conformance.trying.printing import printed
from tensorplug_conformance.trying.soak import Call, Soak, claimed_dtypes, lead_of, soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.plugin import DType
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


MINUTE: Final = 75.0  # seconds between the first and the last calls
_MORE: Final = 640  # calls in a second dtype
_PAUSE: Final = 5.0  # seconds between calls while waiting for that
_FAMILY: Final = 120.0  # seconds until kernels of one family get a little time each
_LITTLE: Final = 0.5  # seconds
_FAULTS: Final = 5  # that are told
_PROGRAM_CALLS: Final = 3300
_LARGE: Final = 1 << 12  # elements: enough for a backend to compile a chain
_EXTENSIONS: Final = "extension packages"


@dataclass(slots=True)
class _Begun:
    """The first calls of a session, and when they ended."""

    calls: list[tuple[str, Call]]
    when: float


_BEGUN: WeakKeyDictionary[Session, _Begun] = WeakKeyDictionary()


def _begin(_target: Target, opened: Callable[[], Session]) -> None:
    """Call every kernel once in each dtype that it claims, and keep the results."""
    session = opened()
    calls = []
    for entry in entries(extension_tables()).values():
        for dtype in claimed_dtypes(session, entry):
            case = lead_of(session, entry, dtype)
            if case is not None:
                name = f"{entry.spec.name} {dtype}, case {case.id!r}"
                calls.append((name, Call(session, entry.spec, case)))
    if not calls:
        raise CheckFailedError("no kernel runs natively")
    _BEGUN[session] = _Begun(calls, time.monotonic())


def late(seconds: float, target: Target, opened: Callable[[], Session]) -> None:
    """Make the first calls again, every few seconds until so many have passed: all are equal."""
    session = opened()
    if session not in _BEGUN:  # the process is another one than the first check's, or that failed
        _begin(target, opened)
    begun = _BEGUN[session]
    faults: list[str] = []
    with warnings.catch_warnings(), printed() as output:
        warnings.simplefilter("ignore")
        while not faults:
            left = begun.when + seconds - time.monotonic()
            time.sleep(max(0.0, min(left, _PAUSE)))
            for name, call in begun.calls:
                for operands in (call.operands, call.fresh()):
                    fault, _ = call.again(operands)
                    if fault:
                        faults.append(f"{name}: {fault}")
                        break
            if left <= _PAUSE:
                break
    if output.text:
        faults.append(f"it printed {output.text!r}")
    if faults:
        passed = time.monotonic() - begun.when
        raise CheckFailedError(f"{passed:.0f} s after the first calls: {_listed(faults)}")


def _listed(faults: list[str]) -> str:
    more = f"; and {len(faults) - _FAULTS} more" if len(faults) > _FAULTS else ""
    return "; ".join(faults[:_FAULTS]) + more


def _family(name: str, _target: Target, opened: Callable[[], Session]) -> str:
    """Call the native kernels of a family over and over, in two dtypes each."""
    session = opened()
    tables = extension_tables() if name == _EXTENSIONS else (by_family()[name],)
    return soak_all(session, [entry for table in tables for entry in table])


def soak_all(session: Session, kernels: Iterable[CaseEntry], most: Soak | None = None) -> str:
    """Soak kernels; return what is to be noted: those that were called less often.

    Raises:
        CheckFailedError: what went wrong, and in which call.
        NotMeasuredError: none of them is native.

    """
    full = most or Soak()
    least = full.alone + 2 * full.beside
    faults, fewer, count = [], [], 0
    end = time.monotonic() + _FAMILY
    pass_over()  # soaking collects after every few hundred calls
    for entry in kernels:
        for number, dtype in enumerate(_two(session, entry)):
            amount = replace(full, seconds=_LITTLE) if time.monotonic() > end else full
            if number:
                amount = replace(amount, alone=_MORE, beside=0)
            fault, calls = soaked(session, entry, dtype, amount)
            count += calls > 0
            if fault:
                faults.append(f"{entry.spec.name} {dtype}: {fault}")
            elif calls < least and not number:
                fewer.append(f"{entry.spec.name} {dtype} ({calls})")
    if faults:
        raise CheckFailedError(_listed(faults))
    if not count:
        raise NotMeasuredError("the backend has no native kernel here that a small case runs")
    return f"fewer than {least} calls: {', '.join(fewer)}" if fewer else ""


def _two(session: Session, entry: CaseEntry) -> Iterator[DType]:
    """Yield the first dtype in which a small case is native, and one of another kind if any is."""

    def native(dtypes: Iterable[DType]) -> DType | None:
        return next((d for d in dtypes if lead_of(session, entry, d) is not None), None)

    dtypes = claimed_dtypes(session, entry)
    first = native(dtypes)
    if first is None:
        return
    yield first
    floating = first in dt.INEXACT
    others = sorted(
        (dtype for dtype in dtypes if dtype is not first),
        key=lambda dtype: ((dtype in dt.INEXACT) == floating, dtype is not dt.int32),
    )
    second = native(others)
    if second is not None:
        yield second


def _program(_target: Target, opened: Callable[[], Session]) -> None:
    """Call a compiled program over and over, on three sets of arguments in turn."""

    @tp.compile
    def chain(x: Any, y: Any) -> Any:
        z = tp.tanh(x * y + 0.5) - y
        return z, tp.sum(z * z)

    with opened().entered():
        sets = [
            [tp.asarray(np.linspace(low, high, _LARGE, dtype=np.float32)) for high in (3.0, 5.0)]
            for low in (-1.0, 0.0, 1.0)
        ]
        first = [[one.numpy() for one in chain(*arguments)] for arguments in sets]
        for call in range(_PROGRAM_CALLS):
            at = call * call % 7 % 3  # not in step with any count
            items = [one.numpy() for one in chain(*sets[at])]
            if not all(same_bits(a, b) for a, b in zip(first[at], items, strict=True)):
                raise CheckFailedError(
                    f"call {call + 1} of a compiled chain gave other bits than the first one with "
                    "these arguments"
                )


_LIFE: Final = "a process's life"
FIRST: Final = (Check(4, "soak: first calls", _begin, series=_LIFE),)
LAST: Final = (
    *(Check(4, f"soak: {name}", partial(_family, name)) for name in (*by_family(), _EXTENSIONS)),
    Check(4, "soak: a compiled program", _program),
    Check(4, "soak: last calls", partial(late, MINUTE), series=_LIFE),
)
