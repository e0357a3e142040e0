"""Strips: neighbouring elements that a work-item reads and writes at once, from multiples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug.plugin import expressions as ex
from tensorplug_conformance.interpreter import interpreter
from tensorplug_loops.dialects import c
from tensorplug_loops.machine import Machine
from tensorplug_loops.schedule import plan

from . import by_llvm

F = dt.float32
SIZE = 4
MACHINE = Machine(neighbours=True, strip=SIZE, wide=False)


def sums(shape, spans, axes, *, rows=False):
    """Return the group of sums of squares, or of elements divided by their row's sum."""
    whole = (True,) * len(shape)
    x = ex.parameter(0, F)
    inputs = [
        GroupInput(TensorType(F, tuple(np.extract(own, shape).tolist())), own) for own in spans
    ]
    kept = tuple(not axis for axis in axes)
    if not any(axes):
        everything = [ex.parameter(k, F) for k in range(len(inputs))]
        value = everything[0] + everything[-1] * everything[-1]
        out = GroupOutput(value, TensorType(F, shape), whole)
        return Group("elements", shape, tuple(inputs), (), (out,))
    total = Reduction("sum", x * x, axes)
    result = ex.parameter(len(inputs), F)
    own = whole if rows else kept
    value = ex.apply("divide", x, result) if rows else result
    type_ = TensorType(F, tuple(np.extract(own, shape).tolist()))
    out = GroupOutput(value, type_, own)
    return Group("sums", shape, tuple(inputs), (total,), (out,))


ALL, LAST, FIRST = (True, True), (False, True), (True, False)
NONE = (False, False)

# Shape, which axes inputs span, which are reduced, whether outputs are rows; arrays in strips.
CASES = {
    "any length": ((1003,), [(True,)], (False,), False, {"x0", "y0"}),
    "a bias": ((6, 8), [ALL, LAST], NONE, False, {"x0", "x1", "y0"}),
    "a scale of rows": ((6, 8), [ALL, FIRST], NONE, False, {"x0", "y0"}),
    "rows that are no multiple": ((6, 9), [ALL, LAST], NONE, False, set()),
    "columns": ((70, 12), [ALL], FIRST, False, {"x0", "y0"}),
    "columns that are no multiple": ((70, 13), [ALL], FIRST, False, set()),
    "columns of a softmax": ((7, 12), [ALL], FIRST, True, {"x0", "y0"}),
    "rows": ((5, 48), [ALL], LAST, False, {"x0"}),
    "rows of a softmax": ((5, 48), [ALL], LAST, True, {"x0", "y0"}),
    "short rows": ((5, 8), [ALL], LAST, False, set()),
}


@pytest.mark.parametrize("name", CASES)
def test_strips(name):
    shape, spans, axes, rows, strips = CASES[name]
    group = sums(shape, spans, axes, rows=rows)
    (launch,) = plan(group, MACHINE).launches
    assert {each.name for each in launch.kernel.arrays if each.strip} == strips
    random = np.random.default_rng(0)
    arrays = [random.uniform(1, 2, each.type.shape).astype(np.float32) for each in group.inputs]
    # Memory of one axis is as long as whole strips.
    room = [np.append(each, np.zeros(-each.size % SIZE, np.float32)) for each in arrays]
    (found,), (wanted,) = by_llvm.run(group, MACHINE, room), interpreter(group)(*arrays)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found[: wanted.size].reshape(wanted.shape), wanted, rtol=1e-6)


def test_what_lies_behind_the_elements_that_are_written_is_kept():
    x, room = ex.parameter(0, F), TensorType(F, (6,))
    initial = ex.constant(7, F)
    out = GroupOutput(x, room, (True,), index=(ex.axis(0),), combine="last", initial=initial)
    group = Group("first", (3,), (GroupInput(TensorType(F, (3,)), (True,)),), (), (out,))
    array = np.array([1, 2, 3, 9], np.float32)
    (found,) = by_llvm.run(group, MACHINE, [array])
    assert found.tolist()[:6] == [1, 2, 3, 7, 7, 7]


@pytest.mark.parametrize("rows", [False, True])
def test_a_work_group_reads_a_row_in_strips(rows):
    """Where parts are taken, each begins at a multiple."""
    machine = replace(c.MACHINE, neighbours=True, group_size=8, team=8, strip=SIZE, cores=1)
    group = sums((2, 1 << 20), [ALL], LAST, rows=rows)
    launches = plan(group, machine).launches
    assert launches[0].kernel.group_size == 8
    numbers = zip(launches[0].kernel.numbers, launches[0].numbers, strict=True)
    (part,) = [value for number, value in numbers if number.name == "part"]
    assert part % SIZE == 0
    assert launches[0].kernel.arrays[0].strip
