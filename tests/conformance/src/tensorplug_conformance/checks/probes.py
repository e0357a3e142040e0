"""Small programs that run in a process of their own: ``python -m ...probes NAME TARGET``.

They print nothing when they pass, so that everything on stdout comes from the backend.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

import tensorplug as tp
from tensorplug.plugin import TensorplugError, specs
from tensorplug_conformance.checks.check import CheckFailedError, NotMeasuredError, Target
from tensorplug_conformance.checks.processes import tell, unpack
from tensorplug_conformance.session import Session, engine_factory
from tensorplug_conformance.trying.leftovers import Leftovers, settled
from tensorplug_conformance.trying.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable


CHILD_SECONDS: Final = 30.0
_OPENINGS: Final = 3  # a child that opens the backend has so many times its parent's time more
OFTEN: Final = 300
# Elements by the number of the call: memory of such sizes may come from another place, which the
# end of the process frees in another way. Their sum has so large an error in float32.
_LARGE: Final = {10: 1 << 12, 20: 1 << 16, 30: 1 << 20, 40: 1 << 14, 60: 1 << 18}
_ERROR: Final = 1e-4
_REOPENED: Final = 5
_LEFT: Final = 200 * 2**16  # bytes; a two hundredth of them, left by each opening, is a leak
_LONG: Final = 60.0  # seconds for all
_CLEAR_ERROR: Final = 4


def use(session: Session) -> None:
    """Add two vectors; that must work on every open backend."""
    a, b = (session.upload(np.array(array, dtype=np.float32)) for array in ([1, 2], [3, 4.5]))
    outcome = session.read(session.call(specs.ADD, [a, b], {})[0]).tolist()
    if outcome != [4.0, 6.5]:
        raise CheckFailedError(f"[1, 2] + [3, 4.5] is {outcome}")


def use_often(session: Session) -> None:
    """Transfer and compute some hundred times, with other numbers and sizes each time."""
    for number in range(OFTEN):
        size = _LARGE.get(number, 1 + number * number % 97)
        numbers = np.arange(size, dtype=np.float32) + number
        x = session.upload(numbers)
        doubled = session.read(session.call(specs.ADD, [x, x], {})[0])
        total = float(session.read(session.call(specs.SUM, [x], {})[0]))
        if not np.array_equal(session.read(x), numbers):
            raise CheckFailedError(f"transfer {number + 1} of {OFTEN} brought other numbers")
        meant = numbers.sum(dtype=np.float64)
        error = _ERROR * meant if number in _LARGE else 0.0
        if not np.array_equal(doubled, 2 * numbers) or abs(total - meant) > error:
            raise CheckFailedError(f"calculation {number + 1} of {OFTEN} is wrong")


def opened(target: Target) -> Session:
    """Return a session on the target."""
    factory = engine_factory(target.factory)
    return Session(factory, target.backend, falls_back=target.falls_back)


def discovery(target: Target) -> None:
    """List the backends; that must not import a module of the plugin."""
    if target.factory is not None:
        raise NotMeasuredError("this backend is not an installed plugin")
    installed = {backend.name: backend for backend in tp.backends()}
    if target.backend not in installed:
        raise CheckFailedError(f"it is not listed among {sorted(installed)}")
    entry = _entry_point(target.backend)
    package = entry.module.partition(".")[0]
    if package in sys.modules:
        raise CheckFailedError(f"listing the backends imported {package}")


def _entry_point(backend: str) -> importlib.metadata.EntryPoint:
    entries = importlib.metadata.entry_points(group="tensorplug.backends", name=backend)
    if not entries:
        raise CheckFailedError(
            f"no entry point of the group tensorplug.backends is called {backend!r}"
        )
    return next(iter(entries))


def open_and_use(target: Target) -> None:
    """Open, use and leave without closing: the process must end cleanly all the same."""
    session = opened(target)
    if session.device.backend.name != target.backend:
        raise CheckFailedError(f"it calls itself {session.device.backend.name!r}")
    if not session.device.backend.device.strip():
        raise CheckFailedError("it does not describe its device")
    use(session)
    use_often(session)


def settings(target: Target) -> None:
    """Open, use, close; what the process has for all must be as it was before."""
    before = Surroundings()
    session = opened(target)
    use(session)
    use_often(session)
    session.close()
    changed = before.fault()
    if changed:
        raise CheckFailedError(changed)


def reopen(target: Target) -> None:
    """Open, use, close; three times, and then two engines at once."""
    for _ in range(3):
        session = opened(target)
        use(session)
        session.close()
    first, second = opened(target), opened(target)
    use(first)
    use(second)
    first.close()
    use(second)  # closing one engine's device must not take the other's away


def reopen_often(target: Target) -> None:
    """Open, use and close many times: nothing may be left of each time."""
    kept = opened(target)
    began = time.monotonic()
    leftovers = Leftovers(kept.device.backend, _LEFT * _REOPENED)

    def part() -> int:
        for _ in range(_REOPENED):
            session = opened(target)
            use(session)
            session.close()
        if time.monotonic() - began > _LONG:
            raise NotMeasuredError(f"to open it {_REOPENED} times took over {_LONG:g} s")
        return _REOPENED

    fault = settled(leftovers, part)
    if fault:
        raise CheckFailedError(f"open, use, close: {fault}")


def fork(target: Target) -> None:
    """Fork after use. The child must work, or raise one of tensorplug's errors at once.

    If it works, it must go on working, and so must a child of its own.
    """
    if not hasattr(os, "fork"):
        raise NotMeasuredError("this platform cannot fork")
    session = opened(target)
    use(session)

    def work() -> None:
        use_often(session)
        if _forked(session, lambda: use_often(session)):
            raise CheckFailedError("the child's own child refuses, although the child works")

    _forked(session, work)
    use_often(session)  # and the parent must still work


def _forked(session: Session, work: Callable[[], None]) -> int:
    """Fork; use the backend in the child, and then do ``work``, unless the first use is refused.

    Return 0, or another number if it is refused.

    Raises:
        CheckFailedError: the child fails in another way, or hangs.

    """
    child = os.fork()
    if not child:
        _in_child(session, work)
    code = _waited(child)
    if code not in (0, _CLEAR_ERROR):
        raise CheckFailedError(f"the forked child ended with status {code}, without a clear error")
    return code


def _in_child(session: Session, work: Callable[[], None]) -> NoReturn:
    code = 1
    try:
        try:
            use(session)
        except TensorplugError as error:
            sys.stderr.write(f"the child said: {error}\n")
            code = _CLEAR_ERROR
        else:
            work()
            code = 0
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent says so
        sys.stderr.write(f"the child failed: {type(error).__name__}: {error}\n")
    finally:
        os._exit(code)  # the child must not run the parent's exit handlers


def _waited(child: int) -> int:
    """Return the child's exit status; kill it when it hangs.

    Raises:
        CheckFailedError: when it hangs.

    """
    deadline = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise CheckFailedError(f"the forked child hung for {CHILD_SECONDS:g} s")


def spawn(target: Target) -> None:
    """Open in a spawned process while this one has it open too."""
    begun = time.monotonic()
    use(opened(target))
    seconds = CHILD_SECONDS + _OPENINGS * (time.monotonic() - begun)
    process = multiprocessing.get_context("spawn").Process(target=_spawned, args=(target,))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        raise CheckFailedError(f"the spawned child hung for {seconds:.0f} s")
    if process.exitcode:
        raise CheckFailedError(f"the spawned child ended with status {process.exitcode}")


def _spawned(target: Target) -> None:
    session = opened(target)
    use(session)
    use_often(session)


_ALL: Final = (discovery, open_and_use, settings, reopen, reopen_often, fork, spawn)
PROBES: Final = {probe.__name__: probe for probe in _ALL}


def main(arguments: list[str]) -> int:
    """Run one probe: its name, and the target."""
    name, target = arguments
    return tell(partial(PROBES[name], unpack(target)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
