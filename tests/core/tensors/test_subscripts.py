"""What makes ``x[key]`` short: plans under keys of its own, plans from models, rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DisposedError, OutOfRangeError

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


S = np.s_
X = np.arange(600, dtype=np.float32).reshape(200, 3)


def test_equal_keys_that_mean_something_else_are_told_apart():
    x = tp.asarray(X)
    for _ in range(2):  # the second time from the cache
        expect(x[1:3], "float32", (2, 3), X[1:3])
        expect(x[np.int64(1) : 3], "float32", (2, 3), X[1:3])
        with pytest.raises(ArgumentError):
            x[1.0:3]
        expect(x[1], "float32", (3,), X[1])
        expect(x[True], "float32", (1, 200, 3), X[True])
        expect(x[1, 0], "float32", (), X[1, 0])
        expect(x[True, 0], "float32", (1, 3), X[True, 0])
        expect(x[1, False], "float32", (0, 3), X[1, False])
        expect(x[None], "float32", (1, 200, 3), X[None])
        expect(x[...], "float32", (200, 3), X)
        expect(x[:, None, ..., 2], "float32", (200, 1), X[:, None, ..., 2])
        expect(x[7, ..., ::-2], "float32", (2,), X[7, ..., ::-2])


@pytest.mark.parametrize("key", [200, -201, (0, 3), (0, -4), (0, 0, 0), (S[1:], 3)])
def test_errors_are_the_same_again(key):
    x = tp.asarray(X)
    x[1:], x[0], x[0, 0]
    for _ in range(2):
        with pytest.raises(OutOfRangeError):
            x[key]


def test_no_loop_fills_the_cache_of_plans(backend):
    if backend == "minimal":
        pytest.skip("it has no kernels that take elements or columns, and plans are made anew")
    x = tp.asarray(X)
    plans = current_context().plans

    def loop():
        for at in range(190):
            expect(x[at : at + 7], "float32", (7, 3), X[at : at + 7])
            expect(x[at : at + 7 : 2], "float32", (4, 3), X[at : at + 7 : 2])
            expect(x[at, 2], "float32", (), X[at, 2])
            expect(x[at, 1:], "float32", (2,), X[at, 1:])
            expect(x[:, at % 3], "float32", (200,), X[:, at % 3])

    before = len(plans)
    loop()
    assert len(plans) - before < 2 * (64 + 2) + 20
    before = len(plans)
    loop()
    assert len(plans) == before


def test_blocks_made_from_a_model_have_gradients_of_their_own():
    def f(x):
        return sum((x[at : at + 2] * (at + 1)).sum() for at in range(100))

    weights = np.zeros_like(X)
    for at in range(100):
        weights[at : at + 2] += at + 1
    for _ in range(2):
        np.testing.assert_array_equal(tp.grad(f)(tp.asarray(X)).numpy(), weights)


def test_another_kernel_takes_the_place_of_one_in_use(backend):
    if backend == "minimal":
        pytest.skip("one backend will do")
    x = tp.asarray(X)
    x[1:3], x[2:4]
    with tp.register_kernel("Slice", "cpu", lambda x: x[:2] * 0, override=True):
        expect(x[1:3], "float32", (2, 3), np.zeros((2, 3)))
        expect(x[4:6], "float32", (2, 3), np.zeros((2, 3)))
    expect(x[1:3], "float32", (2, 3), X[1:3])


# Iteration --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (2,), (64,), (65, 1), (66, 2, 2), (200, 3)])
def test_iteration(shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    found = list(tp.asarray(array))
    assert len(found) == len(array)
    for row, expected in zip(found, array, strict=True):
        expect(row, "int64", shape[1:], expected)


def test_iteration_sees_what_is_assigned_meanwhile():
    x, array = tp.asarray(X), X.copy()
    for at, (row, expected) in enumerate(zip(x, array, strict=True)):
        expect(row, "float32", (3,), expected)
        if at in (0, 1, 5, 70, 128):
            del row
            x[at + 1] = array[at + 1] = -at
            x[at + 3] = array[at + 3] = -at


def test_iteration_ends_where_the_tensor_does():
    x = tp.asarray(X)
    turns = iter(x)
    next(turns), next(turns)
    x.dispose()
    with pytest.raises(DisposedError):
        next(turns)


def test_rows_keep_their_values_when_the_tensor_is_assigned_to():
    x = tp.asarray(X)
    turns = iter(x)
    first = [next(turns), next(turns)]
    x[1] = x[5] = 0.0
    for row, expected in zip(first, X, strict=False):
        expect(row, "float32", (3,), expected)


def test_gradients_through_an_iteration():
    def f(x):
        return sum((row * row).sum() * at for at, row in enumerate(x))

    expected = 2 * X * np.arange(200, dtype=np.float32)[:, None]
    np.testing.assert_allclose(tp.grad(f)(tp.asarray(X)).numpy(), expected, rtol=1e-6)


def test_a_variable_is_read_at_each_turn():
    v = tp.Variable(X)
    for at, row in enumerate(v):
        if at == 70:
            expect(row, "float32", (3,), np.zeros(3))
            break
        v.assign(v * 0.0)


def test_rank_0_has_no_rows():
    with pytest.raises(TypeError, match="rank 0"):
        iter(tp.asarray(1.0))


def test_a_mask_makes_one_plan_for_each_number_of_elements(backend):
    if backend == "minimal":
        pytest.skip("it has no kernel that takes elements by their coordinates")
    x = tp.asarray(X)
    x[x < 5]
    before = len(current_context().plans)
    for count in range(6, 26):
        expect(x[x < count], "float32", (count,), X[count > X])
    assert len(current_context().plans) - before <= 20
