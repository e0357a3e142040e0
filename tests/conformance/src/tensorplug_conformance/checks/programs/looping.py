"""Loops and branches in compiled functions: they run the backend's kernels and groups in steps.

A step may overwrite the carry, unless its memory is also a result, an argument, or a slice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug_conformance.checks.check import Check
from tensorplug_conformance.checks.programs.compiling import Program, compiles, drawn

if TYPE_CHECKING:
    from tensorplug_conformance.case import Array


_STEPS: Final = 6
_LARGE: Final = (1 << 16) + 3
"""Elements of a carry of more than 256 KiB, from which groups write results in place."""


def _scanned(h: Any, w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = tp.tanh(h * w + x)
        return h, (h, x - h)

    last, (states, rest) = tp.scan(step, h, xs, reverse=True)
    return last, states, rest


def _scanned_in_numpy(h: Array, w: Array, xs: Array) -> Any:
    states = []
    for x in xs[::-1]:
        h = np.tanh(h * w + x)
        states.append(h)
    stacked = np.stack(states[::-1])
    return h, stacked, xs - stacked


def _averaged(h: Any, xs: Any) -> Any:
    """Carries alone, then the same carries as results: these must not be overwritten."""
    decay = tp.scan(lambda h, x: (h * 0.5 + x * 0.25 - h * x * 0.125, None), h, xs)[0]
    last, states = tp.scan(lambda h, x: (h * 0.5 + x * 0.25 - h * x * 0.125, h), h, xs)
    return decay, last, states, h


def _averaged_in_numpy(h: Array, xs: Array) -> Any:
    now, states = h, []
    for x in xs:
        states.append(now)
        now = now * 0.5 + x * 0.25 - now * x * 0.125
    return now, now, np.stack(states), h


def _branched(x: Any, y: Any) -> Any:
    def more(carry: Any) -> Any:
        return tp.sum(tp.square(carry[0])) < 1000

    grown, steps = tp.while_loop(more, lambda c: (c[0] * 1.5 + y, c[1] + 1), (x, 0), 64)
    chosen = [
        tp.cond(tp.sum(v) > 0, lambda v: tp.exp(-tp.abs(v)), lambda v: v * y, v)
        for v in (tp.abs(x), -tp.abs(x))
    ]
    return grown, steps, *chosen, tp.switch(steps % 3, [tp.sin, tp.cos, tp.tanh], x)


def _branched_in_numpy(x: Array, y: Array) -> Any:
    grown, steps = x, 0
    while np.sum(grown**2) < 1000:
        grown, steps = grown * 1.5 + y, steps + 1
    chosen = [np.sin, np.cos, np.tanh][steps % 3](x)
    return grown, np.int32(steps), np.exp(-np.abs(x)), -np.abs(x) * y, chosen


def _differentiated(h: Any, w: Any, xs: Any) -> Any:
    def loss(h: Any, w: Any, xs: Any) -> Any:
        last, states = tp.scan(lambda h, x: (tp.tanh(h * w + x),) * 2, h, xs)
        return tp.sum(last) + tp.sum(tp.square(states))

    return tp.grad(loss, (0, 1, 2))(h, w, xs)


def _differentiated_in_numpy(h: Array, w: Array, xs: Array) -> Any:
    before, states = [h], []
    for x in xs:
        states.append(np.tanh(before[-1] * w + x))
        before.append(states[-1])
    dh, dw, dxs = np.ones_like(h), np.zeros_like(w), np.zeros_like(xs)
    for at in reversed(range(len(xs))):
        inner = (dh + 2 * states[at]) * (1 - states[at] ** 2)
        dh, dw, dxs[at] = inner * w, dw + inner * before[at], inner
    return dh, dw, dxs


def _repeated(x: Any, w: Any) -> Any:
    powers = tp.fori_loop(0, 3, lambda i, m: tp.matmul(m, w) * 0.5 + i, x)
    return powers, tp.map(lambda row: tp.sum(row) * row, x), tp.associative_scan(tp.add, x)


def _repeated_in_numpy(x: Array, w: Array) -> Any:
    powers = x
    for i in range(3):
        powers = powers @ w * 0.5 + i
    return powers, x.sum(axis=1, keepdims=True) * x, np.cumsum(x, axis=0)


PROGRAMS: Final = (
    Program("scan", _scanned, drawn((5, 3), (3,), (_STEPS, 5, 3)), _scanned_in_numpy, _STEPS),
    Program(
        "scan of large carries", _averaged, drawn((_LARGE,), (3, _LARGE)), _averaged_in_numpy, 3
    ),
    Program("while_loop, cond and switch", _branched, drawn((7,), (7,)), _branched_in_numpy, 16),
    Program(
        "gradient of a scan",
        _differentiated,
        drawn((5, 3), (5, 3), (_STEPS, 5, 3)),
        _differentiated_in_numpy,
        4 * _STEPS,
    ),
    Program(
        "fori_loop, map and associative_scan",
        _repeated,
        drawn((6, 4), (4, 4)),
        _repeated_in_numpy,
        8,
    ),
)

CHECKS: Final = tuple(
    Check(4, f"loops: {program.name}", partial(compiles, program)) for program in PROGRAMS
)
