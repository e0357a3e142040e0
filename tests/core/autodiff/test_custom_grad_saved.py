"""A backward function finds the tensors that it uses; captured tensors are no silent constants."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor

import tensorplug as tp
from tensorplug.errors import ArgumentError, DisposedError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([0.3, -0.7, 1.9])


@tp.custom_grad
def product(x: tp.Tensor, w: tp.Tensor) -> Any:
    """x * e**w. Its backward function uses both arguments and what was computed."""
    e = tp.exp(w)
    return x * e, lambda dy: (dy * e, dy * x * e)


def expected(x: np.ndarray, w: float) -> tuple[np.ndarray, np.ndarray]:
    return np.full_like(x, np.exp(w)), np.sum(x * np.exp(w))


# Saved tensors --------------------------------------------------------------------------


def test_arguments_that_the_caller_disposed_of() -> None:
    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        a, b = x * 1.0, w * 1.0
        y = product(a, b)
        tp.dispose([a, b, x, w])
        return y

    x, w = tensor(X), tensor(0.5)
    _, vjp = tp.vjp(f, x, w)
    tp.dispose([x, w])
    for _ in range(2):
        for actual, wanted in zip(vjp(np.ones(3, np.float32)), expected(X, 0.5), strict=True):
            same(actual, wanted)


def test_a_tidy_around_frees_nothing_that_backward_uses() -> None:
    def inside(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        return tp.tidy(lambda: product(x * 1.0, w * 1.0))

    dx, dw = tp.grad(lambda x, w: tp.sum(inside(x, w)), (0, 1))(tensor(X), tensor(0.5))
    same(dx, expected(X, 0.5)[0])
    same(dw, expected(X, 0.5)[1])
    check_grads(inside, [X, 0.5], order=2)
    with tp.tidy():
        _, vjp = tp.vjp(product, tensor(X), tensor(0.5))
    same(vjp(np.ones(3, np.float32))[1], expected(X, 0.5)[1])


def test_a_tidy_around_frees_the_value_and_after_the_tape_all_else() -> None:
    x, w = tensor(X), tensor(0.5)
    product(x, w)  # fills the caches
    tp.grad(lambda x: tp.sum(product(x, w)))(x)
    gc.collect()
    gc.disable()
    try:
        before = live()
        with tp.tidy():
            value = product(x, w)
            assert live() == before + 1  # nothing is saved without a tape
        assert value.is_disposed
        with tp.tidy():
            value, vjp = tp.vjp(product, x, w)
        assert value.is_disposed
        assert live() > before + 1  # the vjp holds what it needs
        del value, vjp
        assert live() == before
    finally:
        gc.enable()


def test_a_tidy_inside_frees_as_always() -> None:
    @tp.custom_grad
    def mistaken(x: tp.Tensor) -> Any:
        with tp.tidy():
            e = tp.exp(x)
            y = tp.keep(e * 2.0)
        return y, lambda dy: dy * e

    with pytest.raises(DisposedError) as caught:
        tp.grad(lambda x: tp.sum(mistaken(x)))(tensor(X))
    assert caught.value.__notes__[-1] == "in the backward function of mistaken"


def test_f_gets_handles_of_its_own() -> None:
    @tp.custom_grad
    def greedy(x: tp.Tensor) -> Any:
        y = x * 2.0
        x.dispose()
        return y, lambda dy: dy * 2.0

    x = tensor(X)
    same(tp.grad(lambda x: tp.sum(greedy(x) * x))(x), 4 * X)
    same(greedy(x), 2 * X)
    same(x, X)


def test_the_value_may_be_the_argument() -> None:
    straight = tp.custom_grad(lambda x: (x, lambda dy: dy * 3.0))
    x = tensor(X)
    value, gradient = tp.value_and_grad(straight)(x, dy=tp.ones_like(x))
    value.dispose()
    same(x, X)
    same(gradient, [3, 3, 3])


# Captured tensors -----------------------------------------------------------------------


def capturing(w: Any, value: Any) -> Any:
    """Return a function of x alone, whose value is made of x and of ``w`` around it."""

    def scaled(x: tp.Tensor) -> Any:
        return value(x, w), lambda _: tp.ones_like(x) * 100.0

    return tp.custom_grad(scaled)


VALUES: dict[str, Any] = {
    "used": lambda x, w: x * w,
    "used through others": lambda x, w: tp.sum(x) * tp.exp(w * 2.0),
    "alone": lambda _, w: w * 2.0,
    "itself": lambda _, w: w,
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("argnums", [1, (0, 1)])
def test_a_captured_tensor_that_is_being_differentiated(value: str, argnums: Any) -> None:
    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        return tp.sum(capturing(tp.exp(w), VALUES[value])(x))

    message = (
        "custom_grad: the value of scaled depends on a tensor that is being differentiated and "
        "not passed as an argument, .* Pass them to scaled .* or apply stop_gradient"
    )
    with pytest.raises(ArgumentError, match=message):
        tp.grad(f, argnums)(tensor(X), tensor(0.5))
    # If only the argument is differentiated, the captured tensor is a constant.
    same(tp.grad(f)(tensor(X), tensor(0.5)), [100, 100, 100])


def test_a_captured_tensor_of_a_tape_around() -> None:
    def slope(w: tp.Tensor) -> tp.Tensor:
        return tp.sum(tp.grad(lambda x: tp.sum(capturing(w, VALUES["used"])(x)))(tensor(X)))

    with pytest.raises(ArgumentError, match="depends on a tensor that is being differentiated"):
        tp.grad(slope)(tensor(2.0))


def test_captured_tensors_are_counted() -> None:
    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        v = tp.exp(w)
        return tp.sum(capturing(w, lambda x, w: x * w + v)(x))

    with pytest.raises(ArgumentError, match="depends on 2 tensors that are being"):
        tp.grad(f, 1)(tensor(X), tensor(2.0))


def test_a_captured_variable() -> None:
    v = tp.Variable(tensor(2.0))
    f = capturing(v, VALUES["used"])
    with pytest.raises(ArgumentError, match="custom_grad: the value of scaled depends on"):
        tp.variable_grads(lambda: tp.sum(f(tensor(X))), [v])
    same(tp.grad(lambda x: tp.sum(f(x)))(tensor(X)), [100, 100, 100])


HARMLESS: dict[str, Any] = {  # functions of x and of the captured w; the gradient of x is 100
    "stopped": lambda x, w: x * tp.stop_gradient(w),
    "compared": lambda x, w: tp.where(w > 0, x, -x),
    "computed and left": lambda x, w: (w * x, x)[1],
    "differentiated inside": lambda x, _: x * tp.grad(tp.sin)(tensor(0.1)),
    "the argument, again": lambda x, w: x * 2.0,  # noqa: ARG005  # as the others
}


@pytest.mark.parametrize("how", HARMLESS)
def test_harmless_captures(how: str) -> None:
    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        return tp.sum(capturing(w, HARMLESS[how])(x)) + w

    dx, dw = tp.grad(f, (0, 1))(tensor(X), tensor(2.0))
    same(dx, [100, 100, 100])
    same(dw, 1)


def test_captured_and_passed_as_well() -> None:
    def f(w: tp.Tensor) -> tp.Tensor:
        return tp.custom_grad(lambda v: (v * w, lambda dy: dy * 2.0 * w))(w)

    same(tp.grad(f)(tensor(3.0)), 6)
    same(tp.grad(tp.grad(f))(tensor(3.0)), 2)


def test_captures_of_backward_alone_are_differentiated_in_second_order() -> None:
    def f(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        return tp.custom_grad(lambda x: (x * 1.0, lambda dy: dy * w * w))(x)

    slope = tp.grad(lambda x, w: tp.sum(f(x, w)))
    same(slope(tensor(X), tensor(3.0)), [9, 9, 9])
    same(tp.grad(lambda w: tp.sum(slope(tensor(X), w)))(tensor(3.0)), 3 * 6)
