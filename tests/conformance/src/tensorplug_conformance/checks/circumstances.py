"""Each kernel once more where programs call it, and rows do not.

In a second engine, after another one was closed, in a thread, deep in a recursion, in a forked
child: every kernel must give the bits that it gave at first. This is a process of its own,
``python -m ...circumstances LEVEL SECONDS TARGET``, since some of it would disturb other checks.
"""

from __future__ import annotations

import gc
import math
import os
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from tensorplug.plugin import TensorplugError
from tensorplug_conformance.checks.check import CheckFailedError, NotMeasuredError, Target
from tensorplug_conformance.checks.probes import opened
from tensorplug_conformance.checks.processes import tell, unpack
from tensorplug_conformance.denominator import entries
from tensorplug_conformance.extensions import extension_tables
from tensorplug_conformance.primitives import PRIMITIVES
from tensorplug_conformance.trying.printing import printed
from tensorplug_conformance.trying.soak import Call, calls_of, claimed_dtypes
from tensorplug_conformance.trying.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tensorplug_conformance.session import Session


_DEEP: Final = 400  # calls of Python
_ALIVE: Final = 6000  # buffers
_ROUND: Final = 6.0  # seconds for all calls in one place
_FAULTS: Final = 3  # that are told
_Calls = dict[str, Call]


def first_calls(session: Session, level: int, seconds: float = math.inf) -> tuple[_Calls, int]:
    """Call each native kernel of a level on a few small cases, and on one in further dtypes.

    Further dtypes come last. A compiler may take longer than ``seconds`` for all of them: return
    the calls, and in how many kernels' dtypes none was made.
    """
    by_kernel: _Calls = {}
    end, left = time.monotonic() + seconds, 0
    of_level = [
        (number, name, entry, dtype)
        for name, entry in entries(extension_tables()).items()
        if (name in PRIMITIVES) == (level == 2)
        for number, dtype in enumerate(claimed_dtypes(session, entry))
    ]
    for number, name, entry, dtype in sorted(of_level, key=lambda each: each[0] > 0):
        if by_kernel and time.monotonic() > end:
            left += 1
            continue
        cases = calls_of(session, entry, dtype)
        for at, case in enumerate(cases[:1] if number else cases):
            label = f"{name} {dtype}, case {case.id!r} ({at + 1})"
            by_kernel[label] = Call(session, entry.spec, case)
    return by_kernel, left


def _repeated(calls: _Calls) -> Iterator[str]:
    """Make the calls again, on the same buffers and on new ones; yield what went wrong."""
    for name, call in calls.items():
        for make in (lambda call=call: call.operands, call.fresh):
            try:
                fault, _ = call.again(make())
            except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
                fault = f"{type(error).__name__}: {error}"
            if fault:
                yield f"{name}: {fault}"
                break


def _compared(calls: _Calls, session: Session) -> Iterator[str]:
    """Make the calls in another engine; yield what differs from the first ones."""
    for name, call in calls.items():
        try:
            fault = call.difference(Call(session, call.spec, call.case))
        except Exception as error:  # noqa: BLE001  # whatever a backend raises is a verdict
            fault = f"{type(error).__name__}: {error}"
        if fault:
            yield f"{name}: {fault}"


def _in_a_thread(calls: _Calls) -> list[str]:
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.extend(_repeated(calls)))
    thread.start()
    thread.join()
    return texts


def _deep(calls: _Calls, depth: int = _DEEP) -> list[str]:
    return _deep(calls, depth - 1) if depth else list(_repeated(calls))


@contextmanager
def _many_alive(calls: _Calls) -> Iterator[None]:
    session = next(iter(calls.values())).session
    array = np.zeros(3, np.float32)
    held = [session.device.backend.from_host(array) for _ in range(_ALIVE)]
    yield
    held.clear()


@contextmanager
def _collected(_calls: _Calls) -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@contextmanager
def _warned(_calls: _Calls) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A backend may warn of integer divisors 0, as NumPy does.
        warnings.filterwarnings("ignore", "divide by zero", RuntimeWarning)
        yield


@contextmanager
def _strict_numpy(_calls: _Calls) -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


_WHILE: Final = {
    "while 6000 buffers are alive": _many_alive,
    "after a collection, with none to come": _collected,
    "where warnings are errors": _warned,
    "where NumPy raises on overflow": _strict_numpy,
}


def _forked(calls: _Calls) -> list[str]:
    """Make the calls in a child, unless the backend says clearly that it does not work there."""
    one = next(iter(calls.values()))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            try:
                one.again(one.operands)
            except TensorplugError:
                lines = []
            else:
                lines = list(_repeated(calls))
            os.write(writing, "\n".join(lines[:_FAULTS]).encode()[:4000])
            code = 0
        except BaseException as error:  # noqa: BLE001  # the child must not go on as the parent does
            os.write(writing, repr(error).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode(errors="replace").splitlines()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return lines or ([f"the child ended with status {status}"] if status else [])


def _faults(level: int, seconds: float, target: Target) -> Iterator[tuple[str, list[str]]]:
    """Yield where the kernels were called, and what was wrong there."""
    open_ = partial(opened, target)
    session = open_()
    calls, left = first_calls(session, level, seconds)
    if left:
        text = (
            f"{left} dtypes of kernels were left out: the others' first calls took {seconds:.0f} s"
        )
        sys.stdout.write(text)
    if not calls:
        raise NotMeasuredError("the backend has no native kernel here that a small case runs")
    surroundings = Surroundings()
    begun = time.monotonic()
    yield "again", list(_repeated(calls))
    step = 1 + int((time.monotonic() - begun) / _ROUND)  # a slow device makes fewer calls
    calls = dict(list(calls.items())[::step])
    yield "in another thread", _in_a_thread(calls)
    yield f"{_DEEP} calls deep", _deep(calls)
    for where, entered in _WHILE.items():
        with entered(calls):
            faults = list(_repeated(calls))
        yield where, faults
    yield "all kernels", [fault for fault in [surroundings.fault()] if fault]
    if hasattr(os, "fork"):
        with printed() as output:
            faults = _forked(calls)
        said = [f"it printed {output.text!r}"] if output.text else []
        yield "in a forked child", faults or said
    second = open_()
    yield "in a second engine", list(_compared(calls, second))
    second.close()
    yield "after a second engine was closed", list(_repeated(calls))
    session.close()
    yield "in a new engine, when others were closed", list(_compared(calls, open_()))


def _check(level: int, seconds: float, target: Target) -> None:
    for where, faults in _faults(level, seconds, target):
        if faults:
            more = f"; and {len(faults) - _FAULTS} more" if len(faults) > _FAULTS else ""
            raise CheckFailedError(f"{where}: {'; '.join(faults[:_FAULTS])}{more}")


def main(arguments: Sequence[str]) -> int:
    """Make the calls: for a level, at first for so many seconds, of a target."""
    level, seconds, target = arguments
    return tell(partial(_check, int(level), float(seconds), unpack(target)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
