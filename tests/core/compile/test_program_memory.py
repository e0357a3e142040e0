"""What a program states about its memory, and what a run takes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_cpu.execution.parallel import thread_count

SIZE = 1 << 18
BYTES = 4 * SIZE

pytestmark = pytest.mark.usefixtures("on_the_cpu")

PACKED = 5 << 17  # bytes of a product that a thread of cpu copies at a time, and does not state


def peak_of(f: Any) -> int:
    """Return the largest number of bytes that are allocated while ``f`` runs a second time."""
    f()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        f()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def sorts(x):
    """Return a chain of kernels none of which can be fused."""
    for _ in range(5):
        x = tp.sort(x)
    return x


def relu_layers(x, weights):
    for weight in weights:
        x = tp.nn.relu(tp.matmul(x, weight))
    return x


def test_values_of_a_chain_make_room_for_later_ones():
    memory = tp.compile(sorts).program(tp.zeros((SIZE,))).memory()
    assert memory.arguments == memory.results == BYTES
    assert memory.temporaries == 4 * BYTES
    assert memory.peak == 3 * BYTES  # the argument, one that is read, one that is written
    assert memory.reused == 3 * BYTES
    assert memory.constants == 0


def test_constants_and_several_results():
    held = tp.asarray(np.ones(SIZE, np.float32))

    def f(x):
        first = tp.sort(x + held)
        return first, tp.sort(first), x

    memory = tp.compile(f).program(tp.zeros((SIZE,))).memory()
    assert (memory.arguments, memory.constants) == (BYTES, BYTES)
    assert memory.results == 2 * BYTES  # the argument is returned as it is
    assert memory.temporaries == BYTES
    assert memory.peak == 4 * BYTES
    assert memory.reused == BYTES


def test_calls_that_run_together_have_no_values_between_them():
    memory = tp.compile(lambda x: tp.tanh(x * 2 + 1) * x).program(tp.zeros((SIZE,))).memory()
    assert memory.temporaries == 0
    assert memory.peak == 2 * BYTES + memory.constants
    assert memory.constants == 8  # two numbers


def test_a_program_without_calls():
    memory = tp.compile(lambda x: x).program(tp.zeros((8,))).memory()
    assert (memory.peak, memory.arguments, memory.results, memory.reused) == (32, 32, 0, 0)


def _chain() -> tuple[Any, tuple[Any, ...]]:
    def sums(x):
        for _ in range(5):
            x = tp.cumulative_sum(x, axis=1)  # needs no memory inside
        return x

    return sums, (tp.asarray(np.zeros((1024, 1024), np.float32)),)


def _layers() -> tuple[Any, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    # Small weights: a product may copy them, and what a kernel needs inside does not count.
    weights = [tp.asarray(rng.standard_normal((128, 128)).astype(np.float32)) for _ in range(4)]
    return relu_layers, (tp.asarray(np.ones((16384, 128), np.float32)), weights)


def _step() -> tuple[Any, tuple[Any, ...]]:
    f, (x, weights) = _layers()

    def loss(weights, x):
        return tp.mean(tp.square(f(x, weights)))

    def step(weights, x):
        gradients = tp.grad(loss)(weights, x)
        return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]

    return step, (weights, x)


@pytest.mark.parametrize("make", [_chain, _layers, _step])
def test_the_stated_peak_is_that_of_a_run(make: Any):
    f, arguments = make()
    compiled = tp.compile(f)
    memory = compiled.program(*arguments).memory()
    results: list[Any] = []

    def run() -> None:
        results.clear()
        results.append(compiled(*arguments))

    run()
    measured = peak_of(run)
    stated = memory.peak - memory.arguments - memory.constants
    assert abs(measured - stated) <= 0.03 * stated + thread_count() * PACKED


# Donated arguments ----------------------------------------------------------------------


@pytest.mark.parametrize("donate", [0, "x", (0,), ["x"]])
def test_donated_arguments_are_disposed_of(donate: Any):
    f = tp.compile(lambda x, y: {"sum": x["a"] + y}, donate=donate)
    for call in (f, lambda x, y: f(x=x, y=y)):
        x, y = {"a": tp.asarray([1.0, 2.0])}, tp.asarray([3.0, 4.0])
        assert call(x, y)["sum"].tolist() == [4.0, 6.0]
        assert x["a"].is_disposed
        assert y.tolist() == [3.0, 4.0]


def test_tensors_that_share_the_memory_keep_it():
    f = tp.compile(lambda x: tp.tanh(x * 2) + 1, donate=0)
    for _ in range(3):
        x = tp.asarray(np.arange(float(SIZE), dtype=np.float32))
        view, array = tp.reshape(x, (2, -1)), x.numpy()
        f(x)
        assert x.is_disposed
        np.testing.assert_array_equal(view.numpy().reshape(-1), np.arange(SIZE))
        np.testing.assert_array_equal(array, np.arange(SIZE))


def test_a_donated_argument_may_be_a_result_or_assigned_to():
    x = tp.asarray([1.0, 2.0])
    assert tp.compile(lambda x: x, donate=0)(x).tolist() == [1.0, 2.0]
    assert x.is_disposed

    def assign(x):
        x[0] = 5.0
        return x * 2

    y = tp.asarray([1.0, 2.0])
    assert tp.compile(assign, donate=0)(y).tolist() == [10.0, 4.0]
    assert y.tolist() == [5.0, 2.0]


def test_gradients_through_donated_arguments():
    f = tp.compile(lambda x: tp.sum(x * x * x), donate=0)
    x = tp.asarray([1.0, 2.0])
    assert tp.grad(lambda x: f(x * 1.0))(x).tolist() == [3.0, 12.0]
    assert x.tolist() == [1.0, 2.0]


def test_the_memory_of_a_donated_argument_is_free_after_its_last_use():
    def f(x):
        for _ in range(4):
            x = tp.matmul(x, x)
        return x

    array = np.zeros((1024, 1024), np.float32)
    kept, given = tp.compile(f), tp.compile(f, donate="x")
    peaks = [peak_of(lambda call=call: call(tp.asarray(array))) for call in (kept, given)]
    assert abs(peaks[0] - peaks[1] - array.nbytes) < array.nbytes / 20


@pytest.mark.parametrize("donate", [2, -1, "z", True, (0, "z"), (1.5,)])
def test_what_cannot_be_donated(donate: Any):
    with pytest.raises(tp.errors.ArgumentError, match="donate"):
        tp.compile(lambda x, y: x + y, donate=donate)
