"""Derivatives of derivatives, and tapes inside tapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import live, same, tensor, total

import tensorplug as tp
from tensorplug.dispatch.context import current_context

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def test_derivatives_of_derivatives() -> None:
    cube = lambda x: x**3  # noqa: E731  # as in the scenario
    first = tp.grad(total(cube))
    x = tensor([0.1, 0.2])
    same(tp.grad(total(first))(x), [0.6, 1.2])
    fourth = tp.grad(tp.grad(tp.grad(lambda x: x**4)))
    same(fourth(tensor(2.0)), 48)
    fifth = tp.grad(tp.grad(tp.grad(tp.grad(lambda x: x * x * x * x))))
    same(fifth(tensor(2.0)), 24)


def test_a_second_derivative_makes_one_tensor() -> None:
    second = tp.grad(tp.grad(lambda x: x**3))
    x = tensor(0.1)
    second(x)  # fills the caches
    before = live()
    y = second(x)
    assert live() == before + 1
    del y
    assert live() == before


def test_no_perturbation_confusion() -> None:
    # d/dx [x * d/dy (x + y)] = d/dx [x * 1] = 1; confusing the two derivatives gives 2.
    confusing = tp.grad(lambda x: x * tp.grad(lambda y: x + y)(tensor(1.0)))
    same(confusing(tensor(1.0)), 1)
    # d/dx [x * d/dy (x*y*y)] at y = 3 is d/dx [6 x**2] = 12 x.
    f = tp.grad(lambda x: x * tp.grad(lambda y: x * y * y)(tensor(3.0)))
    same(f(tensor(2.0)), 24)
    # The inner function differentiates at a point that depends on the outer variable:
    # d/dx [(3 (x**2)**2)] = 12 x**3.
    g = tp.grad(lambda x: tp.grad(lambda y: y**3)(x * x))
    same(g(tensor(2.0)), 96)
    # Results of the outer variable alone are constants in the inner function.
    h = tp.grad(lambda x: tp.grad(lambda y: tp.sin(x) * y)(x) * 2.0)
    same(h(tensor(0.5)), 2 * np.cos(0.5))


def test_vjp_inside_grad_and_a_vjp_used_outside() -> None:
    # The vjp of x*x inside: y' * dy = 2x * 3; its derivative is 6.
    same(tp.grad(lambda x: tp.vjp(lambda t: t * t, x)[1](tensor(3.0))[0])(tensor(5.0)), 6)
    # The value that the inner vjp gives is on the outer tape as well.
    same(tp.grad(lambda x: tp.vjp(lambda t: t * t, x)[0] * 2.0)(tensor(5.0)), 20)
    # With respect to dy.
    _, vjp = tp.vjp(lambda t: t * t, tensor(5.0))
    same(tp.grad(lambda dy: vjp(dy)[0])(tensor(1.0)), 10)


def test_a_vjp_outlives_its_result() -> None:
    def g(x: tp.Tensor) -> tp.Tensor:
        y, vjp = tp.vjp(lambda x: x * x * x, x)
        y.dispose()
        return vjp(tp.ones((2,)))[0].sum()  # 3 x**2, so 6 x comes back

    same(tp.grad(g)(tensor([1.0, 2.0])), [6, 12])


def test_a_value_that_leaked_from_one_tape_is_a_constant_in_the_next() -> None:
    leaked: list[tp.Tensor] = []

    def f(x: tp.Tensor) -> tp.Tensor:
        leaked.append(x * 3.0)
        return x * 1.0

    tp.grad(f)(tensor(2.0))
    same(tp.grad(lambda x: x * leaked[0])(tensor(7.0)), 6)


def test_recordings_form_a_chain() -> None:
    seen: list[list[Any]] = []

    def note(x: tp.Tensor) -> tp.Tensor:
        chain, recording = [], current_context().recording
        while recording is not None:
            chain.append(recording)
            recording = recording.parent
        seen.append(chain)
        return x * x

    def outer(x: tp.Tensor) -> tp.Tensor:
        note(x)
        return tp.grad(note)(x)

    tp.grad(outer)(tensor(1.0))
    assert [len(chain) for chain in seen] == [1, 2]
    assert seen[1][1] is seen[0][0]
    assert seen[1][0] is not seen[0][0]


def test_stop_gradient() -> None:
    same(tp.grad(total(lambda x: x * tp.stop_gradient(x)))(tensor([2.0, 3.0])), [2, 3])
    # It stops the outer derivative too.
    outer = tp.grad(lambda x: tp.grad(lambda y: y * y * tp.stop_gradient(x))(x))
    same(outer(tensor(3.0)), 6)
    assert tp.stop_gradient(2.0).dtype is tp.float32
