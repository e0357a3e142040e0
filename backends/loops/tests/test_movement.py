"""Groups that move elements: by every compiler of loops, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import Group, GroupInput, GroupOutput, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops.schedule import scatters
from tensorplug_loops.schedule.loops import Loops

from .test_dialects import assert_same, each_compiler

F = dt.float32
A, B = ex.axis(0), ex.axis(1)


def numbers(shape, seed=1):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float32)


def written(shape, index, target, initial=0):
    """Return the group that writes a dense input to an index of an output."""
    inputs = [GroupInput(TensorType(F, shape), (True,) * len(shape))]
    first = ex.constant(initial, F)
    if initial is None:
        inputs.append(GroupInput(TensorType(F, target), (False,) * len(shape)))
        first = ex.parameter(1, F)
    output = GroupOutput(
        ex.parameter(0, F),
        TensorType(F, target),
        (True,) * len(shape),
        index=tuple(index),
        combine="last",
        initial=first,
    )
    return Group("written", shape, tuple(inputs), (), (output,))


@each_compiler
@pytest.mark.parametrize("initial", [2, None])
@pytest.mark.parametrize(
    ("shape", "index", "target", "is_nest"),
    [
        ((7, 40), (2 * A, B + 3), (14, 50), True),
        ((7, 40), (6 - A, 3 * B + 1), (9, 130), True),
        ((7, 40), (2 * B, A), (80, 7), True),
        ((7, 40), (ex.constant(1, dt.int64), A, B * 2), (3, 9, 80), True),
        ((300,), (4 * A + 2,), (1200,), True),
        ((7, 40), (A + B,), (46,), False),  # elements meet
        ((7, 40), (A, B + 3), (7, 40), False),  # some lie outside
    ],
)
def test_elements_that_never_meet(compile_group, shape, index, target, initial, is_nest):
    """A nest writes them; others go through loops in row-major order."""
    group = written(shape, index, target, initial)
    arrays = [numbers(shape), numbers(target, 2)][: 2 - (initial is not None)]
    assert_same(compile_group(group)(*arrays), interpreter(group)(*arrays))
    assert scatters.never_meet(Loops(group)) is is_nest
