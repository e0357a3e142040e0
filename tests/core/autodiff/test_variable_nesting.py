"""variable_grads nested, beside the other functions that differentiate, and in training."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def engine() -> Iterator[Any]:
    """Run on an engine whose variables no other test has."""
    with isolated_engine("cpu") as made:
        yield made


def test_second_derivatives():
    v = tp.Variable(3.0, name="v")

    def inner():
        return tp.variable_grads(lambda: v * v * v).grads["v"] * v  # 3 v^3

    same(tp.variable_grads(inner).grads["v"], 81)
    same(tp.variable_grads(inner).value, 81)

    def third():
        return tp.variable_grads(inner).grads["v"]  # 9 v^2

    same(tp.variable_grads(third).grads["v"], 54)


def test_grad_inside_variable_grads_inside_grad():
    v = tp.Variable(2.0, name="v")

    def middle(z):  # d/dv (d/dx (x^2 v^3 z^2) at x = v) = d/dv 2 v v^3 z^2 with x moving too
        def loss():
            return tp.grad(lambda x: x * x * v * v * v * z * z)(v)

        return tp.variable_grads(loss).grads["v"]  # d/dv 2 v^4 z^2 = 8 v^3 z^2

    same(middle(tp.asarray(3.0)), 8 * 8 * 9)
    same(tp.grad(middle)(tp.asarray(3.0)), 16 * 8 * 3)


def test_a_variable_as_an_argument():
    v, w = tp.Variable(3.0, name="v"), tp.Variable(5.0, name="w")
    same(tp.grad(lambda x: x * x * w)(v), 30)
    same(tp.grad(lambda x: x * v)(v), 3)  # what f takes from around it is a constant
    tree = tp.grad(lambda p: p["v"] * p["w"][0])({"v": v, "w": [w]})
    same(tree["v"], 5)
    same(tree["w"][0], 3)
    y, vjp = tp.vjp(lambda a, b: a * b, v, w)
    same(y, 15)
    assert [item.item() for item in vjp(2.0)] == [10, 6]
    same(tp.jacobian(lambda x: x * w)(v), 5)
    same(tp.hessian(lambda x: x * x * w)(v), 10)
    same(tp.jvp(lambda x: x * w, [v], [tp.asarray(1.0)])[1], 5)
    result = tp.grad(lambda x: x * w)(v)
    assert type(result) is tp.Tensor


def test_inner_variables_are_another_engine_of_gradients():
    """An inner variable_grads over one variable leaves the outer one's other variables alone."""
    a, b = tp.Variable(2.0, name="a"), tp.Variable(3.0, name="b")

    def loss():
        inner = tp.variable_grads(lambda: a * a * b, [a])  # 2 a b
        return inner.value + inner.grads["a"]

    grads = tp.variable_grads(loss).grads
    same(grads["a"], 2 * 2 * 3 + 2 * 3)
    same(grads["b"], 4 + 2 * 2)


def test_checkpoint_and_custom_grad():
    w, x = tp.Variable([1.0, 2.0], name="w"), tp.asarray([3.0, 4.0])
    calls = []

    def layer(x):
        calls.append(1)
        return tp.exp(x * w) * w

    plain = tp.variable_grads(lambda: tp.sum(layer(x) * layer(x)))
    calls.clear()
    again = tp.variable_grads(lambda: tp.sum(tp.checkpoint(layer)(x) * tp.checkpoint(layer)(x)))
    assert len(calls) == 4
    same(again.grads["w"], plain.grads["w"].numpy())
    halved = tp.custom_grad(lambda w: (w * 1.0, lambda dy: dy * 0.5))
    same(tp.variable_grads(lambda: tp.sum(halved(w))).grads["w"], [0.5, 0.5])
    returning = tp.custom_grad(lambda x: (x * 1.0, lambda _: w))
    gradient = tp.grad(lambda x: tp.sum(returning(x)))(x)
    gradient.dispose()
    same(w, [1, 2])


# Scopes and exceptions ------------------------------------------------------------------


def test_tidy_hands_the_gradients_over():
    v = tp.Variable([1.0, 2.0], name="v")
    before = live()
    result = tp.tidy(lambda: tp.variable_grads(lambda: tp.sum(tp.exp(v) * v)))
    assert live() == before + 2
    same(result.grads["v"], np.exp([1.0, 2.0]) * np.array([2.0, 3.0]))
    with tp.tidy():
        inside = tp.variable_grads(lambda: tp.sum(v))
    assert inside.value.is_disposed
    assert inside.grads["v"].is_disposed
    same(v, [1, 2])


def test_an_exception_leaves_nothing_behind():
    v = tp.Variable([1.0, 2.0], name="v")

    def rule(_dy):
        raise ZeroDivisionError("in the backward pass")

    def forward():
        return tp.exp(v) * v / "text"

    failing = tp.custom_grad(lambda x: (tp.exp(x), rule))
    gc.collect()
    before, context = live(), current_context()
    for _ in range(3):
        with pytest.raises(TypeError, match="unsupported operand"):
            tp.variable_grads(forward)
        with pytest.raises(ZeroDivisionError, match="backward pass"):
            tp.variable_grads(lambda: tp.sum(failing(tp.exp(v))))
        assert current_context() is context
    gc.collect()  # tracebacks hold contexts in cycles
    assert live() == before
    v.assign(v * 2.0)  # nothing watches it any more
    same(tp.variable_grads(lambda: tp.sum(v * v)).grads["v"], [4, 8])
