"""linearize: the derivative at a point as a program of tangents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([0.3, -0.7, 1.9], np.float32)
T = np.array([1.0, -2.0, 0.5], np.float32)


def test_the_function_runs_once_and_the_program_has_the_tangents_alone() -> None:
    called = []

    def f(x: tp.Tensor) -> Any:
        called.append(x)
        square = x * x
        if float(tp.sum(square)) > 0:  # it may read the primals
            square = square * 3.0
        return {"square": square, "sign": x > 0, "fixed": tp.ones(2)}

    y, f_jvp = tp.linearize(f, tensor(X))
    same(y["square"], 3 * X * X)
    for scale in (1.0, 2.0):
        along = f_jvp(tensor(scale * T))
        same(along["square"], scale * 6 * X * T)
        same(along["sign"], [False] * 3, dtype=tp.bool)
        same(along["fixed"], [0, 0])
    assert len(called) == 1


def test_trees_of_several_arguments() -> None:
    y, f_jvp = tp.linearize(lambda p, s: [p["a"] * s, p["b"]], {"a": X, "b": 2.0}, 3.0)
    same(y[0], X * 3)
    along = f_jvp({"a": T, "b": 5.0}, 0.5)
    same(along[0], T * 3 + X * 0.5)
    same(along[1], 5)


SLOPE = np.cos(X) * X + np.sin(X)


def f(x: tp.Tensor) -> tp.Tensor:
    return tp.sin(x) * x


def test_the_derivative_inside_other_transformations() -> None:
    _, f_jvp = tp.linearize(f, tensor(X))
    total = lambda t: tp.sum(f_jvp(t))  # noqa: E731  # reads as a formula
    same(tp.grad(total)(tensor(T)), SLOPE)
    same(tp.jvp(f_jvp, (T,), (tensor(2 * T),))[1], SLOPE * 2 * T)
    same(tp.vmap(f_jvp)(tp.eye(3)), np.diag(SLOPE))
    same(tp.compile(f_jvp)(tensor(T)), SLOPE * T)
    same(tp.linearize(f_jvp, tensor(T))[1](tensor(X)), SLOPE * X)


AROUND: list[tuple[str, Any, Any]] = [
    ("compile", tp.compile, SLOPE * T),
    ("vmap", tp.vmap, SLOPE * T),
    ("grad", lambda g: tp.grad(lambda x: tp.sum(g(x))), (2 * np.cos(X) - X * np.sin(X)) * T),
    ("jvp", lambda g: lambda x: tp.jvp(g, (x,), (T,))[1],
     (2 * np.cos(X) - X * np.sin(X)) * T * T),
    ("linearize", lambda g: lambda x: tp.linearize(g, x)[0], SLOPE * T),
]  # fmt: skip


@pytest.mark.parametrize("row", AROUND, ids=[row[0] for row in AROUND])
def test_inside_other_transformations(row: Any) -> None:
    _, around, expected = row
    t = tensor(T)
    if row[0] == "vmap":
        of_one = lambda x, t: tp.linearize(f, x)[1](t)  # noqa: E731
        same(tp.vmap(of_one)(tensor(X), t), expected)
    else:
        same(around(lambda x: tp.linearize(f, x)[1](t))(tensor(X)), expected)


def test_variables_and_generators_are_read_once() -> None:
    weight = tp.Variable(tensor(X), name="weight")
    generator = tp.random.Generator(7)
    first = tp.random.normal(tp.random.Generator(7).key(), (3,)).numpy()

    def noisy(x: tp.Tensor) -> tp.Tensor:
        result = x * weight + x * tp.random.normal(generator.key(), (3,))
        weight.assign(weight * 2.0)
        return result

    _, f_jvp = tp.linearize(noisy, tensor(T))
    for _ in range(2):
        same(f_jvp(tensor(T)), T * X + T * first)
    same(weight + 0.0, 2 * X)


def test_a_scan_runs_now() -> None:
    xs = tensor(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    run = lambda x: tp.scan(lambda c, a: (c * a, c), x, xs)  # noqa: E731
    (last, seen), f_jvp = tp.linearize(run, tensor(X))
    same(last, X * xs.numpy().prod(0))
    last, seen = f_jvp(tensor(T))
    same(last, T * xs.numpy().prod(0))
    same(seen, [T, T * [1, 2, 3]])


def test_what_does_not_fit() -> None:
    with pytest.raises(ArgumentError, match="linearize: f must be a function, got int"):
        tp.linearize(3, X)
    with pytest.raises(DTypeError, match=r"argument 0 is int32\[\]; only floating"):
        tp.linearize(tp.sin, 1)
    _, f_jvp = tp.linearize(f, tensor(X))
    with pytest.raises(ArgumentError, match=r"tangents\[0\] is float32\[2\], but the primal"):
        f_jvp(T[:2])
    with pytest.raises(ArgumentError, match=r"tangents is tuple of \[0, 1\], but the primal"):
        f_jvp(T, T)


def test_it_keeps_what_the_program_needs() -> None:
    x, t = tensor(X), tensor(T)
    tp.linearize(f, x)[1](t)
    before = live()
    y, f_jvp = tp.linearize(f, x)
    f_jvp(t)
    del y, f_jvp
    assert live() == before
