"""Groups that differ in sizes and numbers alone have one recipe."""

from __future__ import annotations

import pytest

from tensorplug.contract.expressions import axis, cast, constant, parameter
from tensorplug.plugin import Group, GroupInput, GroupOutput, TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_opencl.groups import recipes

f32, i64 = dt.float32, dt.int64


def make(length, *, scale=3.0, name="scaled", **output):
    x = GroupInput(TensorType(f32, (length,)), (True,))
    value = parameter(0, f32) * scale + constant(7.0, f32)
    written = {"type": TensorType(f32, (length,)), "spans": (True,), **output}
    return Group(name, (length,), (x,), (), (GroupOutput(value, **written),))


def test_sizes_and_numbers_are_no_part_of_a_recipe():
    first, numbers = recipes.find(make(5))
    again, others = recipes.find(make(50, scale=-4.5))
    assert first is again
    assert sorted(map(float, numbers)) == [3.0, 7.0]
    assert sorted(map(float, others)) == [-4.5, 7.0]
    assert [float(numbers[at] - others[at]) for at in range(2) if numbers[at] == 3.0] == [7.5]


@pytest.mark.parametrize("other", [{"scale": 2.0}, {"scale": 7.0}, {"name": "b"}, {"into": 0}])
def test_what_programs_depend_on(other):
    """A number that programs contain, one that occurs twice, a title, memory that is reused."""
    assert recipes.find(make(5))[0] is not recipes.find(make(5, **other))[0]


@pytest.mark.parametrize(
    ("group", "plain"),
    [
        (make(5), True),
        (make(5, index=(axis(0),)), False),
        (make(5, type=TensorType(f32, ()), index=(), combine="sum"), False),
        (
            Group(
                "axis",
                (5,),
                (),
                (),
                (GroupOutput(cast(axis(0), f32), TensorType(f32, (5,)), (True,)),),
            ),
            False,
        ),
    ],
)
def test_plain_groups(group, plain):
    assert recipes.is_plain(group) == group.is_plain == plain
