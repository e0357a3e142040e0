"""vmap with grad, jvp, jacobian, hessian, compile, custom_grad, checkpoint, and with itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.support.tensors import same, tensor

import tensorplug as tp
from tensorplug.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

RANDOM = np.random.default_rng(73)
X = RANDOM.uniform(-1.0, 1.0, (4, 3))
W = RANDOM.uniform(-1.0, 1.0, (3, 2))
T = np.tanh(X @ W)
SLOPE = 1 - T**2


def net(x: Any, w: Any) -> Any:
    return tp.sum(tp.tanh(x @ w))


def over_rows(f: Any) -> Any:
    return lambda x: tp.sum(tp.vmap(f)(x))


def cubes(x: Any) -> Any:
    return tp.sum(x**3)


@tp.custom_grad
def tenfold(x: Any) -> tuple[Any, Any]:
    """Return the exponential function with ten times its derivative, in any mode."""
    y = tp.exp(x)
    return y, lambda dy: dy * y * 10.0


@tp.custom_grad
def scaled(x: Any, number: Any) -> tuple[Any, Any]:
    return x * number, lambda dy: (dy * number * 10.0, None)


ONES = np.ones_like(X)
# what, function, arguments, result by NumPy
COMPOSITIONS: list[tuple[str, Any, tuple[Any, ...], Any]] = [
    ("grad of vmap", tp.grad(over_rows(lambda x: net(x, tensor(W)))), (X,), SLOPE @ W.T),
    ("vmap of grad", tp.vmap(tp.grad(net), (0, None)), (X, W), SLOPE @ W.T),
    (
        "vmap of grad, by a constant",
        tp.vmap(tp.grad(net, 1), (0, None)),
        (X, W),
        X[:, :, None] * SLOPE[:, None],
    ),
    (
        "grad of vmap, by a captured tensor",
        tp.grad(lambda w: tp.sum(tp.vmap(lambda x: net(x, w))(tensor(X)))),
        (W,),
        X.T @ SLOPE,
    ),
    (
        "grad of vmap of grad, by a captured tensor",
        tp.grad(lambda w: tp.sum(tp.vmap(lambda x: tp.grad(cubes)(x * w))(tensor(X)))),
        (W[:, 0],),
        6 * W[:, 0] * (X**2).sum(0),
    ),
    (
        "value in vmap of what a tape outside differentiates",
        tp.grad(
            lambda w: tp.sum(tp.vmap(lambda x: tp.value_and_grad(cubes)(w)[0] * x)(tensor(X)))
        ),
        (W[:, 0],),
        3 * W[:, 0] ** 2 * X.sum(),
    ),
    (
        "jvp in vmap of what a tape outside differentiates",
        tp.grad(
            lambda w: tp.sum(
                tp.vmap(lambda x: tp.jvp(cubes, (w,), (tp.ones(3),))[1] * x)(tensor(X))
            )
        ),
        (W[:, 0],),
        6 * W[:, 0] * X.sum(),
    ),
    (
        "vmap of grad by a captured tensor",
        tp.vmap(lambda x: tp.grad(lambda w: tp.sum(w * x) * tp.sum(w))(tensor(W[:, 0]))),
        (X,),
        X * W[:, 0].sum() + (X @ W[:, :1]),
    ),
    ("vmap of grad of grad", tp.vmap(tp.grad(over_rows(tp.grad(lambda x: x**3)))), (X,), 6 * X),
    ("vmap of vmap", tp.vmap(tp.vmap(lambda x: x**2)), (X,), X**2),
    (
        "vmap of jacobian",
        tp.vmap(tp.jacobian(lambda x: x**3)),
        (X,),
        3 * X[:, None] ** 2 * np.eye(3),
    ),
    (
        "jacobian of vmap",
        tp.jacobian(tp.vmap(cubes)),
        (X,),
        np.eye(4)[:, :, None] * 3 * X**2,
    ),
    ("vmap of hessian", tp.vmap(tp.hessian(cubes)), (X,), 6 * X[:, None] * np.eye(3)),
    ("vmap of compile", tp.vmap(tp.compile(cubes)), (X,), (X**3).sum(1)),
    ("compile of vmap", tp.compile(tp.vmap(cubes)), (X,), (X**3).sum(1)),
    ("compile of vmap of grad", tp.compile(tp.vmap(tp.grad(cubes))), (X,), 3 * X**2),
    ("compile of grad of vmap", tp.compile(tp.grad(over_rows(cubes))), (X,), 3 * X**2),
    ("grad of compile of vmap", tp.grad(tp.compile(over_rows(cubes))), (X,), 3 * X**2),
    ("vmap of a custom gradient", tp.vmap(tp.grad(over_rows(tenfold))), (X,), 10 * np.exp(X)),
    ("custom gradient in vmap", tp.grad(over_rows(tenfold)), (X,), 10 * np.exp(X)),
    ("custom gradient in two", tp.grad(over_rows(tp.vmap(tenfold))), (X,), 10 * np.exp(X)),
    (
        "custom gradient in vmap, forward",
        lambda x, t: tp.jvp(tp.vmap(tenfold), (x,), (t,))[1],
        (X, ONES),
        10 * np.exp(X),
    ),
    (
        "custom gradient in vmap, compiled",
        tp.compile(tp.grad(over_rows(tenfold))),
        (X,),
        10 * np.exp(X),
    ),
    (
        "custom gradient in vmap, twice",
        tp.grad(lambda x: tp.sum(tp.grad(over_rows(tenfold))(x))),
        (X,),
        10 * np.exp(X),  # the tape knows the derivative of what the backward function captures
    ),
    (
        "custom gradient with a number",
        tp.grad(lambda x: tp.sum(tp.vmap(scaled)(x, tp.arange(4)))),
        (X,),
        10 * np.arange(4)[:, None] * ONES,
    ),
    ("jacobian of a custom gradient", tp.jacobian(tenfold), (X[0],), 10 * np.diag(np.exp(X[0]))),
    ("vmap of checkpoint", tp.vmap(tp.grad(tp.checkpoint(cubes))), (X,), 3 * X**2),
]


@pytest.mark.parametrize(
    ("f", "args", "expected"), [row[1:] for row in COMPOSITIONS], ids=[r[0] for r in COMPOSITIONS]
)
def test_vmap_composes_with_transformations(f: Any, args: Any, expected: Any) -> None:
    result = f(*map(tensor, args))
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.numpy(), expected, rtol=3e-5, atol=2e-6)


def test_checkpoints_in_vmap_compute_again() -> None:
    calls = []

    def f(x: Any, options: Any) -> Any:
        calls.append(x.shape)
        return {"y": tp.tanh(x) * options["scale"], "name": "f"}

    kept = tp.checkpoint(f)
    options = {"scale": tensor(2.0)}
    slopes = tp.grad(over_rows(lambda x: kept(x, options)["y"]))(tensor(X))
    np.testing.assert_allclose(slopes.numpy(), 2 * (1 - np.tanh(X) ** 2), rtol=1e-5)
    assert calls == [(3,), (3,)]  # once more in the backward pass


def test_gradients_to_what_a_checkpoint_in_vmap_captures() -> None:
    def loss(w: Any, wrap: Any) -> Any:
        def row(x: Any) -> Any:
            h = x @ w
            return tp.sum(wrap(lambda y: tp.tanh(h) * y)(x[:2]))

        return tp.sum(tp.vmap(row)(tensor(X)))

    plain = tp.grad(lambda w: loss(w, lambda f: f))(tensor(W))
    same(tp.grad(lambda w: loss(w, tp.checkpoint))(tensor(W)), plain.numpy())


def test_a_custom_gradient_that_misses_a_captured_tensor() -> None:
    def loss(c: Any) -> Any:
        tripled = tp.custom_grad(lambda x: (x * c, lambda dy: dy * c))
        return tp.sum(tp.vmap(tripled)(tensor(X)))

    with pytest.raises(ArgumentError, match="value of <lambda> depends on a tensor that is being"):
        tp.grad(loss)(tensor(2.0))


def test_the_calls_of_a_compiled_vmap_do_not_grow_with_the_examples() -> None:
    compiled = tp.compile(tp.vmap(tp.grad(net, 1), (0, None)))
    small = compiled.program(tensor(X), tensor(W)).calls
    large = compiled.program(tensor(np.tile(X, (50, 1))), tensor(W)).calls
    assert len(small) == len(large) < 20


def test_jacobian_of_a_compiled_function_that_draws() -> None:
    """Its backward program is interpreted; the function is not called again."""
    generator = tp.random.Generator(3)
    f = tp.compile(lambda x: tp.tanh(x) * generator.uniform((3,)))
    draws = tp.random.Generator(3).uniform((3,)).numpy()
    np.testing.assert_allclose(
        tp.jacobian(f)(tensor(X[0])).numpy(),
        np.diag((1 - np.tanh(X[0]) ** 2) * draws),
        rtol=1e-5,
        atol=1e-7,
    )
    third = tp.jacobian(tp.jacobian(tp.compile(lambda x: x**3)))
    same(third(tensor(X[0])), np.einsum("ij,jk->ijk", 6 * np.diag(X[0]), np.eye(3)))
