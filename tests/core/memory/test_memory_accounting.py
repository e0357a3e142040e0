"""memory(): counts each buffer once, by device, also those held only by a tape."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from tests.core.support.engines import spec_of, together, using

import tensorplug as tp
from tensorplug.autodiff.tape import CallNode
from tensorplug.memory.scopes import DeviceMemory


def held(name="memory"):
    gc.collect()
    result = tp.memory()[name]
    return result.tensors, result.buffers, result.bytes


def figures(name="memory"):
    tp.get_backend()  # opens one, if none was used yet
    gc.collect()
    result = tp.memory()[name]
    return np.array([result.tensors, result.buffers, result.bytes, result.taped, result.constants])


@pytest.mark.usefixtures("engine")
def test_memory_counts_a_shared_buffer_once():
    x = tp.asarray(np.zeros((2, 3), np.float32))
    start = held()
    y = tp.reshape(x, (6,))
    z = tp.identity(y)
    assert held() == (start[0] + 2, start[1], start[2])
    tp.dispose(x)
    assert held() == (start[0] + 1, start[1], start[2])  # y and z still hold it
    del y, z
    assert held() == (start[0] - 1, start[1] - 1, start[2] - 24)


def test_memory_tells_devices_apart(engine):
    kept = [tp.asarray([1.0]), tp.asarray([2.0], dtype="float64")]
    tp.add(kept[0], 5.0)  # the constant 5.0 is not the user's
    with tp.use_backend("other"):
        there = tp.asarray(1.0)
    result = tp.memory()
    assert result["memory"] == DeviceMemory(2, 2, 12, 0, 1, {"reserve": 7}, 0, {})
    assert result["other"] == DeviceMemory(1, 1, 4, 0, 0, {"reserve": 7}, 0, {})
    assert (result.tensors, result.buffers, result.bytes, result.taped) == (3, 3, 16, 0)
    engine.devices.close("other")
    assert list(tp.memory()) == ["memory"]
    assert not there.is_disposed


@pytest.mark.slow
@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.parametrize(
    ("texts", "nbytes"),
    [
        (["a", "bb", "c", "d"], 64),
        ([], 0),
        (["x" * 15, "x" * 16, "é" * 8], 48 + 16 + 16),
        ([["a"], ["y" * 1000]], 32 + 1000),
    ],
)
def test_bytes_of_strings(texts, nbytes):
    start = figures("cpu")
    x = tp.asarray(np.array(texts, dtype=np.dtypes.StringDType()))
    copies = [tp.reshape(x, (-1, 1)), x.__copy__()]
    difference = figures("cpu") - start
    np.testing.assert_array_equal(difference, [3, 1, nbytes, 0, 0])
    del copies
    np.testing.assert_array_equal(figures("cpu") - start, [1, 1, nbytes, 0, 0])
    x.dispose()
    np.testing.assert_array_equal(figures("cpu") - start, [0, 0, 0, 0, 0])


def test_buffers_of_a_removed_backend(engine):
    with tp.use_backend("other"):
        x = tp.asarray([1.0, 2.0])
        y = tp.identity(x)
    assert "host" not in tp.memory()
    tp.remove_backend("other")
    result = tp.memory()
    assert result["host"] == DeviceMemory(2, 1, 8, 0, 0, {}, 0, {})
    assert (result.tensors, result.bytes) == (2, 8)
    del x, y
    assert list(tp.memory()) == []


# The tape -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_buffers_held_only_by_a_tape():
    """``x * exp(x)`` saves exp(x), which the user cannot reach, and both factors."""
    x = tp.asarray([1.0, 2.0])
    start = figures()

    def f(x):
        seen.append(figures() - start)
        e = tp.exp(x)
        seen.append(figures() - start)
        y = tp.multiply(x, e)
        e.dispose()
        seen.append(figures() - start)
        return y

    seen = []
    value, vjp = tp.vjp(f, x)
    inside = [
        [2, 0, 0, 0, 0],  # handles of x: the argument, and one out of the program's reach
        [3, 1, 8, 0, 0],
        [3, 2, 16, 1, 0],  # the buffer of e is saved
    ]
    np.testing.assert_array_equal(seen, inside)
    after = figures() - start
    np.testing.assert_array_equal(after[1:], [2, 16, 1, 0])
    assert tp.memory().taped == 1
    value.dispose()
    np.testing.assert_array_equal((figures() - start)[1:], [2, 16, 1, 0])  # vjp needs its type
    np.testing.assert_allclose(vjp([1.0, 1.0])[0].numpy(), np.exp([1, 2]) * [2, 3], 1e-6)
    del vjp
    np.testing.assert_array_equal(figures() - start, [0, 0, 0, 0, 0])


@pytest.mark.usefixtures("engine")
def test_a_tape_that_holds_an_argument_which_the_user_dropped():
    start = figures()
    x = tp.asarray(np.ones(100, np.float32))
    value, vjp = tp.vjp(lambda x: tp.sum(tp.multiply(tp.concat([x, x]), tp.concat([x, x]))), x)
    del x
    result = figures() - start
    assert result[3] == 2  # both concatenations
    assert result[1] == 4  # and x and the value
    assert result[2] == 400 + 800 + 800 + 4
    del value, vjp
    np.testing.assert_array_equal(figures() - start, [0, 0, 0, 0, 0])


@pytest.mark.usefixtures("engine")
def test_saved_elements_of_a_list_count_one_by_one():
    product = spec_of("Product", ("xs[]",), infer=lambda xs: xs[0])
    tp.register_kernel(product, "memory", lambda xs: np.prod(xs, axis=0, dtype=xs[0].dtype))
    tp.register_gradient(product, "xs", lambda dy, xs: [dy * xs[1], dy * xs[0]])

    def f(x):
        factors = [tp.exp(x), tp.negative(x)]
        y = tp.run_kernel(product, [factors])
        tp.dispose(factors)
        return y

    x = tp.asarray([1.0, 2.0])
    start = figures()
    value, vjp = tp.vjp(f, x)
    assert (figures() - start)[1:].tolist() == [3, 24, 2, 0]  # the value and both factors
    expected = -np.exp([1, 2]) * [2, 3]
    np.testing.assert_allclose(vjp([1.0, 1.0])[0].numpy(), expected, 1e-6)
    del vjp, value
    np.testing.assert_array_equal(figures() - start, [0, 0, 0, 0, 0])


@pytest.mark.usefixtures("engine")
def test_constants_stand_apart_also_those_on_a_tape():
    x = tp.asarray([1.0])
    start = figures()
    value, vjp = tp.vjp(lambda x: tp.multiply(x, 3.25), x)
    result = figures() - start
    assert (result[1], result[3], result[4]) == (1, 0, 1)  # the value; 3.25 is the engine's
    assert vjp([2.0])[0].tolist() == [6.5]
    del value, vjp
    np.testing.assert_array_equal(figures() - start, [0, 0, 0, 0, 1])


@pytest.mark.usefixtures("engine")
def test_memory_does_not_change_what_it_looks_at():
    x = tp.asarray([1.0, 2.0])
    _, vjp = tp.vjp(lambda x: tp.sum(tp.multiply(tp.exp(x), x)), x)
    first = tp.memory()
    assert tp.memory() == first
    assert vjp(1.0)[0].shape == (2,)
    assert type(first["memory"]) is DeviceMemory
    assert dict(first) == first


@pytest.mark.usefixtures("engine")
def test_memory_meets_tensors_that_are_just_being_made():
    x = tp.asarray([1.0])
    before = held()
    unfinished = object.__new__(tp.Tensor)  # another thread has not come further yet
    halfway = object.__new__(tp.Tensor)
    halfway._buffer = x._buffer
    node = object.__new__(CallNode)
    assert held() == before
    del unfinished, halfway, node


def test_memory_while_other_threads_work(engine):
    done = []

    def work(number):
        with using(engine):
            if number == 0:
                while len(done) < 3:
                    tp.memory()
                return
            try:
                for value in range(400):
                    x = tp.asarray([1.0])
                    tp.add(x, value + number / 8)
                    x.dispose()
            finally:
                done.append(number)

    together(4, work)
