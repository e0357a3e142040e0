"""Loops and branches in compiled functions: gradients, forward mode and vmap, in any order.

The plain loops outside of compiled functions, which the tape records call by call, say what is
right; a few derivatives are known as formulas.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.compile.test_compile import Counted, agree, kernels
from tests.core.compile.test_control_flow import nested, same, tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.array([[0.5, -1.25], [2.0, 0.25], [-0.75, 1.5]])
W = np.array([[0.5, -1.0], [0.25, 0.75]])

twice = tp.custom_grad(lambda x: (x * x, lambda dy: dy * 7.0 * tp.sin(x)))
VARIABLE = tp.Variable(np.array([0.75, -0.5]), name="of loops")


def _rnn(w: Any, x: Any, use: Callable[[Any], Any] = tp.tanh) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = use(h @ w + row)
        return h, {"product": h * row, "count": 1}

    last, ys = tp.scan(step, tp.zeros((2,), dtype=tp.float64), x)
    return tp.sum(last) + tp.sum(ys["product"] ** 2)


def _two_carries(w: Any, x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        (a, number), unused = carry["state"], carry["unused"]
        a = tp.sin(a @ w) + row
        return {"state": (a, number + 1), "unused": unused * a}, (a * tp.astype(number, a.dtype))

    init = {"state": (x[0], 0), "unused": x[1]}
    last, ys = tp.scan(step, init, x, reverse=True)
    return tp.sum(last["state"][0] * w) + tp.sum(ys)


def _power(w: Any, x: Any) -> Any:
    return tp.sum(tp.fori_loop(1, 4, lambda i, v: tp.tanh(v @ w) * i, x))


def _bounded(w: Any, x: Any) -> Any:
    def more(v: Any) -> Any:
        return tp.sum(v * v) < 30.0

    return tp.sum(tp.while_loop(more, lambda v: v * 2 + tp.sin(v @ w), x, max_steps=5))


def _branches(w: Any, x: Any) -> Any:
    def step(total: Any, row: Any) -> Any:
        new = tp.cond(
            row[0] > 0, lambda t, r: t * tp.sum(r @ w), lambda t, _: tp.sin(t), total, row
        )
        return tp.switch(
            tp.astype(row[1] * 2, "int32"), [tp.cos, lambda t: t * w[0], tp.exp], new
        ), ()

    return tp.sum(tp.scan(step, w[1], x)[0])


def _nested(w: Any, x: Any) -> Any:
    def outer(total: Any, row: Any) -> Any:
        inner = tp.map(lambda y: tp.sin(y * w) * total, x)
        return tp.tanh(tp.sum(inner, axis=(0, 1)) + row), tp.sum(inner)

    last, ys = tp.scan(outer, x[0], x)
    return tp.sum(last) + tp.sum(ys)


def _without_carry(w: Any, x: Any) -> Any:
    """Compute in steps what no carry enters; rules of exp and of quotients use results."""

    def step(total: Any, row: Any) -> Any:
        total = total + tp.sin(total) * tp.exp(w[0]) / (2.0 + w[1])
        return total, tp.map(lambda y: tp.sum(tp.tanh(y * total) * (1.5 / (3.0 + w))), x) * row[0]

    last, ys = tp.scan(step, x[0], x)
    return tp.sum(last) + tp.sum(ys)


FUNCTIONS: dict[str, Any] = {
    "rnn": _rnn,
    "without carry": _without_carry,
    "two carries": _two_carries,
    "fori_loop": _power,
    "bounded while_loop": _bounded,
    "branches": _branches,
    "nested": _nested,
    "checkpoint": lambda w, x: _rnn(w, x, tp.checkpoint(lambda v: tp.tanh(tp.sin(v) @ w))),
    "custom gradient": lambda w, x: _rnn(w, x, lambda v: tp.tanh(twice(v))),
    "stopped": lambda w, x: _rnn(w, x, lambda v: tp.tanh(v) * tp.stop_gradient(tp.exp(-v * v))),
    "inner gradient": lambda w, x: _rnn(w, x, tp.grad(lambda v: tp.sum(tp.cos(v @ w) * v))),
    "a compiled function": lambda w, x: _rnn(w, x, tp.compile(lambda v: tp.tanh(v) * 0.5)),
    "a variable": lambda w, x: _rnn(w, x, lambda v: tp.tanh(v * VARIABLE)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_and_branches_have_gradients(name: str) -> None:
    """Inside a compiled function, and through one."""
    f = FUNCTIONS[name]
    both = tp.value_and_grad(f, (0, 1))
    expected = both(tensor(W), tensor(X))
    agree(tp.compile(both)(tensor(W), tensor(X)), expected, rtol=1e-9)
    agree(tp.value_and_grad(tp.compile(f), (0, 1))(tensor(W), tensor(X)), expected, rtol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_and_branches_have_second_derivatives(name: str) -> None:
    f = FUNCTIONS[name]

    def along(w: Any, x: Any) -> Any:
        dw, dx = tp.grad(f, (0, 1))(w, x)
        return tp.sum(dw * tensor(W[::-1])) + tp.sum(dx * tensor(X[::-1]))

    second = tp.grad(along, (0, 1), unconnected="zeros")
    expected = second(tensor(W), tensor(X))
    agree(tp.compile(second)(tensor(W), tensor(X)), expected, rtol=1e-8)


@pytest.mark.parametrize("way", [lambda f: f, tp.compile], ids=["eager", "compiled"])
def test_a_loop_of_no_steps(way: Any) -> None:
    def f(x: Any) -> Any:
        return tp.sum(tp.while_loop(lambda v: v[0] < 9.0, lambda v: v * 2, x, max_steps=0) * 3)

    same(way(tp.grad(f))(tensor(W[0])), [3.0, 3.0])


def test_gradients_of_variables() -> None:
    def loss(x: Any) -> Any:
        return tp.sum(tp.scan(lambda h, r: (tp.sin(h * VARIABLE + r), None), x[0], x)[0])

    f = tp.compile(lambda x: tp.variable_grads(lambda: loss(x), [VARIABLE]))
    agree(f(tensor(X)), tp.variable_grads(lambda: loss(tensor(X)), [VARIABLE]), rtol=1e-9)


def test_a_gradient_runs_the_function_once_per_program() -> None:
    counted = Counted(_rnn)
    compiled = tp.compile(tp.grad(counted))
    for _ in range(3):
        compiled(tensor(W), tensor(X))
    assert counted.calls == 1


def test_the_backward_pass_is_one_loop() -> None:
    sizes = set()
    for n in (2, 20):
        program = tp.compile(tp.grad(_rnn)).program(tensor(W), tensor(np.tile(X, (n, 1))))
        assert kernels(program).count("Scan") == 2
        sizes.add(len(program.calls))
    assert len(sizes) == 1


def test_only_carries_are_kept() -> None:
    """The forward loop gives the carries before each step, besides what the function uses."""
    program = tp.compile(tp.grad(_power)).program(tensor(W), tensor(X))
    forward = next(call for call in program.calls if call.plan.spec.name == "Scan")
    assert [str(output.placement.type) for output in forward.outputs] == [
        "float64[3,2]",  # the last value
        "float64[3,3,2]",
    ]


def test_loops_without_gradients_keep_nothing() -> None:
    program = tp.compile(_rnn).program(tensor(W), tensor(X))
    assert len(nested(program, "Scan").outputs) == 2  # the last state, and the products


@pytest.mark.parametrize("layer", ["gru", "lstm"])
def test_recurrent_layers_are_loops(layer: str) -> None:
    """On a backend without kernels for them; the CPU's kernels say what is right."""
    gates = {"gru": 3, "lstm": 4}[layer]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=size) for size in ((2, 5, 3), (3, gates * 2), (2, gates * 2))]
    run = getattr(tp.nn, layer)

    def loss(x: Any, kernel: Any, recurrent: Any) -> Any:
        return tp.sum(run(x, kernel, recurrent, lengths=tp.asarray([5, 3]))[0] ** 2)

    gradient = tp.compile(tp.value_and_grad(loss, (0, 1, 2)))
    expected = gradient(*map(tensor, arrays))
    with tp.use_backend("minimal"):
        tensors = [tensor(array) for array in arrays]
        program, result = gradient.program(*tensors), gradient(*tensors)
    assert kernels(program).count("Scan") == 2
    agree(result, expected, rtol=1e-9)


