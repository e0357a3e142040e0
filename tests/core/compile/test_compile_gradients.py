"""compile: gradients inside and through compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.compile.test_compile import Counted, agree, kernels
from tests.core.support.tensors import live

import tensorplug as tp
from tensorplug.errors import CompileError, GradientError, NotConnectedError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

A = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]])
W = np.array([[0.5, -1.0], [0.25, 2.0], [-1.5, 0.75]])


def tensor(values: Any) -> tp.Tensor:
    """Return a float64 tensor: second gradients of saturated functions lose many digits."""
    return tp.asarray(values, dtype=tp.float64)


own = tp.custom_grad(lambda x: (x * x, lambda dy: dy * 7.0 * tp.sin(x)))


def _product(x: Any, w: Any) -> Any:
    return tp.sum(tp.tanh(x @ w) ** 2)


FUNCTIONS: dict[str, Any] = {
    "product": _product,
    "custom": lambda x, w: tp.sum(own(x) @ w),
    "stopped": lambda x, w: tp.sum(tp.stop_gradient(tp.exp(x)) * x**3) + tp.sum(w * w),
    "checkpoint": lambda x, w: tp.sum(tp.checkpoint(lambda x: tp.sin(x @ w) * 2)(x)),
    "multiple outputs": lambda x, w: tp.sum(tp.linalg.qr(x @ w)[0] * w[:2]),
    "inner gradient": lambda x, w: tp.sum(tp.grad(_product)(x, w) * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_inside(name):
    f = tp.value_and_grad(FUNCTIONS[name], (0, 1))
    compiled = tp.compile(f)
    for shift in (0.0, 0.25):
        x, w = tensor(A + shift), tensor(W)
        agree(compiled(x, w), f(x, w), rtol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_through(name):
    counted = Counted(FUNCTIONS[name])
    compiled = tp.compile(counted)
    for shift in (0.0, 0.25, 0.5):
        x, w = tensor(A + shift), tensor(W)
        agree(
            tp.value_and_grad(lambda x, w: compiled(x, w) * 2, (0, 1))(x, w),
            tp.value_and_grad(lambda x, w: FUNCTIONS[name](x, w) * 2, (0, 1))(x, w),
            rtol=1e-5,
        )
    assert counted.calls == 2  # for the program, and for both of the gradient


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_order(name):
    f = FUNCTIONS[name]

    def second(f):
        return lambda x, w: tp.sum(tp.sin(tp.grad(f)(x, w)))

    x, w = tensor(A), tensor(W)
    through = tp.compile(f)
    expected = tp.grad(second(f))(x, w)
    agree(tp.grad(second(through))(x, w), expected, rtol=1e-5)
    agree(tp.compile(tp.grad(second(f)))(x, w), expected, rtol=1e-5)
    agree(tp.compile(tp.grad(second(through)))(x, w), expected, rtol=1e-5)


def test_one_gradient_of_two():
    compiled = tp.compile(_product)
    x, w = tensor(A), tensor(W)
    agree(tp.grad(lambda w: compiled(x, w))(w), tp.grad(lambda w: _product(x, w))(w))
    agree(tp.grad(compiled)(x, w), tp.grad(_product)(x, w))


def test_several_results_and_a_chain():
    def f(x):
        return {"sin": tp.sin(x), "count": tp.argmax(x), "both": (tp.cos(x), x * 2)}

    def loss(f):
        def of(x):
            y = f(x * 1.5)
            return tp.sum(y["sin"] * y["both"][1]) + tp.sum(f(y["sin"])["both"][0])

        return of

    agree(tp.value_and_grad(loss(tp.compile(f)))(tensor(A)), tp.value_and_grad(loss(f))(tensor(A)))


def test_vjp_and_jacobian():
    def f(x):
        return tp.sin(x) * tp.sum(x), x**2

    y, vjp = tp.vjp(f, tensor(A))
    z, vjp2 = tp.vjp(tp.compile(f), tensor(A))
    agree(z, y)
    for factor in (1.0, 2.0):
        dy = (y[0] * factor, y[1])
        agree(vjp2(dy), vjp(dy))
        agree(tp.compile(vjp2)(dy), vjp(dy))
    agree(tp.jacobian(tp.compile(lambda x: tp.sin(x) * x[0]))(tensor(A[0])),
          tp.jacobian(lambda x: tp.sin(x) * x[0])(tensor(A[0])))  # fmt: skip


def test_variables_outside():
    w = tp.Variable(tensor(W))
    compiled = tp.compile(lambda x: _product(x, w))
    x = tensor(A)
    for _ in range(2):
        ours = tp.variable_grads(lambda: compiled(x), [w])
        agree(ours, tp.variable_grads(lambda: _product(x, w), [w]))
        w.assign(w * 0.5)


def test_assignments_beside_gradients():
    w, steps = tp.Variable(tensor(W)), tp.Variable(tensor(0.0), trainable=False)

    @tp.compile
    def loss(x):
        steps.assign(steps + 1)
        return _product(x, w) * steps

    for turn in (1, 2):
        value, grads = tp.variable_grads(lambda: loss(tensor(A)), [w])
        expected = tp.variable_grads(lambda: _product(tensor(A), w), [w])
        agree((value, grads[w.name]), (expected.value * turn, expected.grads[w.name] * turn))
        assert float(steps) == turn
    with pytest.raises(GradientError, match="Compile the function that computes both"):
        tp.grad(lambda x: tp.sum(tp.grad(loss)(x)))(tensor(A))


def test_generators_beside_gradients():
    rng, other = tp.random.Generator(1), tp.random.Generator(1)

    def f(rng):
        return lambda x: tp.sum(rng.normal(x.shape) * x**2)

    compiled = tp.compile(f(rng))
    for _ in range(3):
        agree(tp.grad(compiled)(tensor(A)), tp.grad(f(other))(tensor(A)))


def test_no_path_is_an_error():
    compiled = tp.compile(lambda x, w: tp.sum(x * tp.stop_gradient(w)))
    with pytest.raises(NotConnectedError):
        tp.grad(compiled, 1)(tensor(A), tensor(A))
    result = tp.grad(compiled, (0, 1), unconnected="zeros")(tensor(A), tensor(A))
    agree(result, (tensor(A), tensor(A * 0)))


def test_a_captured_tensor_that_is_differentiated_is_refused():
    def f(w):
        return tp.compile(lambda x: tp.sum(x * w))(tensor(A))  # HERE

    with pytest.raises(CompileError, match=r"(?s)being differentiated.*pass it.*# HERE"):
        tp.grad(f)(tensor(A))
    with pytest.raises(CompileError, match="being differentiated"):
        tp.grad(lambda w: tp.compile(lambda x: (tp.sum(x), w))(tensor(A))[0])(tensor(A))
    agree(tp.grad(lambda w: tp.compile(lambda x, w: tp.sum(x * w))(tensor(A), w))(tensor(A)),
          tensor(A))  # fmt: skip


def test_the_backward_program_keeps_what_it_needs_only():
    compiled = tp.compile(lambda x: tp.sum(tp.exp(tp.sin(x)) + tp.cos(x) * 3))
    tp.grad(compiled)(tensor(A))
    (special,) = compiled._known.values()
    (derivative,) = special.derivatives.values()
    forward, backward = derivative.forward.program, derivative.backward.program
    assert not {"Sum"} & set(kernels(backward))
    assert kernels(forward).count("Exp") == 1
    assert "Exp" not in kernels(backward)  # its result is kept
    assert len(forward.wanted) == 1 + 3  # the result; sin, cos, and e**sin
    assert not set(forward.inputs) & set(forward.wanted)


def test_the_tape_is_freed():
    compiled = tp.compile(_product)
    x, w = tensor(A), tensor(W)
    tp.grad(compiled, (0, 1))(x, w)
    before = live()
    for _ in range(3):
        tp.grad(compiled, (0, 1))(x, w)
    assert live() == before
