"""Compiled loops: products leave the loop, and the results stay those of the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.control import hoisting
from tensorplug.tensors import tree

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 5


def floats(*shape: int) -> tp.Tensor:
    numbers = np.random.default_rng(sum(shape)).standard_normal(shape) / 2
    return tp.asarray(numbers.astype(np.float32))


def recurrent(h: Any, x: Any, p: Any) -> Any:
    """A step with one product of its input and one of its carry."""
    h = tp.tanh(x @ p["w"] + p["b"] + h @ p["u"])
    return h, h


def both_used(h: Any, x: Any, p: Any) -> Any:
    """The product, what it is made of, and what is made of it are used beside the carry."""
    wide = tp.nn.relu(x * 2)
    y = wide @ p["w"] + p["b"]
    h = tp.tanh(y + h) + tp.sum(wide)
    return h, (y, tp.nn.sigmoid(y), wide)


def of_slices(h: Any, x: Any, p: Any) -> Any:
    """A product of two slices."""
    y = x.T @ x @ p["w"]
    return h + tp.sum(y, axis=0), tp.sum(h)


def twice(h: Any, x: Any, p: Any) -> Any:
    """A product of a product."""
    return tp.tanh((x @ p["w"]) @ p["u"] + h), None


def of_carries(h: Any, x: Any, p: Any) -> Any:
    """Nothing that could leave the loop."""
    return tp.tanh((h + tp.sum(x)) @ p["u"]), h


def inner_loop(h: Any, x: Any, p: Any) -> Any:
    """A loop over the rows of a slice, whose product could leave both."""

    def step(g: Any, row: Any) -> Any:
        g = tp.tanh(row @ p["w"] + g)
        return g, tp.sum(g)

    g, sums = tp.scan(step, h, tp.reshape(x, (x.shape[0], 1, x.shape[1])))
    return h * 0.5 + g, sums


def an_accumulator(h: Any, x: Any, p: Any) -> Any:
    """The user's own sum of products, and one that the step uses."""
    total, used, now = h
    new = tp.matmul(x, tp.tanh(now), transpose_a=True)
    used = used + tp.sum(x.T @ x)
    return (total + new, used, now * 0.5 + used), tp.sum(x @ p["w"])


def a_total_that_is_read(h: Any, x: Any, p: Any) -> Any:
    """A sum of products that each step uses."""
    seen = tp.tanh(x @ p["w"] + tp.sum(h) * 0.1)
    return h + tp.matmul(x, seen, transpose_a=True), None


# The step, the first carry, and how many of the products of a step remain in its loop.
LOOPS: dict[str, tuple[Callable[..., Any], Any, int]] = {
    "recurrent": (recurrent, (3, 6), 1),
    "both used": (both_used, (3, 6), 0),
    "of slices": (of_slices, (6,), 0),
    "twice": (twice, (3, 6), 0),
    "of carries": (of_carries, (3, 6), 1),
    "inner loop": (inner_loop, (1, 6), 0),
    "an accumulator": (an_accumulator, [(4, 6), (), (3, 6)], 0),
    "a total that is read": (a_total_that_is_read, (4, 6), 1),
}


def parameters() -> dict[str, tp.Tensor]:
    return {"w": floats(4, 6), "u": floats(6, 6), "b": floats(6)}


def looped(name: str, *, reverse: bool = False) -> Callable[..., Any]:
    step, shape, _ = LOOPS[name]
    init = [floats(*each) for each in shape] if isinstance(shape, list) else floats(*shape)
    init = tuple(init) if isinstance(init, list) else init

    def run(p: Any, xs: Any) -> Any:
        return tp.scan(lambda h, x: step(h, x, p), init, xs, reverse=reverse)

    return run


def total(run: Any) -> Callable[..., Any]:
    """Return the sum of the sines of all results, each of which counts."""
    return lambda p, xs: sum(tp.sum(tp.sin(leaf)) for leaf in tree.leaves(run(p, xs)))


