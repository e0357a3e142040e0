"""Whether two threads that call one kernel at once disturb each other."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tensorplug_conformance.compare import same_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tensorplug.plugin import KernelSpec
    from tensorplug_conformance.case import Array
    from tensorplug_conformance.session import Session

__all__ = ["disturbed"]

_CALLS: Final = 5
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
                for meant, found in zip(alone[at], call(at), strict=True):
                    if not same_bits(meant, found):
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


@contextmanager
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCHING)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
