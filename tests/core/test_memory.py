"""tidy, keep, dispose and memory(): what lives on, what is freed, what is counted."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DisposedError
from tensorplug.memory import DeviceMemory

from .engines import together, using


def held(name="memory"):
    gc.collect()
    found = tp.memory()[name]
    return found.tensors, found.buffers, found.bytes


@dataclass
class Layer:
    weights: Any
    label: str = "dense"
    extra: Any = field(default=None)


class Pair(NamedTuple):
    left: Any
    right: Any


RESULTS = [
    ("tensor", lambda a, _b: a),
    ("dict", lambda a, b: {"a": a, "b": [b]}),
    ("tuple", lambda a, b: (a, (b, 1))),
    ("named tuple", Pair),
    ("dataclass", lambda a, b: Layer(a, extra={"b": b})),
    ("the same twice", lambda a, _b: [a, a]),
    ("none", lambda _a, _b: None),
]


def leaves(tree):
    found = []
    tp.tree_map(found.append, tree)
    return [each for each in found if isinstance(each, tp.Tensor)]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("what", "build"), RESULTS)
def test_tidy_keeps_what_is_returned(what, build):
    made = []

    def work(x):
        a, b, c = (tp.add(x, value) for value in (1.0, 2.0, 3.0))
        made.extend([a, b, c])
        return build(a, b)

    x = tp.asarray([1.0])
    result = tp.tidy(work, x)
    kept = leaves(result)
    assert {id(each) for each in made if not each.is_disposed} == {id(each) for each in kept}
    assert made[2].is_disposed
    assert not x.is_disposed
    assert {each.item() for each in kept} <= {2.0, 3.0}
    assert (what == "none") is (kept == [])


@pytest.mark.usefixtures("engine")
def test_counts_return_to_the_start():
    x = tp.asarray([1.0, 2.0])
    before = held()
    result = tp.tidy(lambda: tp.add(tp.multiply(x, x), x))
    assert held() == (before[0] + 1, before[1] + 1, before[2] + 8)
    tp.dispose(result)
    assert held() == before
    with tp.tidy():
        y = tp.add(x, x)
        assert not y.is_disposed
    assert y.is_disposed
    assert held() == before
    gradient = tp.grad(lambda x: tp.sum(x * x))(x)
    del gradient, y, result
    assert held() == before


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
    found = tp.memory()
    assert found["memory"] == DeviceMemory(2, 2, 12, {"reserve": 7}, 0, {})
    assert found["other"] == DeviceMemory(1, 1, 4, {"reserve": 7}, 0, {})
    engine.close("other")
    assert list(tp.memory()) == ["memory"]
    assert not there.is_disposed


@pytest.mark.usefixtures("engine")
def test_nested_tidies_hand_over():
    x = tp.asarray([1.0])
    with tp.tidy():
        inner = tp.tidy(lambda: tp.add(x, 1.0))
        assert inner.item() == 2
        kept = tp.keep(tp.add(inner, 1.0))
        outer = tp.add(x, 2.0)
        with tp.tidy():
            deep = tp.keep(tp.add(x, 5.0))
            tp.keep(outer)  # of the scope around this one
            lost = tp.add(x, 6.0)
        assert lost.is_disposed
    assert inner.is_disposed
    assert (kept.item(), deep.item(), outer.item(), x.item()) == (3, 6, 3, 1)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_frees_everything(error):
    made = []

    def work():
        made.append(tp.asarray([1.0]))
        made.append(tp.add(made[0], 1.0))
        raise error

    with pytest.raises(error):
        tp.tidy(work)
    assert [each.is_disposed for each in made] == [True, True]


@pytest.mark.usefixtures("engine")
def test_tidy_passes_arguments_on():
    assert tp.tidy(lambda a, *, b: a + b, 1, b=2) == 3


@pytest.mark.usefixtures("engine")
def test_what_comes_from_outside_a_tidy_stays():
    x = tp.asarray([1.0])
    assert tp.tidy(lambda: x) is x
    with tp.tidy():
        y = tp.identity(x)
    assert y.is_disposed
    assert x.item() == 1  # another handle of the same buffer
    with pytest.raises(DisposedError):
        tp.add(y, 1)


@pytest.mark.usefixtures("engine")
def test_a_gradient_may_be_taken_inside_a_tidy():
    x = tp.asarray([3.0])
    gradient = tp.tidy(lambda: tp.grad(lambda x: tp.sum(x * x))(x))
    assert gradient.tolist() == [6]


@pytest.mark.usefixtures("engine")
def test_dispose_of_a_tree():
    tree = Layer(tp.asarray([1.0]), extra=[{"a": tp.asarray(1.0)}, (tp.asarray(2.0), None)])
    tensors = leaves(tree)
    assert len(tensors) == 3
    tp.dispose(tree)
    tp.dispose(tree)
    assert all(each.is_disposed for each in tensors)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tp.keep([1]), ArgumentError, "keep: needs a tensor, got list"),
        (lambda: tp.tidy(5), ArgumentError, "tidy: needs a function, got int"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.usefixtures("engine")
def test_memory_meets_tensors_that_are_just_being_made():
    x = tp.asarray([1.0])
    before = held()
    unfinished = object.__new__(tp.Tensor)  # another thread has not come further yet
    halfway = object.__new__(tp.Tensor)
    halfway._buffer = x._buffer
    assert held() == before
    del unfinished, halfway


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
