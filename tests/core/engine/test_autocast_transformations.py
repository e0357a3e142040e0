"""Mixed precision beside gradients, programs, loops and other devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.engine.test_autocast import NARROW, RNG, W, X
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Callable


def loss(parameters: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = tp.tanh(x @ parameters["w"] + parameters["b"])
    return tp.mean((hidden @ parameters["v"] - y) ** 2)


PARAMETERS = {
    "w": W,
    "b": np.zeros(5, np.float32),
    "v": RNG.normal(size=(5, 2)).astype(np.float32),
}


Y = RNG.normal(size=(3, 2)).astype(np.float32)


def parameters() -> dict[str, tp.Tensor]:
    return {name: tp.asarray(value) for name, value in PARAMETERS.items()}


def _grad_inside(f: Any) -> Any:
    with tp.autocast("float16"):
        return tp.grad(f)(parameters(), tp.asarray(X), tp.asarray(Y))


def _grad_outside(f: Any) -> Any:
    return tp.grad(tp.autocast("float16")(f))(parameters(), tp.asarray(X), tp.asarray(Y))


GRADIENTS: dict[str, Callable[[], Any]] = {
    "grad in a block": lambda: _grad_inside(loss),
    "a block in grad": lambda: _grad_outside(loss),
    "of a compiled function": lambda: _grad_inside(tp.compile(loss)),
    "of a block in a compiled function": lambda: _grad_outside(tp.compile(loss)),
    "compiled": lambda: tp.compile(_grad_inside)(loss),
    "compiled, from outside": lambda: tp.compile(_grad_outside)(loss),
    "checkpointed": lambda: _grad_inside(tp.checkpoint(loss)),
    "checkpointed, from outside": lambda: _grad_outside(tp.checkpoint(loss)),
}


@pytest.mark.parametrize("what", GRADIENTS)
def test_gradients_of_float32_parameters_are_float32(what: str) -> None:
    exact = tp.grad(loss)(parameters(), X, Y)
    result = GRADIENTS[what]()
    for name, gradient in exact.items():
        assert result[name].type == gradient.type
        np.testing.assert_allclose(result[name].numpy(), gradient.numpy(), rtol=0.02, atol=2e-3)
        if name != "b":  # it was computed in halves somewhere
            assert (result[name].numpy() != gradient.numpy()).any()


def test_a_backward_pass_is_the_same_inside_and_outside() -> None:
    with tp.autocast("float16"):
        _, inside = tp.vjp(tp.matmul, tp.asarray(X), tp.asarray(W))
        by = tp.ones((3, 5), dtype="float16")
        one = inside(by)
    other = inside(by)
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype == "float32"
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_decompositions_and_gradient_rules_run_as_outside() -> None:
    # The rule of MatrixInverse multiplies matrices, whose results would be float16.
    x = tp.asarray(X[:3, :3] + 4 * np.eye(3, dtype=np.float32))

    def f(x: tp.Tensor) -> tp.Tensor:
        return tp.sum(tp.linalg.inv(x))

    outside = tp.grad(f)(x)
    with tp.autocast("float16"):
        inside = tp.grad(f)(x)
    expect(inside, "float32", (3, 3), outside.numpy())


def test_a_compiled_function_has_a_program_for_each_block() -> None:
    traced: list[None] = []

    @tp.compile
    def product(x: tp.Tensor, w: tp.Tensor) -> tp.Tensor:
        traced.append(None)
        return tp.matmul(x, w)

    x, w = tp.asarray(X), tp.asarray(W)
    for _ in range(2):
        assert product(x, w).dtype == "float32"
        with tp.autocast("float16"):
            assert product(x, w).dtype == "float16"
            assert "Cast" in str(product.program(x, w))
    assert len(traced) == 2


@tp.custom_grad
def doubled(x: tp.Tensor) -> Any:
    return x @ tp.asarray(W), lambda dy: 2.0 * (tp.astype(dy, "float32") @ tp.asarray(W.T))


def row_loss(row: tp.Tensor) -> tp.Tensor:
    return tp.sum(tp.tanh(row @ tp.asarray(W)) ** 2)


# Functions of a row that give a vector, a matrix or a scalar; how they are transformed.
NESTED: dict[str, Callable[[], Any]] = {
    "vmap of a checkpoint": lambda: tp.vmap(tp.grad(tp.checkpoint(row_loss))),
    "gradient of vmap of a checkpoint": lambda: tp.grad(
        lambda x: tp.sum(tp.vmap(tp.checkpoint(row_loss))(x))
    ),
    "vmap of a compiled function": lambda: tp.vmap(tp.grad(tp.compile(row_loss))),
    "compiled vmap": lambda: tp.compile(tp.vmap(tp.grad(row_loss))),
    "vmap of custom_grad": lambda: tp.vmap(tp.grad(lambda row: tp.sum(doubled(row) ** 2))),
    "jacobian": lambda: tp.vmap(tp.jacobian(lambda row: row @ tp.asarray(W))),
    "hessian": lambda: tp.vmap(tp.hessian(row_loss)),
    "forward over reverse": lambda: tp.vmap(
        lambda row: tp.jvp(tp.grad(row_loss), (row,), (tp.ones(4),))[1]
    ),
}


@pytest.mark.parametrize("what", NESTED)
def test_transformations_nest(what: str) -> None:
    f, x = NESTED[what](), tp.asarray(X)
    exact = f(x)
    with tp.autocast("float16"):
        result = f(x)
    assert result.shape == exact.shape
    assert (result.numpy().astype(np.float32) != exact.numpy()).any()
    np.testing.assert_allclose(result.numpy(), exact.numpy(), rtol=0.03, atol=0.02)


def test_a_second_derivative_of_a_compiled_function_calls_it_in_its_block() -> None:
    def derived(f: Any, *, enabled: bool) -> Any:
        def inside(x: tp.Tensor) -> tp.Tensor:
            with tp.autocast("float16", enabled=enabled):
                return f(x)  # type: ignore[no-any-return]  # of any function

        return tp.grad(lambda x: tp.sum(tp.grad(inside)(x) ** 2))(tp.asarray(X[0])).numpy()

    exact = derived(row_loss, enabled=False)
    expected = derived(row_loss, enabled=True)
    result = derived(tp.compile(row_loss), enabled=True)
    assert np.abs(result - expected).max() < np.abs(exact - expected).max() / 4


def test_another_device_or_another_kernel_ends_what_is_cached() -> None:
    with isolated_engine():
        tp.set_backend("cpu")
        assert tp.matmul(X, W).dtype == "float32"
        with tp.autocast("float16"):
            tp.set_backend("cpu")
            x, w = tp.asarray(X), tp.asarray(W)
            for _ in range(3):
                assert (x @ w).dtype == "float16"
                np.testing.assert_array_equal(tp.negative(x).numpy(), -X)
            with tp.register_kernel("Neg", "cpu", lambda x: x, override=True):
                np.testing.assert_array_equal(tp.negative(x).numpy(), X)
            np.testing.assert_array_equal(tp.negative(x).numpy(), -X)


@pytest.mark.parametrize("dtype", NARROW)
def test_training_reaches_the_loss_of_float32(dtype: str) -> None:
    rng = np.random.default_rng(7)
    x = tp.asarray(rng.normal(size=(64, 8)).astype(np.float32))
    y = tp.asarray(np.sin(x.numpy() @ rng.normal(size=(8, 1)).astype(np.float32) / 3))
    start = {
        "w": tp.asarray(rng.normal(size=(8, 32)).astype(np.float32) / 3),
        "b": tp.zeros(32),
        "v": tp.asarray(rng.normal(size=(32, 1)).astype(np.float32) / 6),
    }

    def train(f: Any) -> float:
        optimizer = tp.train.adam(0.03)
        result, state = start, optimizer.init(start)
        step = tp.compile(lambda p: tp.value_and_grad(f)(p, x, y))
        for _ in range(200):
            _, gradients = step(result)
            result, state = optimizer.step(gradients, state, result)
        return float(loss(result, x, y))

    first, wide, narrow = float(loss(start, x, y)), train(loss), train(tp.autocast(dtype)(loss))
    assert wide < first / 10
    assert narrow < 1.2 * wide + 1e-3
