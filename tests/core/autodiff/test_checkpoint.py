"""checkpoint: the same derivatives, from a function that is called again."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor, total

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DisposedError, GradientError, NotConnectedError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([0.3, -0.7, 1.9])
W = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [1.5, 1.0, 0.5]])


class Counted:
    """A function that counts its calls."""

    def __init__(self, f: Any) -> None:
        self.f = f
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.f(*args, **kwargs)


def layer(x: Any, w: Any) -> tp.Tensor:
    return tp.tanh(tp.matmul(w, tp.sin(x) * x))


# The same derivatives -------------------------------------------------------------------


def _twice(y: tp.Tensor) -> tp.Tensor:
    return y * tp.exp(y)


own = tp.custom_grad(lambda x: (x * x, lambda dy: dy * 2.0 * x))

LAYERS: dict[str, Any] = {
    "once": lambda step, x, w: step(x, w),
    "in a row": lambda step, x, w: step(step(step(x, w), w), w),
    "beside its own argument": lambda step, x, w: step(x, w) * x + tp.matmul(w, x),
    "its result twice": lambda step, x, w: _twice(step(x, w)),
    "one tensor as both": lambda step, x, w: step(step(w, w), w) + x,
    "beside a gradient of one's own": lambda step, x, w: own(step(x, w)) * step(own(x), w),
    "inside another": lambda step, x, w: tp.checkpoint(lambda x: step(step(x, w), w) * x)(x),
}


@pytest.mark.parametrize("how", LAYERS)
def test_gradients_of_two_orders_are_those_without(how: str) -> None:
    f = lambda x, w: LAYERS[how](tp.checkpoint(layer), x, w)  # noqa: E731  # reads as a formula
    plain = lambda x, w: LAYERS[how](layer, x, w)  # noqa: E731
    check_grads(f, [X, W], order=2)
    x, w = tensor(X), tensor(W)
    for actual, expected in zip(
        tp.grad(total(f), (0, 1))(x, w), tp.grad(total(plain), (0, 1))(x, w), strict=True
    ):
        same(actual, expected.numpy())


def test_third_order() -> None:
    f = tp.checkpoint(lambda x: tp.exp(x) * x)
    third = tp.grad(tp.grad(tp.grad(f)))
    same(third(tensor(0.5)), np.exp(0.5) * (0.5 + 3))
    same(tp.jvp(tp.grad(f), (tensor(0.5),), (tensor(2.0),))[1], 2 * np.exp(0.5) * 2.5)
    same(tp.hessian(lambda x: tp.sum(f(x)))(tensor(X)), np.diag(np.exp(X) * (X + 2)))


def test_captured_tensors_get_their_gradient() -> None:
    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        v = tp.exp(w)  # on the tape, and no argument
        return tp.sum(tp.checkpoint(lambda x: tp.sin(x) * v * w)(x))

    check_grads(f, [X, X + 1.0], order=2)
    # Of two nested tapes, each keeps its own.
    g = tp.grad(lambda a: tp.grad(lambda x: tp.sum(tp.checkpoint(lambda x: a * x * x)(x)))(a))
    same(g(tensor(3.0)), 12)
    # A function without arguments is nothing but what is around it.
    h = tp.grad(lambda x: tp.checkpoint(lambda: tp.exp(x) * 2.0)())
    same(h(tensor(1.0)), 2 * np.e)


def test_the_variables_that_f_reads_get_their_gradient() -> None:
    v = tp.Variable(tensor(X))
    block = Counted(lambda x: tp.sin(x) * v * v)
    result = tp.variable_grads(lambda: tp.sum(tp.checkpoint(block)(tensor(X))), [v])
    assert block.calls == 2
    same(result.grads[v.name], 2 * X * np.sin(X))


def test_a_variable_as_an_argument() -> None:
    v = tp.Variable(tensor(X))
    _, vjp = tp.vjp(lambda x: tp.checkpoint(lambda x, v: x * v)(x, v), tensor([1.0, 1.0, 1.0]))
    v.assign(tensor(X + 1.0))
    same(vjp([1.0, 1.0, 1.0])[0], X)  # it is as it was


# Arguments and results ------------------------------------------------------------------


@dataclass
class Cell:
    weight: Any
    bias: Any = None


def test_trees_keywords_and_what_is_no_tensor() -> None:
    def step(cell: Cell, state: dict[str, Any], *, times: int, name: str) -> Any:
        assert name == "cell"
        h = state["h"]
        for _ in range(times):
            h = tp.tanh(tp.matmul(cell.weight, h) + cell.bias)
        return {"h": h, "sum": (tp.sum(h), times)}, None

    def f(x: Any, w: Any, b: Any, wrap: Any) -> tp.Tensor:
        state, nothing = wrap(step)(Cell(w, b), {"h": x}, times=2, name="cell")
        assert (nothing, state["sum"][1]) == (None, 2)
        return tp.sum(state["h"] * x) * state["sum"][0]

    check_grads(lambda *args: f(*args, tp.checkpoint), [X, W, X], order=2)
    gradients = tp.grad(lambda *args: f(*args, tp.checkpoint), (0, 1, 2))(X, W, X)
    expected = tp.grad(lambda *args: f(*args, lambda step: step), (0, 1, 2))(X, W, X)
    for item, other in zip(gradients, expected, strict=True):
        same(item, other.numpy(), dtype=tp.float64)


RESULTS: list[tuple[Any, Any, float, int]] = [  # f, what is made of f(2), its gradient, calls
    (lambda x: x, lambda y: y * 3.0, 3, 1),
    (lambda x: (x, x * x), lambda y: y[0] * y[1], 12, 2),
    (lambda x: [x * x] * 2, lambda y: y[0] * y[1], 32, 2),
    (lambda x: [tp.exp(x), x * x], lambda y: y[1], 4, 2),
    (lambda x: [tp.asarray(5.0), x * x], lambda y: y[0] * y[1], 20, 2),
    (lambda x: [x > 0, x * x], lambda y: tp.where(y[0], y[1], 0.0), 4, 2),
    (lambda x: [4.0, x * x], lambda y: y[0] * y[1], 16, 2),
]


@pytest.mark.parametrize(("f", "use", "gradient", "calls"), RESULTS)
def test_results_of_any_structure_are_computed_again_once(
    f: Any, use: Any, gradient: float, calls: int
) -> None:
    counted = Counted(f)
    same(tp.grad(lambda x: use(tp.checkpoint(counted)(x)))(tensor(2.0)), gradient)
    assert counted.calls == calls


def test_a_result_that_hangs_on_nothing() -> None:
    f = Counted(lambda _: tp.asarray(1.0))
    with pytest.raises(NotConnectedError):
        tp.grad(tp.checkpoint(f))(tensor(2.0))
    # An inner derivative at a constant point hangs on no tape around.
    inner = tp.checkpoint(lambda: tp.grad(tp.sin)(tensor(0.0)))
    same(tp.grad(lambda x: inner() * x)(tensor(2.0)), 1)
    assert f.calls == 1
    seen = []
    tp.grad(lambda x: seen.append(inner()) or x)(tensor(2.0))
    assert seen[0]._node is None


def test_unrequested_gradients_are_not_computed() -> None:
    ran: list[int] = []
    watched = tp.custom_grad(lambda w: (w * 1.0, lambda dy: ran.append(1) or dy))

    def slope(w: tp.Tensor) -> tp.Tensor:
        gradient = tp.grad(tp.checkpoint(lambda x: x * x * watched(w)))(tensor(3.0))  # 2 x w
        assert ran == []
        return gradient

    same(tp.grad(slope)(tensor(5.0)), 6)
    assert ran == [1]


def test_without_a_tape_it_is_the_function_itself() -> None:
    f = Counted(lambda x: [x])
    x = tensor(2.0)
    (y,) = tp.checkpoint(f)(x)
    assert y is x
    assert f.calls == 1
    cyclic: list[Any] = []
    cyclic.append(cyclic)  # nothing looks into the arguments either
    assert tp.checkpoint(len)(cyclic) == 1


# How often, and with what ---------------------------------------------------------------


def test_f_runs_once_more_for_each_backward_pass() -> None:
    f = Counted(lambda x: tp.exp(x) * x)
    _, vjp = tp.vjp(tp.checkpoint(f), tensor(X))
    assert f.calls == 1
    for calls in (2, 3):
        same(vjp([1.0, 1.0, 1.0])[0], np.exp(X) * (1 + X))
        assert f.calls == calls


def test_a_nested_one_runs_again_for_each_around_it() -> None:
    inner, outer = Counted(tp.exp), Counted(lambda x: tp.checkpoint(inner)(x) * x)
    same(tp.grad(tp.checkpoint(outer))(tensor(1.0)), 2 * np.e)
    assert (outer.calls, inner.calls) == (2, 3)


def test_tensors_that_the_caller_disposes_of_are_kept() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        h = tp.exp(x)
        y = tp.checkpoint(lambda h, c: tp.sin(h) * c)(h, c)
        tp.dispose([h, x])
        return y

    x, c = tensor(X), tensor(2.0)
    expected = 2 * np.cos(np.exp(X)) * np.exp(X)
    _, vjp = tp.vjp(f, x)
    tp.dispose([x, c])
    same(vjp([1.0, 1.0, 1.0])[0], expected)
    c = tensor(2.0)
    same(tp.grad(lambda x: tp.sum(tp.tidy(f, x)))(tensor(X)), expected)


def test_f_may_dispose_of_its_argument() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        y = tp.exp(x) * x
        x.dispose()
        return y

    x = tensor(X)
    _, vjp = tp.vjp(lambda x: tp.checkpoint(f)(x), x)  # noqa: PLW0108  # a handle of its own
    for _ in range(2):
        same(vjp([1.0, 1.0, 1.0])[0], np.exp(X) * (1 + X))
    same(x, X)


def test_later_changes_of_the_caller_have_no_effect() -> None:
    parts, at = [tensor(X), tensor(2.0)], np.array([0, 2])
    f = tp.checkpoint(lambda x, parts, at: tp.gather(x * parts[0], at) * parts[1])
    _, vjp = tp.vjp(lambda x: f(x, parts, at), tensor(X))
    at[:] = 1
    parts[0] = None
    parts.append(3)
    same(vjp([1.0, 1.0])[0], [2 * X[0], 0, 2 * X[2]])


def test_captured_tensors_must_not_be_disposed() -> None:
    c = tensor(2.0)
    _, vjp = tp.vjp(tp.checkpoint(lambda x: x * c), tensor(X))
    c.dispose()
    with pytest.raises(DisposedError) as caught:
        vjp([1.0, 1.0, 1.0])
    assert (
        caught.value.__notes__[-1] == "while checkpoint called <lambda> again in a backward pass"
    )


# What goes wrong ------------------------------------------------------------------------


def test_an_exception_in_the_second_call() -> None:
    f = Counted(lambda x: tp.exp(x) if f.calls % 2 else 1 / 0)

    def loss(x: tp.Tensor) -> tp.Tensor:
        return tp.sum(tp.checkpoint(f)(x))

    x = tensor(X)
    tp.grad(lambda x: tp.sum(tp.exp(x)))(x)
    gc.collect()  # of other tests
    gc.disable()
    try:
        before, context = live(), current_context()
        for _ in range(3):
            note = "while checkpoint called Counted again in a backward pass"
            assert _notes_of_failing(lambda: tp.grad(loss)(x)) == [note]
            assert current_context() is context
        assert live() == before
    finally:
        gc.enable()
    same(tp.grad(lambda x: tp.sum(tp.exp(x)))(x), np.exp(X))


def _notes_of_failing(call: Any) -> list[str] | None:
    """Return the notes, and keep neither the exception nor its traceback."""
    try:
        call()
    except ZeroDivisionError as error:
        return error.__notes__
    return None


def test_an_exception_in_the_first_call() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        tp.grad(tp.checkpoint(lambda _: 1 / 0))(tensor(X))
    assert not hasattr(caught.value, "__notes__")


SECOND = [  # what f gives the second time instead of x * c
    (lambda x, _: x[:1], r"has float32\[1\] instead of float32\[3\]"),
    (lambda x, _: tp.astype(x, tp.float64), r"has float64\[3\] instead of"),
    (lambda *_: 1.0, r"has no tensor instead of float32\[3\]"),
    (lambda *_: [], "has no tensor instead"),
    (lambda x, _: x * 2.0, "depends on other tensors than before"),
    (lambda _, c: c * tensor(X), "depends on other tensors than before"),
    (lambda *_: tensor(X), "depends on other tensors than before"),
]


@pytest.mark.parametrize(("other", "message"), SECOND)
def test_a_function_that_does_something_else_the_second_time(other: Any, message: str) -> None:
    def loss(x: tp.Tensor, c: tp.Tensor) -> tp.Tensor:
        def scaled(x: tp.Tensor) -> Any:
            calls.append(1)
            return x * c if len(calls) == 1 else other(x, c)

        calls: list[int] = []
        return tp.sum(tp.checkpoint(scaled)(x))

    with pytest.raises(GradientError, match=f"checkpoint: scaled was called again.*{message}"):
        tp.grad(loss, (0, 1))(tensor(X), tensor(2.0))


def test_not_a_function() -> None:
    with pytest.raises(ArgumentError, match="checkpoint: f must be a function, got Tensor"):
        tp.checkpoint(tensor(X))
    assert tp.checkpoint(layer).__name__ == "layer"
