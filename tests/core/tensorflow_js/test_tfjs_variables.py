"""TensorFlow.js's behaviour, scenarios 22, 23 and 28: variables and their gradients.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DisposedError,
    DTypeError,
    NotConnectedError,
    ShapeError,
)
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def engine() -> Iterator[Any]:
    with isolated_engine("cpu") as made:
        tp.get_backend()
        yield made


def count() -> int:
    """Return how many tensors there are, variables among them."""
    gc.collect()
    return tp.memory()["cpu"].tensors


# Scenario 22 ----------------------------------------------------------------------------


def test_scenario_22_no_tidy_frees_a_variable() -> None:
    seen = []

    def work() -> tp.Variable:
        value = tensor([1, 2, 3])
        v = tp.Variable(value)
        seen.append(count())
        return v

    before = count()
    v = tp.tidy(work)
    assert (seen, count()) == ([before + 2], before + 1)
    same(v, [1, 2, 3])


def test_scenario_22_assign_takes_the_value() -> None:
    v, source = tp.Variable(tensor([1, 2, 3])), tensor([4, 5, 6])
    v.assign(source)
    source.dispose()
    same(v, [4, 5, 6])
    with pytest.raises(ShapeError, match=r"value is float32\[2\].* is float32\[3\]"):
        v.assign(tensor([1, 2]))
    with pytest.raises(DTypeError, match=r"value is int32\[3\].* is float32\[3\]"):
        v.assign(tp.asarray([1, 2, 3]))
    gone = tensor([7, 8, 9])
    gone.dispose()
    with pytest.raises(DisposedError):  # row 41: an endless recursion in TensorFlow.js
        v.assign(gone)
    same(v, [4, 5, 6])


def test_scenario_22_names() -> None:
    v = tp.Variable(1.0, name="v")
    with pytest.raises(ArgumentError, match=r"a live variable .* has the name 'v'"):
        tp.Variable(2.0, name="v")
    tp.dispose_variables()
    assert v.is_disposed
    assert tp.Variable(2.0, name="v").item() == 2


def test_row_93_disposing_twice_is_disposing_once() -> None:
    """In TensorFlow.js the second time frees the tensor that the variable was made of."""
    x = tensor([1, 2])
    v = tp.Variable(x)
    for _ in range(3):
        v.dispose()
    same(x, [1, 2])
    assert tp.memory()["cpu"].buffers == 1


# Scenario 23 ----------------------------------------------------------------------------


def variables() -> tuple[tp.Variable, tp.Variable, tp.Variable, Callable[[], tp.Tensor]]:
    a, b = tp.Variable([3.0, 4.0], name="a"), tp.Variable([5.0, 6.0], name="b")
    x = tp.Variable([1.0, 2.0], name="x", trainable=False)
    return a, b, x, lambda: tp.sum(a * x * x + b * x)


def test_scenario_23_by_default_those_that_are_trainable() -> None:
    *_kept, loss = variables()
    value, grads = tp.variable_grads(loss)
    same(value, 36)
    assert set(grads) == {"a", "b"}
    same(grads["a"], [1, 4])
    same(grads["b"], [1, 2])


def test_scenario_23_those_of_a_list() -> None:
    a, b, x, loss = variables()
    value, grads = tp.variable_grads(loss, [b, x])
    same(value, 36)
    assert set(grads) == {"b", "x"}
    assert grads["x"] is None
    same(grads["b"], [1, 2])
    same(tp.variable_grads(lambda: tp.sum(a * b)).grads["a"], [5, 6])


ERRORS = {
    "no scalar": (lambda a, _x: tp.variable_grads(lambda: a * a), ShapeError, "must return a sca"),
    "no variables": (
        lambda a, _x: tp.variable_grads(lambda: tp.sum(a), [tp.asarray(1.0)]),
        ArgumentError,
        "must be a list of variables, or a tree of them",
    ),
    "none of them trainable": (
        lambda _a, x: tp.variable_grads(lambda: tp.sum(x), [x]),
        ArgumentError,
        r"none of var_list \('x'\) is trainable",
    ),
    "none of them connected": (
        lambda a, x: tp.variable_grads(lambda: tp.sum(x), [a]),
        NotConnectedError,
        r"back to any of the variables \('a'\)",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_scenario_23_errors(what: str) -> None:
    call, error, message = ERRORS[what]
    a, _b, x, _loss = variables()
    with pytest.raises(error, match=message):
        call(a, x)


# Scenario 28: a step of gradient descent, written out (there are no optimizers yet) --------


def test_scenario_28_a_step_of_gradient_descent() -> None:
    v = tp.Variable(1.0, name="v")

    def step() -> tp.Tensor:
        cost, grads = tp.variable_grads(lambda: v**2)
        v.assign(v - 0.1 * grads["v"])
        return cost

    step()
    v.assign(1.0)  # caches its constants
    before = count()
    cost = tp.tidy(step)
    assert count() == before + 1
    same(cost, 1)
    same(v, 0.8)
    cost.dispose()
    assert count() == before
