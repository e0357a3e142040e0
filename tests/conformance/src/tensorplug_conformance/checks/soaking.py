"""Level 4: every kernel called thousands of times, in a process that has lived for over a minute.

The families of kernels are soaked in two series, so that two processes can share them. The first
check of a series calls each of its kernels in each dtype once, and the last one calls them again,
however long the checks in between have taken.
"""

from __future__ import annotations

import gc
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.cases import by_family
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.compare import same_bits
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.printing import printed
from tensorplug_conformance.soak import Call, Soak, claimed_dtypes, lead_of, soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorplug.plugin import DType
    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session

__all__ = ["CHECKS", "late"]

MINUTE: Final = 65.0  # seconds between the first and the last calls
_MORE: Final = 640  # calls in a second dtype
_PAUSE: Final = 5.0  # seconds between calls while waiting for that
_FAMILY: Final = 120.0  # seconds until kernels of one family get a little time each
_LITTLE: Final = 0.5  # seconds
_FAULTS: Final = 5  # that are told
_PROGRAM_CALLS: Final = 3300
_LARGE: Final = 1 << 12  # elements: enough for a backend to compile a chain
_EXTENSIONS: Final = "extension packages"
_FAMILIES: Final = (*by_family(), _EXTENSIONS)
_SERIES: Final = 2


@dataclass(slots=True)
class _Begun:
    """The first calls of a series, and when they ended."""

    calls: list[tuple[str, Call]]
    when: float


_BEGUN: WeakKeyDictionary[Session, dict[int, _Begun]] = WeakKeyDictionary()  # by series


def _begin(series: int, _target: Target, opened: Callable[[], Session]) -> None:
    """Call every kernel of a series once in each dtype that it claims, and keep the results."""
    session = opened()
    calls = []
    for entry in chain.from_iterable(map(_entries, _FAMILIES[series::_SERIES])):
        for dtype in claimed_dtypes(session, entry):
            case = lead_of(session, entry, dtype)
            if case is not None:
                name = f"{entry.spec.name} {dtype}, case {case.id!r}"
                calls.append((name, Call(session, entry.spec, case)))
    if not calls:
        raise CheckFailedError("no kernel runs natively")
    _BEGUN.setdefault(session, {})[series] = _Begun(calls, time.monotonic())


def late(seconds: float, series: int, target: Target, opened: Callable[[], Session]) -> None:
    """Make the first calls again, every few seconds until so many have passed: all are equal."""
    session = opened()
    # The process may be another one than the first check's, or that failed.
    if series not in _BEGUN.get(session, {}):
        _begin(series, target, opened)
    begun = _BEGUN[session][series]
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
    return soak_all(opened(), _entries(name))


def _entries(family: str) -> list[CaseEntry]:
    tables = extension_tables() if family == _EXTENSIONS else (by_family()[family],)
    return [entry for table in tables for entry in table]


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
    with _little_to_collect():
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


@contextmanager
def _little_to_collect() -> Iterator[None]:
    """Let the collector pass over what there is now; it runs after every few hundred calls."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


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
    def chained(x: Any, y: Any) -> Any:
        z = tp.tanh(x * y + 0.5) - y
        return z, tp.sum(z * z)

    with opened().entered():
        sets = [
            [tp.asarray(np.linspace(low, high, _LARGE, dtype=np.float32)) for high in (3.0, 5.0)]
            for low in (-1.0, 0.0, 1.0)
        ]
        first = [[one.numpy() for one in chained(*arguments)] for arguments in sets]
        for call in range(_PROGRAM_CALLS):
            at = call * call % 7 % 3  # not in step with any count
            found = [one.numpy() for one in chained(*sets[at])]
            if not all(same_bits(a, b) for a, b in zip(first[at], found, strict=True)):
                raise CheckFailedError(
                    f"call {call + 1} of a compiled chain gave other bits than the first one with "
                    "these arguments"
                )


def _series(number: int) -> Iterator[Check]:
    part = f"part {number + 1} of {_SERIES}"
    soaked = [(f"soak: {name}", partial(_family, name)) for name in _FAMILIES[number::_SERIES]]
    for name, run in (
        (f"soak: first calls, {part}", partial(_begin, number)),
        *soaked,
        *((("soak: a compiled program", _program),) if number == 0 else ()),
        (f"soak: last calls, {part}", partial(late, MINUTE, number)),
    ):
        yield Check(4, name, run, series=f"soak, {part}")


CHECKS: Final = tuple(chain.from_iterable(map(_series, range(_SERIES))))