# vmap and forward mode ------------------------------------------------------------------------

DIRECTION = tensor(np.array([[1.0, 0.5], [-0.25, 2.0]]))

TRANSFORMED: dict[str, Any] = {
    "vmap": lambda f: tp.vmap(f, (None, 0)),
    "vmap of both": lambda f: lambda w, x: tp.vmap(f)(tp.stack([w, w * 0.5]), x),
    "vmap of vmap": lambda f: (
        lambda w, x: tp.vmap(lambda w: tp.vmap(f, (None, 0))(w, x))(tp.stack([w, w * 0.5]))
    ),
    "jvp": lambda f: lambda w, x: tp.jvp(lambda w: f(w, x[0]), (w,), (DIRECTION,)),
    "vmap of grad": lambda f: tp.vmap(tp.grad(f), (None, 0)),
    "grad of vmap": lambda f: tp.grad(lambda w, x: tp.sum(tp.vmap(f, (None, 0))(w, x) ** 2)),
    "grad of jvp": lambda f: tp.grad(
        lambda w, x: tp.jvp(lambda w: f(w, x[1]), (w,), (DIRECTION,))[1], unconnected="zeros"
    ),
    "jvp of grad": lambda f: (
        lambda w, x: tp.jvp(lambda w: tp.grad(f, 1)(w, x[1]), (w,), (DIRECTION,))[1]
    ),
    "vmap of jvp of grad": lambda f: tp.vmap(
        lambda w, x: tp.jvp(lambda w: tp.grad(f)(w, x), (w,), (DIRECTION,))[1], (None, 0)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", TRANSFORMED)
def test_transformations(name: str, kind: str) -> None:
    """The same results with and without ``compile``."""
    f = TRANSFORMED[kind](FUNCTIONS[name])
    w, x = tensor(W), tensor(np.stack([X, X[::-1] * 0.5]))
    agree(tp.compile(f)(w, x), f(w, x), rtol=1e-8)


@pytest.mark.parametrize("way", [lambda f: f, tp.compile], ids=["eager", "compiled"])
def test_loops_of_several_lengths_in_vmap(way: Any) -> None:
    f = way(tp.vmap(lambda x, n: tp.fori_loop(0, n, lambda i, v: v * 2 + i, x)))
    result = f(tensor([1.0, 3.0, 5.0]), tp.asarray([0, 3, 1]))
    same(result, np.array([1.0, 3 * 8 + 4, 10.0]))


@pytest.mark.parametrize("way", [lambda f: f, tp.compile], ids=["eager", "compiled"])
def test_another_branch_for_each_example(way: Any) -> None:
    f = way(tp.vmap(lambda i, x: tp.switch(i, [tp.sin, tp.cos, lambda x: x * 2], x)))
    x = np.array([0.5, 1.0, 2.0, 3.0])
    result = f(tp.asarray([0, 1, 2, 7]), tensor(x))
    same(result, np.array([np.sin(x[0]), np.cos(x[1]), x[2] * 2, x[3] * 2]))


@pytest.mark.parametrize("way", [lambda f: f, tp.compile], ids=["eager", "compiled"])
def test_more_branches_than_the_index_can_say(way: Any) -> None:
    branches = [lambda x, by=by: x * by for by in range(130)]
    index = tp.asarray([-128, 3, 127], dtype=tp.int8)
    result = way(tp.vmap(lambda at, x: tp.switch(at, branches, x)))(index, tensor(X[:, 0]))
    same(result, X[:, 0] * [0, 3, 127])


def test_one_branch_for_all_examples_stays_a_branch() -> None:
    f = tp.compile(lambda p, x: tp.vmap(lambda x: tp.cond(p, tp.sin, tp.cos, x))(x))
    assert kernels(f.program(tp.asarray(True), tensor(X))) == ["Cast", "Switch"]
    same(f(tp.asarray(False), tensor(X)), np.cos(X))


@pytest.mark.parametrize("way", [lambda f: f, tp.compile], ids=["eager", "compiled"])
def test_nothing_to_scan_in_vmap(way: Any) -> None:
    f = way(tp.vmap(lambda x: tp.scan(lambda c, x: (c + x, x * 2), tensor(0.0), x)))
    last, ys = f(tensor(np.zeros((3, 0))))
    same(last, np.zeros(3))
    same(ys, np.zeros((3, 0)))


# Lifetimes ------------------------------------------------------------------------------------


def _capture(w: tp.Variable, transform: Any) -> None:
    tp.compile(transform(lambda x: _rnn(w.read() * 1.0, x)))(tensor(X))


@pytest.mark.parametrize("transform", [lambda f: f, tp.grad], ids=["value", "gradient"])
def test_what_the_function_captures_is_freed(transform: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        w = tp.Variable(tensor(W))
        _capture(w, transform)
        gone = weakref.ref(w)
        del w
        assert gone() is None
    finally:
        gc.enable()


def test_autocast_in_the_backward_pass() -> None:
    w, x = tp.asarray(np.float32(W)), tp.asarray(np.float32(X))

    def loss(w: Any, x: Any) -> Any:
        with tp.autocast(tp.float16):
            init = tp.zeros((2,))
            last, _ = tp.scan(
                lambda h, r: (tp.astype(tp.tanh(h @ w), "float32") + r, None), init, x
            )
            return tp.sum(last)

    agree(tp.compile(tp.grad(loss))(w, x), tp.grad(loss)(w, x), rtol=1e-3)
    backward = tp.compile(tp.grad(loss)).program(w, x).calls
    bodies = [call.plan.parts["body"] for call in backward if call.plan.spec.name == "Scan"]
    products = [
        str(call.outputs[0].placement.type.dtype)
        for body in bodies
        for call in body.calls
        if call.plan.spec.name == "BatchMatMul"
    ]
    assert set(products) == {"float16"}
