"""Gradients on more than one device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.testing import check_grads

if TYPE_CHECKING:
    from tensorplug.engine.engine import Engine

X = np.array([0.3, -1.1], np.float32)


def there_and_back(x: tp.Tensor) -> tp.Tensor:
    """(x e**(e**x))**2, summed, with the middle on the other device."""
    h = tp.exp(x)
    with tp.use_backend("other"):
        h = tp.exp(h) * x
        assert h.device == "other"
    return tp.sum(h * h)


def test_a_tape_may_cross_devices(engine: Engine) -> None:
    check_grads(there_and_back, [X], order=2)
    gradient = tp.grad(there_and_back)(tensor(X))
    assert gradient.device == "memory"
    x = X.astype(np.float64)
    # d/dx (x e**(e**x))**2 = 2 x e**(2 e**x) (1 + x e**x)
    same(gradient, 2 * x * np.exp(2 * np.exp(x)) * (1 + x * np.exp(x)))


def test_vmap_and_forward_mode_may_cross_devices(engine: Engine) -> None:
    x = X.astype(np.float64)
    # (x e**(e**x))**2, and its derivative
    value, slope = (
        (x * np.exp(np.exp(x))) ** 2,
        2 * x * np.exp(2 * np.exp(x)) * (1 + x * np.exp(x)),
    )
    same(tp.vmap(there_and_back)(tensor(X)), value)
    same(tp.vmap(tp.grad(there_and_back))(tensor(X)), slope)
    same(tp.grad(lambda x: tp.sum(tp.vmap(there_and_back)(x)))(tensor(X)), slope)
    rows = tensor(X[:, None])
    moved = tp.vmap(tp.vmap(lambda x: x.to("other")))(rows)
    assert moved.device == "other"
    same(moved, X[:, None])


def test_the_process_changes_its_backend_in_the_middle_of_f(engine: Engine) -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        h = tp.exp(x)
        tp.set_backend("other")
        return tp.sum(h * x)

    tp.set_backend("memory")
    value, gradient = tp.value_and_grad(f)(tensor(X))
    assert (value.device, gradient.device) == ("other", "other")
    same(gradient, np.exp(X) * (1 + X))


@pytest.mark.parametrize("where", ["use", "set"])
def test_the_backend_changes_between_forward_and_backward(engine: Engine, where: str) -> None:
    y, vjp = tp.vjp(lambda x: tp.exp(x) * x, tensor(X))
    dy = tensor([1.0, 10.0])
    expected = np.exp(X) * (1 + X) * [1, 10]
    if where == "use":
        with tp.use_backend("other"):
            (gradient,) = vjp(dy)
    else:
        tp.set_backend("other")
        (gradient,) = vjp(dy)
    assert (y.device, gradient.device) == ("memory", "other")
    same(gradient, expected)
    same(dy, [1, 10])


def test_a_result_on_another_device(engine: Engine) -> None:
    def f(x: tp.Tensor) -> tp.Tensor:
        return (x * x).to("other")

    with tp.use_backend("other"):
        dy = tensor([1.0, 1.0])
    value, gradient = tp.value_and_grad(f)(tensor([1.0, 2.0]), dy=dy)
    assert (value.device, gradient.device) == ("other", "memory")
    same(gradient, [2, 4])
    with tp.use_backend("other"):
        dy = tensor([10.0, 100.0])
    same(tp.grad(f)(tensor([1.0, 2.0]), dy=dy), [20, 400])
    same(dy, [10, 100])
    assert dy.device == "other"


def test_an_argument_on_another_device(engine: Engine) -> None:
    with tp.use_backend("other"):
        there = tensor([1.0, 2.0])
    gradient = tp.grad(lambda x: tp.sum(x * x * x))(there)
    assert gradient.device == "memory"
    same(gradient, [3, 12])
    assert there.device == "other"


def test_a_checkpoint_runs_again_where_it_ran_first(engine: Engine) -> None:
    seen = []

    @tp.checkpoint
    def block(x: tp.Tensor) -> tp.Tensor:
        seen.append(tp.get_backend())
        return tp.exp(x) * x

    def f(x: tp.Tensor) -> tp.Tensor:
        with tp.use_backend("other"):
            h = block(x)
        return tp.sum(h)

    same(tp.grad(f)(tensor(X)), np.exp(X) * (1 + X))
    assert seen == ["other", "other"]
    # Without use_backend around it, it runs on the device of the backward pass.
    _, vjp = tp.vjp(lambda x: tp.sum(block(x)), tensor(X))
    with tp.use_backend("other"):
        same(vjp(1.0)[0], np.exp(X) * (1 + X))
    assert seen == ["other", "other", "memory", "other"]


def test_a_checkpoint_whose_device_is_closed(engine: Engine) -> None:
    block = tp.checkpoint(lambda x: tp.exp(x) * x)
    with tp.use_backend("other"):
        _, vjp = tp.vjp(block, 0.5)
    engine.devices.close("other")
    with pytest.raises(tp.errors.BackendClosedError):
        vjp(1.0)
