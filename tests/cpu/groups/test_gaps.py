"""Large groups of arrays that are in no row-major order, against those of copies that are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tensorplug.plugin import Group, GroupInput, GroupOutput, Reduction, TensorType, expressions
from tensorplug.plugin import dtypes as dt
from tensorplug_cpu import gaps

SHAPE = (260, 1000)
X = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
ROW = (False, True)
WHOLE = (True, True)


def make(second):
    """Return a group of two inputs: exp(a) * b, and its sums along rows."""
    a, b = (expressions.parameter(number, dt.float32) for number in range(2))
    product = expressions.function("exp", a) * b
    whole = TensorType(dt.float32, SHAPE)
    return Group(
        "Exp+Multiply+Sum",
        SHAPE,
        (GroupInput(whole, WHOLE), GroupInput(TensorType(dt.float32, second[0]), second[1])),
        (Reduction("sum", product, ROW),),
        (
            GroupOutput(product, whole, WHOLE),
            GroupOutput(
                expressions.parameter(2, dt.float32),
                TensorType(dt.float32, SHAPE[:1]),
                (True, False),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("a", "b", "second"),
    [
        (X, np.broadcast_to(np.float32(0.5), SHAPE), (SHAPE, WHOLE)),
        (np.broadcast_to(np.float32(0.5), SHAPE), X, (SHAPE, WHOLE)),
        (np.asfortranarray(X), X[::-1, ::-1], (SHAPE, WHOLE)),
        (np.asfortranarray(X), np.broadcast_to(np.float32(2), SHAPE), (SHAPE, WHOLE)),
        (X, np.broadcast_to(np.float32(2), (1000,)), ((1000,), ROW)),
        (X, X[0, ::-1], ((1000,), ROW)),
    ],
)
def test_any_order_gives_the_same(a, b, second):
    run = gaps.compile_group(make(second))
    expected = run(np.ascontiguousarray(a), np.ascontiguousarray(b))
    for _ in range(2):
        for ours, theirs in zip(run(a, b), expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=2e-6)


def test_repeated_numbers_are_not_copied():
    run = gaps.compile_group(make((SHAPE, WHOLE)))
    b = np.broadcast_to(np.float32(0.5), SHAPE)
    run(X, b)
    tracemalloc.start()
    try:
        run(X, b)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * X.nbytes  # the result, not a copy of the input
