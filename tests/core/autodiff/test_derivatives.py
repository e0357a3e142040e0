"""jvp: derivatives along a direction."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DisposedError, DTypeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([0.3, -0.7, 1.9], np.float32)
T = np.array([1.0, -2.0, 0.5], np.float32)
A = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32)

# what, f, primals, tangents, y, y_dot
ALONG: list[tuple[str, Any, tuple[Any, ...], tuple[Any, ...], Any, Any]] = [
    ("sine", tp.sin, (X,), (T,), np.sin(X), np.cos(X) * T),
    ("identity", lambda x: x, (X,), (T,), X, T),
    ("to a scalar", tp.sum, (X,), (T,), X.sum(), T.sum()),
    ("from a scalar", lambda x: x * A, (2.0,), (3.0,), 2 * A, 3 * A),
    ("linear map", lambda x: tp.matmul(A, x), (X,), (T,), A @ X, A @ T),
    ("two arguments", lambda a, b: a * b, (X, 2.0), (T, 5.0), X * 2, T * 2 + X * 5),
    ("one tensor twice", lambda a, b: a * b, (X, X), (T, 2 * T), X * X, 3 * X * T),
    ("broadcast", lambda a, b: a + b, (A, X), (A, T), A + X, A + T),
    ("an unused argument", lambda a, _: a * 3.0, (X, A), (T, A), X * 3, T * 3),
    ("a constant", lambda _: tp.asarray(A), (X,), (T,), A, np.zeros_like(A)),
    ("stopped", lambda x: tp.stop_gradient(x) * x, (X,), (T,), X * X, X * T),
    ("empty", lambda x: x * 2.0, (X[:0],), (T[:0],), X[:0], T[:0]),
    ("comparison", lambda x: tp.where(x > 0, x, 0.0), (X,), (T,), [0.3, 0, 1.9], [1, 0, 0.5]),
    ("one output of two", lambda x: tp.topk(x, 2)[0], (X,), (T,), [1.9, 0.3], [0.5, 1]),
]


@pytest.mark.parametrize("row", ALONG, ids=[row[0] for row in ALONG])
def test_value_and_derivative(row: Any) -> None:
    _, f, primals, tangents, y, y_dot = row
    result = tp.jvp(f, primals, tangents)
    assert isinstance(result, tuple)
    same(result[0], y)
    same(result[1], y_dot)
    assert [tensor._node for tensor in result] == [None, None]


def test_trees_on_both_sides() -> None:
    def f(p: Any, scale: Any) -> Any:
        return {"out": (p["w"] * scale, [tp.sum(p["b"])]), "none": None}

    primals = (OrderedDict(w=tensor(X), b=[1.0, 2.0][0], none=None), tensor(3.0))
    tangents = [OrderedDict(none=None, b=5.0, w=T), 0.5]
    y, y_dot = tp.jvp(f, primals, tangents)
    assert (type(y_dot), y_dot["none"], type(y_dot["out"])) == (dict, None, tuple)
    same(y["out"][0], X * 3)
    same(y["out"][1][0], 1)
    same(y_dot["out"][0], T * 3 + X * 0.5)
    same(y_dot["out"][1][0], 5)


def test_results_that_are_not_floating_have_derivative_zero() -> None:
    def f(x: tp.Tensor) -> Any:
        return {"sign": x > 0, "floor": tp.astype(x, tp.int32), "square": x * x}

    y, y_dot = tp.jvp(f, (tensor(X),), (tensor(T),))
    same(y["sign"], [True, False, True], dtype=tp.bool)
    same(y_dot["sign"], [False, False, False], dtype=tp.bool)
    same(y_dot["floor"], [0, 0, 0], dtype=tp.int32)
    same(y_dot["square"], 2 * X * T)


def test_dtypes_are_those_of_the_primals_and_the_result() -> None:
    x = np.array([1.0, 2.0])
    y, y_dot = tp.jvp(lambda x: tp.astype(x, tp.float32) * 3.0, (x,), (x,))
    same(y, 3 * x, dtype=tp.float32)
    same(y_dot, 3 * x, dtype=tp.float32)
    y, y_dot = tp.jvp(lambda x: x * 3.0, (x,), ([1, 1],))  # numbers take the primal's dtype
    same(y_dot, [3, 3], dtype=tp.float64)


# Beside other derivatives ---------------------------------------------------------------


def test_inside_and_around_grad() -> None:
    x = tensor(0.4)
    forward = lambda f: lambda x: tp.jvp(f, (x,), (1.0,))[1]  # noqa: E731  # reads as a formula
    same(tp.grad(forward(tp.sin))(x), -np.sin(0.4))
    same(forward(tp.grad(tp.sin))(x), -np.sin(0.4))
    same(forward(forward(tp.sin))(x), -np.sin(0.4))
    same(tp.grad(forward(tp.grad(lambda x: x**4)))(x), 24 * 0.4)
    same(forward(forward(forward(lambda x: x**4)))(x), 24 * 0.4)


def test_the_value_is_on_the_tape_around() -> None:
    same(tp.grad(lambda x: tp.jvp(tp.exp, (x,), (1.0,))[0] * 2.0)(tensor(1.0)), 2 * np.e)


def test_the_derivative_with_respect_to_the_tangent() -> None:
    x = tensor(X)
    along = lambda t: tp.sum(tp.jvp(lambda x: tp.sin(x) * x, (x,), (t,))[1])  # noqa: E731
    same(tp.grad(along)(tensor(T)), np.cos(X) * X + np.sin(X))


def test_tangents_that_hang_on_the_tape_around() -> None:
    # d/dx of x**2's derivative along x: d/dx (2 x x) = 4 x.
    f = lambda x: tp.jvp(lambda y: y * y, (tp.stop_gradient(x),), (x,))[1]  # noqa: E731
    same(tp.grad(f)(tensor(3.0)), 6)
    g = lambda x: tp.jvp(lambda y: y * y, (x,), (x,))[1]  # noqa: E731
    same(tp.grad(g)(tensor(3.0)), 12)


def test_no_perturbation_confusion() -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        return x * tp.jvp(lambda y: x + y, (1.0,), (1.0,))[1]

    same(tp.jvp(f, (tensor(5.0),), (tensor(1.0),))[1], 1)
    same(tp.grad(f)(tensor(5.0)), 1)


def test_through_custom_gradients_and_checkpoints() -> None:
    own = tp.custom_grad(lambda x: (x * x, lambda dy: dy * tp.abs(x)))  # not 2 x, to be seen
    same(tp.jvp(own, (tensor(X),), (tensor(T),))[1], np.abs(X) * T)
    block = tp.checkpoint(lambda x: tp.exp(x) * x)
    same(tp.jvp(block, (tensor(X),), (tensor(T),))[1], np.exp(X) * (1 + X) * T)


def test_a_backward_function_that_ignores_dy_has_no_forward_derivative() -> None:
    own = tp.custom_grad(lambda x: (x * x, lambda dy: tp.stop_gradient(dy) * 2.0 * x))
    same(tp.jvp(own, (tensor(X),), (tensor(T),))[1], np.zeros(3))


# What is refused ------------------------------------------------------------------------

BAD: list[tuple[str, Any, Any, Any, Any, str]] = [
    ("no function", 3, (1.0,), (1.0,), ArgumentError, "jvp: f must be a function, got int"),
    ("no list", tp.sin, X, (T,), ArgumentError, "primals must be a list or tuple.* got ndarray"),
    ("no tangents", tp.sin, (X,), T, ArgumentError, "tangents must be a list or tuple.* ndarray"),
    ("one too few", tp.add, (X, X), (T,), ArgumentError, r"tuple of \[0\], but the primal is"),
    ("shape", tp.sin, (X,), (T[:2],), ArgumentError, r"tangents\[0\] is float32\[2\], but the p"),
    ("rank", tp.sin, (X,), (1.0,), ArgumentError, r"tangents\[0\] is float32\[\], but the primal"),
    ("dtype", tp.sin, (X,), (T.astype(float),), ArgumentError, r"is float64\[3\], but the primal"),
    ("integer", tp.sin, (1,), (1,), DTypeError, r"argument 0 is int32\[\]; only floating"),
    ("structure", lambda p: p["a"], ({"a": 1.0},), ([1.0],), ArgumentError,
     r"tangents\[0\] is list of \[0\], but the primal is dict of \['a'\] there"),
    ("key", tp.sin, ({"a": 1.0},), ({"b": 1.0},), ArgumentError, r"dict of \['b'\], but the"),
    ("None", tp.sin, (X,), (None,), DTypeError, r"tangents\[0\]: NoneType"),
    ("no tensor", lambda _: 1.0, (X,), (T,), ArgumentError, "must return a tensor, got float"),
]  # fmt: skip


@pytest.mark.parametrize("row", BAD, ids=[row[0] for row in BAD])
def test_mismatches_are_named(row: Any) -> None:
    _, f, primals, tangents, error, message = row
    with pytest.raises(error, match=message):
        tp.jvp(f, primals, tangents)
    assert current_context().recording is None


def test_tangents_are_checked_before_f_is_called() -> None:
    called = []
    with pytest.raises(ArgumentError):
        tp.jvp(lambda x: called.append(1) or x, (X,), (T[:1],))
    assert called == []


def test_disposed_tangents() -> None:
    t = tensor(T)
    t.dispose()
    with pytest.raises(DisposedError):
        tp.jvp(tp.sin, (X,), (t,))


# What it leaves behind ------------------------------------------------------------------


def test_the_callers_tensors_are_left_alone() -> None:
    x, t = tensor(X), tensor(T)
    y, y_dot = tp.jvp(lambda x: x, (x,), (t,))
    tp.dispose([y, y_dot])
    same(x, X)
    same(t, T)
    with tp.tidy():
        y, y_dot = tp.jvp(lambda x: x * 2.0, (x,), (t,))
    assert (y.is_disposed, y_dot.is_disposed) == (True, True)
    same(t, T)


def test_two_tensors_are_left() -> None:
    x, t = tensor(X), tensor(T)
    f = lambda x: tp.sum(tp.exp(x) * tp.sin(x))  # noqa: E731  # called twice
    tp.jvp(f, (x,), (t,))  # fills the caches
    before = live()
    result = tp.jvp(f, (x,), (t,))
    assert live() == before + 2
    del result
    assert live() == before