def same(found: Any, wanted: Any, rtol: float = 2e-5) -> None:
    pairs = list(zip(tree.leaves(found), tree.leaves(wanted), strict=True))
    assert pairs
    for one, other in pairs:
        assert one.type == other.type
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=rtol, atol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_results_and_gradients_are_those_of_the_steps(name: str, reverse: bool) -> None:
    run = looped(name, reverse=reverse)
    p, xs = parameters(), floats(STEPS, 3, 4)
    same(tp.compile(run)(p, xs), run(p, xs))
    f = total(run)
    gradient = tp.grad(f, argnums=(0, 1), unconnected="zeros")
    expected = gradient(p, xs)
    same(tp.compile(gradient)(p, xs), expected)
    same(tp.grad(tp.compile(f), argnums=(0, 1), unconnected="zeros")(p, xs), expected)


@pytest.mark.parametrize("name", LOOPS)
def test_loop_products_compose_with_transformations(name: str) -> None:
    run = looped(name)
    p, xs = parameters(), floats(STEPS, 3, 4)
    f = total(run)
    many = floats(2, STEPS, 3, 4)

    def second(p: Any, xs: Any) -> Any:
        return tp.grad(lambda xs: tp.sum(tp.square(tp.grad(f, argnums=1)(p, xs))))(xs)

    for g, x in [
        (tp.vmap(f, in_axes=(None, 0)), many),
        (lambda p, xs: tp.jvp(lambda xs: f(p, xs), (xs,), (tp.ones_like(xs),)), xs),
        (tp.vmap(tp.grad(f, argnums=1), in_axes=(None, 0)), many),
        (second, xs),
    ]:
        same(tp.compile(g)(p, x), g(p, x), 1e-4)


def products_inside(program: Any) -> int:
    """Return how many products the loops of a program make in each step."""
    count = 0
    for call in program.calls:
        for part in getattr(call.plan, "parts", {}).values():
            made = [each.plan.spec.name for each in part.calls]
            count += sum(name in ("BatchMatMul", "_FusedMatMul") for name in made)
            count += products_inside(part)
    return count


@pytest.mark.parametrize("name", LOOPS)
def test_products_that_need_no_carry_leave_the_loop(name: str) -> None:
    program = tp.compile(looped(name)).program(parameters(), floats(STEPS, 3, 4))
    assert products_inside(program) == LOOPS[name][2]


def test_the_gradient_of_a_recurrent_layer_keeps_the_product_with_the_cotangent() -> None:
    """Forward x @ w leaves; backward both products that are made again, and both weights'."""
    f = tp.compile(tp.grad(total(looped("recurrent"))))
    assert products_inside(f.program(parameters(), floats(STEPS, 3, 4))) == 2


def test_results_too_large_for_memory_stay_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = STEPS * 3 * 6 * 4
    counts = []
    for most in (needed - 1, needed):
        monkeypatch.setattr(hoisting, "MOST_BYTES", most)
        run = looped("recurrent")
        p, xs = parameters(), floats(STEPS, 3, 4)
        f = tp.compile(run)
        same(f(p, xs), run(p, xs))
        counts.append(products_inside(f.program(p, xs)))
    assert counts == [2, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int32"])
def test_dtypes_stay(dtype: str) -> None:
    p = {name: tp.astype(value * 4, dtype) for name, value in parameters().items()}
    xs = tp.astype(floats(STEPS, 3, 4) * 4, dtype)

    def run(p: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            squares, sums = carry
            y = x @ p["w"]
            squares = squares + tp.matmul(x, y, transpose_a=True)
            return (squares, sums + tp.sum(y, axis=0, dtype=dtype)), y

        zeros = (tp.zeros((4, 6), dtype=dtype), tp.zeros((6,), dtype=dtype))
        return tp.scan(step, zeros, xs)

    compiled = tp.compile(run)
    assert products_inside(compiled.program(p, xs)) == 0
    result, expected = compiled(p, xs), run(p, xs)
    narrow = dtype in ("float16", "bfloat16")
    for one, other in zip(tree.leaves(result), tree.leaves(expected), strict=True):
        assert one.type == other.type
        exact = np.asarray(tp.astype(other, "complex128").numpy())
        error = np.abs(np.asarray(tp.astype(one, "complex128").numpy()) - exact)
        assert np.all(error <= (0.05 if narrow else 1e-4) * (1 + np.abs(exact).max()))
