"""variable_grads: which variables, which gradients, nested and beside the other functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from tests.core.support.tensors import same

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import (
    ArgumentError,
    DisposedError,
    DTypeError,
    GradientError,
    NotConnectedError,
    ShapeError,
)
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def engine() -> Iterator[Any]:
    """Run on an engine whose variables no other test has."""
    with isolated_engine("cpu") as made:
        yield made


def variables() -> tuple[tp.Variable, tp.Variable, tp.Variable, Callable[[], tp.Tensor]]:
    """Return a, b, the constant x, and the loss sum(a x^2 + b x) = 36."""
    a, b = tp.Variable([3.0, 4.0], name="a"), tp.Variable([5.0, 6.0], name="b")
    x = tp.Variable([1.0, 2.0], name="x", trainable=False)
    return a, b, x, lambda: tp.sum(a * x * x + b * x)


def test_all_trainable_variables_by_default():
    _a, _b, _x, loss = variables()
    result = tp.variable_grads(loss)
    same(result.value, 36)
    assert list(result.grads) == ["a", "b"]
    same(result.grads["a"], [1, 4])
    same(result.grads["b"], [1, 2])
    value, grads = result
    assert value is result.value
    assert result.value._node is None
    assert all(grad._node is None for grad in grads.values())


def test_the_default_is_in_the_order_of_making():
    kept = [tp.Variable(1.0, name=name) for name in "zdam"]
    kept[1].trainable = False
    result = tp.variable_grads(lambda: kept[3] * kept[0] + kept[2] + kept[1])
    assert list(result.grads) == ["z", "a", "m"]


def test_listed_variables():
    a, b, x, loss = variables()
    result = tp.variable_grads(loss, [x, b])
    assert list(result.grads) == ["x", "b"]
    assert result.grads["x"] is None
    same(result.grads["b"], [1, 2])
    x.trainable = True
    same(tp.variable_grads(loss, (x,)).grads["x"], [2 * 3 * 1 + 5, 2 * 4 * 2 + 6])
    assert list(tp.variable_grads(loss, [a, b, a]).grads) == ["a", "b"]


@dataclass
class Layer:
    weight: Any
    bias: Any = None


def test_a_tree_of_variables():
    a, b, x, loss = variables()
    model = {"first": Layer(a), "rest": [Layer(b, bias=x)]}
    result = tp.variable_grads(loss, model)
    assert {name: grad is None for name, grad in result.grads.items()} == {
        "a": False,
        "b": False,
        "x": True,
    }
    assert list(tp.variable_grads(loss, a).grads) == ["a"]


def test_unconnected_variables_are_left_out():
    a, b, _x, _loss = variables()
    assert list(tp.variable_grads(lambda: tp.sum(a * 2.0)).grads) == ["a"]
    assert list(tp.variable_grads(lambda: tp.sum(a * 2.0), [b, a]).grads) == ["a"]
    assert list(tp.variable_grads(lambda: tp.sum(a * tp.stop_gradient(b))).grads) == ["a"]
    before = b.read()
    assert list(tp.variable_grads(lambda: tp.sum(a * before)).grads) == ["a"]


def test_reading_inside_is_on_the_tape():
    a, b, _x, _loss = variables()
    result = tp.variable_grads(lambda: tp.sum(a.read() * tp.asarray(b) * a.to("cpu")))
    same(result.grads["a"], [2 * 3 * 5, 2 * 4 * 6])
    same(result.grads["b"], [9, 16])


def test_a_variable_as_the_result():
    v = tp.Variable(3.0, name="v")
    result = tp.variable_grads(lambda: v)
    same(result.grads["v"], 1)
    same(result.value, 3)
    v.assign(4.0)
    assert type(result.value) is tp.Tensor
    same(result.value, 3)
    (value, aux), grads = tp.variable_grads(lambda: (v, v), has_aux=True)
    same(grads["v"], 1)
    same(value, 4)
    assert aux is v


def test_one_gradient_for_two_variables_has_two_handles():
    a, b, _x, _loss = variables()
    grads = tp.variable_grads(lambda: tp.sum(a + b)).grads
    grads["a"].dispose()
    same(grads["b"], [1, 1])


def test_variable_grads_returns_aux():
    a, _b, _x, loss = variables()
    seen = {}

    def both():
        y = loss()
        seen["aux"] = {"double": a * 2.0, "text": "hello"}
        return y, seen["aux"]

    (value, aux), grads = tp.variable_grads(both, has_aux=True)
    same(value, 36)
    same(aux["double"], [6, 8])
    assert (aux["text"], aux["double"]._node) == ("hello", None)
    assert list(grads) == ["a", "b"]
    with pytest.raises(ArgumentError, match="has_aux=True"):
        tp.variable_grads(loss, has_aux=True)


# Mistakes -------------------------------------------------------------------------------


class Given(NamedTuple):
    a: Any
    b: Any
    x: Any


def _call(f: Any = None, var_list: Any = None) -> Any:
    *given, loss = variables()
    v = Given(*given)
    lists = {None: None, "a": [v.a], "x": [v.x], "tensor": [v.a, tp.asarray(1.0)]}
    chosen = lists[var_list] if isinstance(var_list, str | None) else var_list
    return tp.variable_grads(loss if f is None else lambda: f(v), chosen)


MISTAKES = [
    (
        {"var_list": "x"},
        ArgumentError,
        "variable_grads: none of var_list ('x') is trainable",
    ),
    ({"var_list": []}, ArgumentError, "variable_grads: none of var_list (empty) is trainable"),
    (
        {"var_list": "tensor"},
        ArgumentError,
        "var_list must be a list of variables, or a tree of them, but contains Tensor",
    ),
    ({"var_list": 3}, ArgumentError, "but contains int"),
    (
        {"f": lambda v: v.a * v.x},
        ShapeError,
        "f must return a scalar, a tensor of shape [], got float32[2]; return y.sum() or y.mean()",
    ),
    ({"f": lambda v: tp.sum(v.a * v.x, keepdims=True)}, ShapeError, "got float32[1]"),
    ({"f": lambda _: None}, ArgumentError, "must return a tensor, got NoneType"),
    ({"f": lambda _: 3.0}, ArgumentError, "must return a tensor, got float"),
    (
        {"f": lambda v: {"loss": tp.sum(v.a)}},
        ArgumentError,
        "must return a tensor, got dict",
    ),
    (
        {"f": lambda v: tp.sum(v.x)},
        NotConnectedError,
        "result (float32[]) back to any of the variables ('a', 'b')",
    ),
    (
        {"f": lambda v: tp.sum(v.b * v.x), "var_list": "a"},
        NotConnectedError,
        "back to any of the variables ('a')",
    ),
    (
        {"f": lambda v: tp.sum(tp.astype(v.a, "int32"))},
        NotConnectedError,
        "from the result (int32[])",
    ),
]


@pytest.mark.parametrize(("given", "error", "message"), MISTAKES)
def test_variable_grads_refuses(given, error, message):
    before = current_context()
    with pytest.raises(error, match=re.escape(message)):
        _call(**given)
    assert current_context() is before
    same(_call().grads["a"], [1, 4])


def test_no_function():
    with pytest.raises(ArgumentError, match="variable_grads: f must be a function, got Tensor"):
        tp.variable_grads(tp.asarray(1.0))


def test_no_variables_or_none_that_could_be_trained():
    with pytest.raises(ArgumentError, match="this engine has no live variables"):
        tp.variable_grads(lambda: tp.asarray(1.0))
    x = tp.Variable(1.0, trainable=False, name="x")
    kept = [x, *[tp.Variable(1, name=f"step{number}") for number in range(6)]]
    message = "none of the variables of this engine ('x', 'step0', 'step1', 'step2', 'step3', "
    with pytest.raises(ArgumentError, match=re.escape(message + "2 more) is trainable and")):
        tp.variable_grads(lambda: x * 1.0)
    assert len(kept) == 7


def test_integers_cannot_be_asked_for():
    n, v = tp.Variable(2, name="n"), tp.Variable(3.0, name="v")
    same(tp.variable_grads(lambda: v * n).grads["v"], 2)
    with pytest.raises(DTypeError, match=r"variable 'n' is int32\[\]; only floating and"):
        tp.variable_grads(lambda: v * n, [v, n])
    n.trainable = False
    assert tp.variable_grads(lambda: v * n, [n, v]).grads["n"] is None


def test_disposed_variables():
    a, b, x, loss = variables()
    b.dispose()
    with pytest.raises(DisposedError, match=r"variable 'b' \(float32\[2\]\) was disposed"):
        tp.variable_grads(lambda: tp.sum(a * x), [a, b])
    with pytest.raises(DisposedError, match=r"input 'a': variable 'b' \(float32\[2\]\) was"):
        tp.variable_grads(loss)
    assert list(tp.variable_grads(lambda: tp.sum(a * x)).grads) == ["a"]

    def disposing():
        y = tp.sum(a * x)
        a.dispose()
        with pytest.raises(DisposedError):
            a.read()
        return y

    same(tp.variable_grads(disposing).grads["a"], [1, 2])


def test_two_engines_may_have_one_name():
    mine = tp.Variable(2.0, name="w")
    with isolated_engine("cpu"):
        theirs = tp.Variable(5.0, name="w")
        with pytest.raises(ArgumentError, match="two variables called 'w', of two engines"):
            tp.variable_grads(lambda: theirs * 1.0, [mine, theirs])
        assert list(tp.variable_grads(lambda: theirs * 2.0).grads) == ["w"]
        same(tp.variable_grads(lambda: theirs * 2.0).grads["w"], 2)


# Assigning inside -----------------------------------------------------------------------


def test_a_differentiated_variable_cannot_be_assigned_inside():
    a, b, x, loss = variables()

    def clipping():
        a.assign([0.0, 0.0])
        return loss()

    for assign in (clipping, lambda: a.__iadd__(1.0)):
        with pytest.raises(GradientError, match="differentiating with respect to variable 'a'"):
            tp.variable_grads(assign)
    same(a, [3, 4])
    result = tp.variable_grads(clipping, [b])  # a is no parameter here
    same(result.value, 17)
    same(result.grads["b"], [1, 2])
    same(a, [0, 0])
    assert x.trainable is False


def test_an_assigned_value_is_a_constant():
    w = tp.Variable([1.0, 2.0], name="w")
    average = tp.Variable([0.0, 0.0], name="average", trainable=False)

    def loss():
        average.assign(average * 0.5 + w)  # a running average, as of batch normalization
        return tp.sum(w * w + average)

    same(tp.variable_grads(loss).grads["w"], [2, 4])
    same(average, [1, 2])
    assert average.read()._node is None

    def f(x):
        average.assign(x * 2.0)
        return tp.sum(x + average)

    same(tp.grad(f)(tp.asarray([3.0, 5.0])), [1, 1])
    same(average, [6, 10])
    with pytest.raises(NotConnectedError):
        tp.grad(lambda x: average.assign(x) or tp.sum(average))(tp.asarray([3.0, 5.0]))


def test_the_tape_keeps_what_it_has_read():
    s = tp.Variable([2.0, 3.0], trainable=False, name="s")
    w = tp.Variable([1.0, 1.0], name="w")

    def loss():
        y = tp.sum(w * s * s)  # the rule saves s
        s.assign([100.0, 100.0])
        return y

    same(tp.variable_grads(loss).grads["w"], [4, 9])
    y, vjp = tp.vjp(lambda x: tp.sum(x * s), tp.asarray([1.0, 1.0]))
    s.assign([0.0, 0.0])
    same(vjp(tp.asarray(1.0))[0], [100, 100])
    same(y, 200)
