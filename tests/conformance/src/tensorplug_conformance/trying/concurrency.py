"""Whether two threads that call one kernel at once disturb each other."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.case import flat
from tensorplug_conformance.comparing.compare import same_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array, Case
    from tensorplug_conformance.session import Session


_CALLS: Final = 5
_MANY: Final = 300  # calls, in which memory that is shared is overwritten at the wrong moment
_FEWEST: Final = 2
_BRIEF: Final = 0.03  # seconds for these, or a few calls that take longer
_WIDE: Final = (1 << 14, 1 << 17)  # elements: other threads run while NumPy works on so many
_PATIENCE: Final = 120.0  # seconds
_SWITCHING: Final = 2e-5  # seconds after which Python lets the other thread run


def disturbed(
    session: Session,
    spec: KernelSpec,
    operands: Sequence[Sequence[Any]],
    attributes: Mapping[str, Any],
    calls: int = _CALLS,
) -> str:
    """Call the kernel in one thread for each of ``operands``; return what went wrong, if any.

    Each thread must keep getting the bits that it gets alone. The operands have the same types, so
    that a plan, and whatever memory it holds, is shared.
    """

    def call(at: int) -> list[Array]:
        return [session.read(output) for output in session.call(spec, operands[at], attributes)]

    alone = [call(at) for at in range(len(operands))]
    faults: list[str] = []
    start = threading.Barrier(len(operands))

    def work(at: int) -> None:
        try:
            start.wait(_PATIENCE)
            for number in range(calls):
                for meant, result in zip(alone[at], call(at), strict=True):
                    if not same_bits(meant, result):
                        faults.append(
                            "a call in another thread at the same time changed a result "
                            f"(in the {number + 1}. of {calls} calls of each)"
                        )
                        return
        except Exception as error:  # noqa: BLE001  # whatever went wrong in a thread is the verdict
            faults.append(f"in a thread: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(at,), daemon=True) for at in range(len(alone))]
    with _switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE)
    if any(thread.is_alive() for thread in threads):
        return "calls in two threads at once hang"
    return faults[0] if faults else ""


def widest(cases: Sequence[Case]) -> Case | None:
    """Return the case with the largest inputs that are not huge; None if all are small."""
    sized = [
        (max((array.size for array in flat(case.inputs)), default=0), case)
        for case in cases
        if not case.refused
        and not case.light
        and case.layout == "dense"
        and not any(array.dtype.kind == "T" for array in flat(case.inputs))
    ]
    fitting = [one for one in sized if _WIDE[0] <= one[0] <= _WIDE[1]]
    return max(fitting, key=lambda one: one[0])[1] if fitting else None


def disturbed_often(
    session: Session,
    spec: KernelSpec,
    operands: Sequence[Sequence[Any]],
    attributes: Mapping[str, Any],
) -> str:
    """Do the same as ``disturbed``, with as many calls as take a moment."""
    begun = time.perf_counter()
    for output in session.call(spec, operands[0], attributes):
        session.read(output)
    taken = time.perf_counter() - begun
    calls = min(_MANY, max(_FEWEST, int(_BRIEF / (taken * len(operands)))))
    return disturbed(session, spec, operands, attributes, calls)


@contextmanager
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCHING)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
