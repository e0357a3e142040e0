"""Programs in several threads: each trains for itself, and all share a compiled function."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.checks.programs.training import TRAININGS, Run
from tensorplug_conformance.comparing.compare import same_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


_THREADS: Final = 4
_STEPS: Final = 6
_SECONDS: Final = 120.0


def _trained(seed: int) -> list[Array]:
    run = Run(TRAININGS[seed % 3], seed=seed)
    losses = run.steps(_STEPS)
    return [np.array(losses), *run.values().values()]


def _shared(compiled: Any, seed: int) -> list[Array]:
    x = tp.asarray(np.random.default_rng(seed).uniform(-1, 1, 333).astype(np.float32))
    for _ in range(_STEPS):
        x = compiled(x)
    return [np.array(x.numpy())]


def _compare(session: Session, work: Callable[[int], list[Array]]) -> None:
    """Run ``work`` with some numbers one after the other, then at once: the same bits."""
    with session.entered():
        alone = [work(number) for number in range(_THREADS)]
    by_thread: dict[int, list[Array]] = {}
    faults: list[str] = []
    start = threading.Barrier(_THREADS)

    def body(number: int) -> None:
        try:
            with session.entered():
                start.wait(_SECONDS)
                by_thread[number] = work(number)
        except Exception as error:  # noqa: BLE001  # whatever went wrong in a thread is the verdict
            faults.append(f"thread {number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=body, args=(n,), daemon=True) for n in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SECONDS)
    if any(thread.is_alive() for thread in threads):
        raise CheckFailedError("programs in several threads hang")
    if faults:
        raise CheckFailedError("; ".join(faults[:3]))
    for number, meant in enumerate(alone):
        if not all(map(same_bits, meant, by_thread[number])):
            raise CheckFailedError(f"thread {number} got other bits than the same work alone")


def _trainings(_target: Target, opened: Callable[[], Session]) -> None:
    _compare(opened(), _trained)


def _one_program(_target: Target, opened: Callable[[], Session]) -> None:
    compiled = tp.compile(lambda x: tp.tanh(x * 1.5) + tp.square(x) / 4 - 0.25)
    _compare(opened(), lambda number: _shared(compiled, number))


CHECKS: Final = (
    Check(4, "threads that train", _trainings),
    Check(4, "threads that share a program", _one_program),
)
