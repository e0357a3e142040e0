"""Determinism: the same program with the same seeds gives the same bits, in every process."""

from __future__ import annotations

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError, Target
from tensorplug_conformance.checks.probes import opened
from tensorplug_conformance.checks.processes import run_module, unpack
from tensorplug_conformance.checks.programs.training import TRAININGS, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.session import Session


_STEPS: Final = 5


def digests(session: Session) -> list[str]:
    """Return for each program its name, and a hash over all bits of its results."""
    with session.entered():
        return [f"{name}: {hashlib.sha256(bits).hexdigest()}" for name, bits in _results(session)]


def _results(session: Session) -> Iterator[tuple[str, bytes]]:
    for training in TRAININGS:
        run = Run(training)
        losses = np.array(run.steps(_STEPS)).tobytes()
        yield training.name, losses + b"".join(array.tobytes() for array in run.values().values())
    if dt.uint32 in session.device.backend.dtypes:
        yield "random numbers", _noise()


def _noise() -> bytes:
    """Return a random walk, of every distribution that is the same bits everywhere."""
    source = tp.random.Generator(11)
    x = source.uniform((33, 7))
    for _ in range(3):
        mask = source.uniform(x.shape) < 0.75
        x = tp.where(mask, tp.tanh(x @ source.normal((7, 7))), 0.0)
    order: Any = source.integers((50,), high=33)
    return bytes(tp.take(x, order, axis=0).numpy().tobytes())


def _twice(_target: Target, opened: Callable[[], Session]) -> None:
    _compare(digests(opened()), digests(opened()), "the second time")


def _afresh(target: Target, _opened: Callable[[], Session]) -> None:
    """Open the backend twice more, in processes of their own."""
    with ThreadPoolExecutor() as both:
        first, second = both.map(_in_a_process, (target, target))
    _compare(first, second, "in another process")


def _compare(first: list[str], second: list[str], when: str) -> None:
    changed = [
        one.partition(":")[0] for one, other in zip(first, second, strict=True) if one != other
    ]
    if changed:
        raise CheckFailedError(f"other bits {when}: {', '.join(changed)}")


def _in_a_process(target: Target) -> list[str]:
    lines = run_module(__spec__.name, target).splitlines()
    return [line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)]  # it may print


_MARK: Final = "result: "


def main(arguments: list[str]) -> int:
    """Print the hashes of all programs for a target."""
    session = opened(unpack(arguments[-1]))
    sys.stdout.writelines(f"{_MARK}{digest}\n" for digest in digests(session))
    return 0


CHECKS: Final = (
    Check(4, "same seed, same bits", _twice),
    Check(4, "same bits in two processes", _afresh),
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
