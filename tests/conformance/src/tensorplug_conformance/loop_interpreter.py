"""What bodies of loops mean: an interpreter, which runs one step after the other on NumPy arrays.

It defines ``tensorplug.algorithms.loop_bodies``, and is the oracle of whoever compiles loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorplug.plugin import Group
from tensorplug_conformance.interpreter import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.algorithms import loop_bodies
    from tensorplug_conformance.case import Array


def loop_interpreter(body: loop_bodies.LoopBody) -> Callable[..., list[Array]]:
    """Return the function that computes a loop whose kernels take NumPy arrays."""
    runs = [
        interpreter(call.of) if isinstance(call.of, Group) else call.run for call in body.calls
    ]
    end = body.carries + body.sequences
    operands = end + body.fixed

    def run(*buffers: Array) -> list[Array]:
        assert len(buffers) == operands
        carries, results = list(buffers[: body.carries]), []
        at = 0
        while body.length is None or at < body.length:
            place = body.length - 1 - at if body.reverse and body.length else at
            slices = [x[place, ...] for x in buffers[body.carries : end]]
            values = dict(enumerate([*carries, *slices, *buffers[end:], *body.constants]))
            if not all(step(number, values) for number in range(len(runs) + 1)):
                break
            given = [values[slot] for slot in body.results]
            carries = given[: body.carries]
            results.append(given[body.carries :])
            at += 1
        if body.reverse:
            results.reverse()
        return [*carries, *(np.stack(each) for each in zip(*results, strict=True))]

    def step(number: int, values: dict[int, Any]) -> bool:
        """Make the call of this number; return False if the loop ends before it."""
        if number == body.asked and body.holds is not None and not values[body.holds]:
            return False
        if number < len(runs):
            call, compute = body.calls[number], runs[number]
            assert compute is not None
            made = compute(
                *[
                    [values[member] for member in slot]
                    if isinstance(slot, tuple)
                    else None
                    if slot is None
                    else values[slot]
                    for slot in call.inputs
                ]
            )
            several = isinstance(call.of, Group) or call.of.multiple_outputs
            values.update(zip(call.outputs, made if several else [made], strict=True))
        return True

    return run
