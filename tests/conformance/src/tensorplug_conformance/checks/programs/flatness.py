"""Flat memory: as much is held after 10 N steps as after N, whatever the steps do."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import ShapeError
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.checks.programs import references
from tensorplug_conformance.checks.programs.models import PERCEPTRON
from tensorplug_conformance.checks.programs.training import TRAININGS, Run, Training
from tensorplug_conformance.trying.leftovers import pass_over

if TYPE_CHECKING:
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


N: Final = 4

# Not Adam: its numbers change with each step, and the engine keeps the latest of them.
_TRAINING: Final = Training(
    "perceptron, momentum",
    PERCEPTRON,
    lambda: tp.train.momentum(0.1, 0.5),
    references.momentum(0.1, 0.5),
)

Step = Callable[[], object]


class _InterruptedError(Exception):
    """An exception half way through a program."""


def _by_hand() -> Step:
    return Run(TRAININGS[0]).step


def _with_variables() -> Step:
    return Run(_TRAINING).step


def _in_a_scope() -> Step:
    run = Run(_TRAINING)
    return lambda: tp.tidy(run.step)


def _compiled() -> Step:
    start = {name: tp.asarray(item) for name, item in PERCEPTRON.start().items()}
    x, y = map(tp.asarray, PERCEPTRON.batch())
    state = [start]

    @tp.compile
    def descended(p: Any, x: Any, y: Any) -> Any:
        slopes = tp.grad(PERCEPTRON.loss)(p, x, y)
        return {name: item - 0.25 * slopes[name] for name, item in p.items()}

    def step() -> None:
        state[0] = descended(state[0], x, y)

    return step


def _interrupted() -> Step:
    """An exception of the program's own, while a loss is computed and differentiated."""
    run = Run(_TRAINING)

    def broken() -> Any:
        halfway = run.loss() * 2
        raise _InterruptedError(halfway.shape)

    def step() -> None:
        try:
            run.optimizer.minimize(broken, list(run.parameters.values()))
        except _InterruptedError:
            run.step()

    return step


def _interrupted_in_a_scope() -> Step:
    run = Run(_TRAINING)

    def broken() -> Any:
        loss = run.loss()
        raise _InterruptedError(loss.shape)

    def step() -> None:
        try:
            tp.tidy(broken)
        except _InterruptedError:
            tp.tidy(run.step)

    return step


def _refused() -> Step:
    """An op that refuses its operands in the middle of a backward pass."""
    x, w = (tp.asarray(np.full((4, 4), 0.5, np.float32)) for _ in range(2))

    @tp.custom_grad
    def odd(x: Any) -> Any:
        return x * 2, lambda dy: dy @ tp.ones((3,))

    def step() -> None:
        try:
            tp.grad(lambda w: tp.sum(odd(x @ w) * x))(w)
        except ShapeError:
            return
        raise CheckFailedError("a product of shapes that do not fit was no error")

    return step


def _fails_compiled() -> Step:
    """A program whose call is refused, since an operand was disposed of."""
    double = tp.compile(lambda x: tp.exp(x) * 2 + x)
    x = tp.asarray(np.ones(65, np.float32))

    def step() -> None:
        gone = x * 1
        gone.dispose()
        try:
            double(gone)
        except tp.errors.DisposedError:
            double(x)
            return
        raise CheckFailedError("a disposed argument of a compiled function was no error")

    return step


def _written() -> Step:
    x = tp.asarray(np.zeros((9, 5), np.float32))
    row = tp.asarray(np.ones(5, np.float32))

    def step() -> None:
        x[2:4] = row
        x[:, 0] += 1

    return step


PROGRAMS: Final[dict[str, Callable[[], Step]]] = {
    "training by hand": _by_hand,
    "training with variables": _with_variables,
    "training in a scope": _in_a_scope,
    "compiled": _compiled,
    "interrupted": _interrupted,
    "interrupted in a scope": _interrupted_in_a_scope,
    "refused while differentiating": _refused,
    "refused while compiled": _fails_compiled,
    "written in place": _written,
}


def _figures(session: Session) -> dict[str, int]:
    """Return counts of everything held.

    The engine keeps Python's numbers as tensors, up to a limit; these are left out.
    """
    gc.collect()
    backend: Any = session.device.backend
    backend.synchronize()
    held = tp.memory()[session.device.name]
    figures = {
        "tensors": held.tensors,
        "buffers": held.buffers,
        "bytes": held.bytes,
        "buffers on tapes": held.taped,
    }
    figures.update({f"memory()[{name!r}]": n for name, n in held.backend.items()})
    counter = session.device.capabilities.counts_buffers
    if counter is not None:
        figures["live_buffers()"] = counter.live_buffers() - held.constants
    else:
        kind = type(backend.from_host(np.zeros(3, np.float32)))
        objects = sum(type(get_object_) is kind for get_object_ in gc.get_objects())
        figures[f"objects of {kind.__name__}"] = objects - held.constants
    return figures


def flat(session: Session, make: Callable[[], Step]) -> None:
    """Make a program; take N steps, and 9 N more.

    Raises:
        CheckFailedError: when a count has grown.

    """
    counter = session.device.capabilities.counts_buffers
    pass_over()
    try:
        _figures(session)  # counting begins with the first query
        step = make()
        for _ in range(N):
            step()
        before = _figures(session)
        for _ in range(9 * N):
            step()
        after = _figures(session)
    finally:
        if counter is not None:
            counter.stop_counting()
    grown = {name: after[name] - n for name, n in before.items() if after[name] > n}
    if grown:
        listed = ", ".join(f"{name} by {more}" for name, more in grown.items())
        raise CheckFailedError(f"after {N} steps and {9 * N} more: {listed}")


def _is_flat(make: Callable[[], Step], _target: Target, opened: Callable[[], Session]) -> None:
    session = opened()
    with session.entered():
        flat(session, make)


CHECKS: Final = tuple(
    Check(4, f"flat memory: {name}", partial(_is_flat, make)) for name, make in PROGRAMS.items()
)
