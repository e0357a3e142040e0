"""Kernels that reduce in parts, and write outputs in the same pass over the inputs."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu.jit.groups import kernels

pytestmark = pytest.mark.usefixtures("loops")

RNG = np.random.default_rng(9)


def make(shape, axes, *, uses_sum):
    """Return the group of sum(exp(x) * y), exp(x), and x - y or x minus the sum."""
    x, y, total = (expressions.parameter(number, dt.float32) for number in range(3))
    powers = expressions.function("exp", x)
    whole, kept = (True,) * len(shape), tuple(not axis for axis in axes)
    full = TensorType(dt.float32, shape)
    row = TensorType(
        dt.float32, tuple(size for size, spans in zip(shape, kept, strict=True) if spans)
    )
    return Group(
        "Exp+Multiply+Sum+Sub",
        shape,
        (GroupInput(full, whole), GroupInput(full, whole)),
        (Reduction("sum", powers * y, axes),),
        (
            GroupOutput(total, row, kept),
            GroupOutput(powers, full, whole),
            GroupOutput(x - (total if uses_sum else y), full, whole),
        ),
    )


@pytest.mark.parametrize(
    ("shape", "axes", "uses_sum", "passes"),
    [
        ((200_003,), (True,), False, 1),
        ((200_003,), (True,), True, 2),
        ((3, 70_001), (False, True), False, 1),
        ((3, 70_001), (True, True), False, 1),
        ((300, 1001), (True, False), False, 1),
        ((300, 1001), (False, True), False, 1),
    ],
)
def test_outputs_of_inputs_alone_are_written_by_the_reduction(shape, axes, uses_sum, passes):
    group = make(shape, axes, uses_sum=uses_sum)
    x, y = (RNG.standard_normal(shape).astype(np.float32) for _ in range(2))
    made, _ = kernels.kernels_of(group)
    assert sum(not {0, 1}.isdisjoint(step.reads) for step in made) == passes
    total, powers, rest = kernels.compile_group(group)(x, y)
    along = tuple(axis for axis, reduced in enumerate(axes) if reduced)
    wide = np.exp(x.astype(float)) * y
    expected = wide.sum(axis=along)
    scale = np.abs(wide).sum(axis=along)
    assert (np.abs(total - expected) <= 1e-6 * scale).all()
    np.testing.assert_allclose(powers, np.exp(x.astype(float)), rtol=3e-7)
    np.testing.assert_array_equal(rest, x - (total if uses_sum else y))
