"""Attention of one query, with vectors of several widths: beside its definition in float64."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import TensorType
from tensorplug.plugin import dtypes as dt
from tensorplug_loops.schedule.attention import plan_query

from . import by_llvm

RNG = np.random.default_rng(6)

CASES = {  # batches, heads that share keys, widths of k and of v, keys, lengths
    "one part": (2, 3, 64, 64, 100, [100, 37]),
    "parts": (3, 3, 32, 48, 1300, [1300, 513, 512]),
    "other widths": (2, 4, 80, 16, 40, [40, 9]),
    "many heads": (1, 12, 16, 32, 600, [600]),
    "nothing is seen": (3, 1, 16, 16, 20, [0, -3, 1]),
    "more than there is": (2, 2, 16, 16, 7, [9, 7]),
}


def definition(q, k, v, lengths, scale):
    y, rows = np.zeros((*q.shape[:2], v.shape[-1])), np.full(q.shape[:2], -np.inf)
    for own, count in enumerate(np.clip(lengths, 0, k.shape[1])):
        if count:
            scores = q[own] @ k[own, :count].T * scale
            rows[own] = np.logaddexp.reduce(scores, axis=-1)
            y[own] = np.exp(scores - rows[own][:, None]) @ v[own, :count]
    return y, rows


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name, dtype, vector_bytes):
    batches, heads, width, of_v, keys, lengths = CASES[name]
    shapes = (batches, heads, width), (batches, keys, width), (batches, keys, of_v)
    q, k, v = (RNG.standard_normal(shape).astype(dtype.numpy) for shape in shapes)
    types = [TensorType(dtype, shape) for shape in (shapes[0], shapes[2])]
    program = plan_query(*types, 0.25, by_llvm.machine(vector_bytes))
    outputs = by_llvm.run_program(program, [q, k, v, np.array(lengths)])
    expected = definition(*(x.astype(np.float64) for x in (q, k, v)), lengths, 0.25)
    tolerance = 1e-5 if dtype is dt.float32 else 2e-3
    for got, right, type_ in zip(outputs, expected, program.outputs, strict=True):
        assert (type_.shape, got.dtype) == (right.shape, type_.dtype.numpy)
        np.testing.assert_allclose(got.reshape(type_.shape), right, rtol=tolerance, atol=tolerance)


def test_not_a_number():
    q, k, v = (np.ones((1, n, 16), np.float32) for n in (2, 5, 5))
    q[0, 1, 3] = np.nan
    types = [TensorType(dt.float32, x.shape) for x in (q, v)]
    program = plan_query(*types, 1.0, by_llvm.machine(32))
    y, rows = by_llvm.run_program(program, [q, k, v, np.array([5])])
    assert np.isnan(y).tolist() == [False] * 16 + [True] * 16
    assert np.isnan(rows).tolist() == [False, True]


def test_widths_that_are_no_whole_vectors_are_declined():
    types = [TensorType(dt.float32, (1, 2, 24)), TensorType(dt.float32, (1, 9, 24))]
    assert plan_query(*types, 1.0, by_llvm.machine(32)) is not None
    assert plan_query(*types, 1.0, by_llvm.machine(64)) is None
