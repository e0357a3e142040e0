"""Updates of windows write into the memory of what dies there, and of nothing else."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tensorplug as tp

SHAPE = (4, 64, 8)
UPDATE = np.full((4, 1, 8), 7, np.float32)


def cache():
    return tp.asarray(np.arange(4 * 64 * 8, dtype=np.float32).reshape(SHAPE))


def update(x, at):
    return tp.dynamic_update_slice(x, UPDATE, (0, at, 0))


def memory(x):
    return x.numpy().__array_interface__["data"][0]


def expected(x, at):
    result = x.copy()
    result[:, at : at + 1] = UPDATE
    return result


# (the function, whether the argument's memory is that of the result)
FUNCTIONS = {
    "an update": (update, True),
    "two of them": (lambda x, at: update(update(x, at), at), True),
    "of what is read before": (lambda x, at: (update(x, at), tp.sum(x, axis=1))[0], True),
    "of a result": (lambda x, at: update(x * 1, at), False),
    "and the argument": (lambda x, at: (update(x, at), x), False),
    "and what is read after": (lambda x, at: (update(x, at), x[:, 1:] + 1.0), False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_donated_argument_is_written_to(name):
    f, same = FUNCTIONS[name]
    compiled = tp.compile(f, donate="x")
    for at in (3, 5):  # the second run is that of a kernel that was checked
        x = cache()
        before, place = x.numpy().copy(), memory(x)
        result = compiled(x, tp.asarray(at))
        result, *others = result if isinstance(result, tuple) else [result]
        np.testing.assert_array_equal(result.numpy(), expected(before, at))
        assert (memory(result) == place) == same
        if name == "and the argument":
            np.testing.assert_array_equal(others[0].numpy(), before)
        if name == "and what is read after":
            np.testing.assert_array_equal(others[0].numpy(), before[:, 1:] + 1)


# What else has the memory of the argument.
OTHERS = {
    "a view": lambda x: x[1:],
    "the same data": tp.identity,
    "an array": lambda x: x.numpy(),
    "DLPack": np.from_dlpack,
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_memory_that_something_else_has_is_copied(other):
    compiled = tp.compile(update, donate="x")
    x = cache()
    before, place = x.numpy().copy(), memory(x)
    kept = other(x)
    value = np.array(kept)
    result = compiled(x, tp.asarray(3))
    np.testing.assert_array_equal(result.numpy(), expected(before, 3))
    np.testing.assert_array_equal(np.asarray(kept), value)
    assert memory(result) != place


def assign(x, at, n):
    x[:, at : at + n] = 7.0


@pytest.mark.parametrize("donate", ["x", ()])
def test_an_assignment_to_an_argument_writes_there_if_it_is_donated(donate):
    compiled = tp.compile(assign, donate=donate)
    x = cache()
    before = x.numpy().copy()
    for at in (3, 5, 61):
        place = memory(x)
        compiled(x, tp.asarray(at), 2)
        before[:, at : at + 2] = 7
        np.testing.assert_array_equal(x.numpy(), before)
        assert (memory(x) == place) == (donate == "x")


def test_an_argument_that_is_assigned_to_is_disposed_of_if_the_program_fails():
    with tp.register_kernel("Tan", "cpu", lambda x: x / None, override=True):
        failing = tp.compile(lambda x, at: (assign(x, at, 2), tp.tan(x))[1], donate="x")
        x = cache()
        with pytest.raises(TypeError):
            failing(x, tp.asarray(3))
    assert x.is_disposed


def test_an_argument_that_is_kept_is_copied():
    x = cache()
    before = x.numpy().copy()
    np.testing.assert_array_equal(
        tp.compile(update)(x, tp.asarray(3)).numpy(), expected(before, 3)
    )
    np.testing.assert_array_equal(x.numpy(), before)


LOOPS = {
    "fori_loop": lambda x: tp.fori_loop(0, 9, lambda i, x: update(x, i), x),
    "while_loop": lambda x: tp.while_loop(
        lambda now: now[0] < 9, lambda now: (now[0] + 1, update(now[1], now[0])), (0, x)
    )[1],
    "scan": lambda x: tp.scan(lambda x, i: (update(x, i), i), x, tp.arange(9))[0],
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_copy_what_they_carry_once(name):
    x = tp.asarray(np.zeros((4, 1 << 15, 8), np.float32))
    loop = tp.compile(LOOPS[name])
    result = loop(x)
    assert result[:, :9].tolist() == np.full((4, 9, 8), 7).tolist()
    assert float(tp.sum(result)) == 7 * 4 * 9 * 8
    assert float(tp.sum(x)) == 0
    del result
    tracemalloc.start()
    try:
        loop(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert x.nbytes <= peak < 1.5 * x.nbytes


@pytest.mark.parametrize("name", LOOPS)
def test_loops_take_the_memory_of_what_dies_where_they_begin(name):
    """Of a donated argument, or of a value of the program; no step copies it."""
    given = np.zeros((4, 1 << 15, 8), np.float32)
    make = tp.compile(lambda x: LOOPS[name](x + 1))
    loop = tp.compile(LOOPS[name], donate="x")
    one = tp.asarray(given)
    for _ in range(2):  # the first compiles
        x = tp.asarray(given)
        tracemalloc.start()
        try:
            result = loop(x)
            _, peak = tracemalloc.get_traced_memory()
            made = make(one)
            _, whole = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 0.5 * given.nbytes
    assert whole < 1.5 * given.nbytes
    assert float(tp.sum(result)) == 7 * 4 * 9 * 8
    assert float(tp.sum(made)) == given.size + 6 * 4 * 9 * 8
    assert float(tp.sum(one)) == 0


def test_the_program_says_whose_memory_a_call_takes():
    program = tp.compile(update, donate="x").program(cache(), tp.asarray(3))
    (line,) = [line for line in repr(program).splitlines() if "DynamicUpdateSlice" in line]
    assert "in the memory of %0" in line
    memory = program.memory()
    assert memory.peak < 1.5 * memory.results
