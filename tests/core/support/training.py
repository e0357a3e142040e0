"""Steps of training a small network in many ways, and a count of the objects left behind."""

from __future__ import annotations

import gc
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.core.support.engines import basic_kernels

import tensorplug as tp
from tensorplug.autodiff.tape import Node
from tensorplug.ops import matrix_products, movement
from tensorplug.ops.elementwise import arithmetic, unary

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(8, 3)).astype(np.float32)


def more_kernels() -> Any:
    """Return what the network needs beside the basic kernels."""
    kernels = basic_kernels()

    @kernels.register(matrix_products.BATCH_MAT_MUL)
    def matmul(a, b, *, transpose_a, transpose_b):
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        b = np.swapaxes(b, -1, -2) if transpose_b else b
        return np.matmul(a, b)

    @kernels.register(unary.TANH)
    def tanh(x):
        return np.asarray(np.tanh(x))

    @kernels.register(arithmetic.SUB)
    def subtract(a, b):
        return np.asarray(np.subtract(a, b))

    @kernels.register(arithmetic.REAL_DIV)
    def divide(a, b):
        return np.asarray(np.divide(a, b))

    @kernels.register(movement.TRANSPOSE)
    def transpose(x, *, perm):
        return np.transpose(x, perm)

    return kernels


def parameters() -> dict[str, Any]:
    random = np.random.default_rng(3)
    shapes = {"w1": (4, 6), "b1": (6,), "w2": (6, 3), "b2": (3,)}
    made = {name: random.normal(size=shape) * 0.3 for name, shape in shapes.items()}
    return {name: tp.asarray(item.astype(np.float32)) for name, item in made.items()}


def loss(p: Any, activation: Any = None) -> tp.Tensor:
    hidden = (activation or tp.tanh)(tp.asarray(X) @ p["w1"] + p["b1"])
    error = hidden @ p["w2"] + p["b2"] - tp.asarray(Y)
    return tp.mean(error * error)


def updated(p: Any, gradient: Any) -> Any:
    return tp.tree_map(lambda item, slope: item - 0.1 * slope, p, gradient)


# Each takes the parameters and the number of the step, and returns new parameters -----------


def plain(p: Any, _number: int) -> Any:
    value, gradient = tp.value_and_grad(loss)(p)
    assert 0 < value.item() < 10
    return updated(p, gradient)


def tidied(p: Any, number: int) -> Any:
    return tp.tidy(plain, p, number)


def tidied_as_a_block(p: Any, _number: int) -> Any:
    with tp.tidy():
        gradient = tp.tidy(tp.grad(lambda p: tp.tidy(loss, p)), p)
        new = updated(p, gradient)
        for item in new.values():
            tp.keep(item)
    return new


@tp.custom_grad
def own_tanh(x: Any) -> Any:
    y = tp.tanh(x)

    def backward(dy: Any) -> Any:
        return dy * (1.0 - y * y)

    return y, backward


def with_a_custom_gradient(p: Any, _number: int) -> Any:
    return updated(p, tp.grad(lambda p: loss(p, own_tanh))(p))


def with_second_order(p: Any, _number: int) -> Any:
    """Penalize the size of the gradient, so that gradients of gradients are taken."""

    def penalized(p: Any) -> tp.Tensor:
        slopes = tp.grad(lambda p: loss(p, own_tanh))(p)
        return loss(p) + 0.01 * sum(tp.sum(slope * slope) for slope in slopes.values())

    return updated(p, tp.grad(penalized)(p))


def with_a_checkpoint(p: Any, _number: int) -> Any:
    return updated(p, tp.grad(tp.checkpoint(loss))(p))


def with_pulls(p: Any, _number: int) -> Any:
    value, vjp = tp.vjp(loss, p)
    vjp(tp.ones_like(value))
    value.dispose()
    return updated(p, vjp(1.0)[0])


def forward_mode(p: Any, _number: int) -> Any:
    tp.jvp(loss, (p,), (tp.tree_map(tp.ones_like, p),))
    return p


def with_failures(p: Any, number: int) -> Any:
    """Every tenth step raises: in the forward pass, in a kernel, or in the backward pass."""
    if number % 10 == 0:
        failing = [_fails_forward, _fails_in_a_kernel, _fails_backward][number // 10 % 3]
        try:
            tp.tidy(tp.grad(lambda p: loss({"w1": failing(p["w1"]) * 1.0, **p}, failing)), p)
        except ZeroDivisionError as error:
            assert "stuck" in str(error)  # noqa: PT017  # the traceback must go before the count
            return p
        raise AssertionError("nothing was raised")
    return plain(p, number)


def _raise(*_: Any) -> Any:
    raise ZeroDivisionError("stuck")


def _fails_forward(x: Any) -> Any:
    return _raise(tp.tanh(x))


def _fails_in_a_kernel(x: Any) -> Any:
    with tp.register_kernel("Exp", tp.get_backend(), _raise_in_kernel, override=True):
        return tp.exp(tp.tanh(x))


def _raise_in_kernel(x: Any) -> Any:
    return _raise(x)


def _fails_backward(x: Any) -> Any:
    return tp.custom_grad(lambda x: (tp.tanh(x), _raise))(x)


def with_variables(p: Any, _number: int) -> Any:
    variables = {name: tp.Variable(item) for name, item in p.items()}
    _, slopes = tp.variable_grads(lambda: loss(variables), list(variables.values()))
    for variable in variables.values():
        variable.assign(variable - 0.1 * slopes[variable.name])
    return {name: variable.read() for name, variable in variables.items()}


STEPS = [
    plain,
    tidied,
    tidied_as_a_block,
    with_a_custom_gradient,
    with_second_order,
    with_a_checkpoint,
    with_pulls,
    forward_mode,
    with_failures,
    with_variables,
]


def census() -> Counter[str]:
    """Return how many objects of ours there are by type, tape nodes together, and memory()."""
    result: Counter[str] = Counter()
    for get_object_ in gc.get_objects():
        kind = type(get_object_)
        if issubclass(kind, Node):
            result["tape nodes"] += 1
        elif _ours(kind):
            result[kind.__qualname__] += 1
    for name, held in tp.memory().items():
        for figure in ("tensors", "buffers", "bytes", "taped"):
            result[f"{name} {figure}"] = getattr(held, figure)
        for figure, value in held.backend.items():
            result[f"{name} {figure}"] = value
    return result


def _ours(kind: type) -> bool:
    module = kind.__module__
    return isinstance(module, str) and module.startswith("tensorplug")


def check_flat(
    step: Any, steps: int = 211, warm: int = 31, *, forget: Callable[[], None] | None = None
) -> None:
    """Train without the garbage collector; nothing of ours may grow or be in a cycle.

    What a step does now and then, it has last done equally long before the end of ``warm`` steps
    and before that of ``steps``. ``forget``: empties caches of a bounded size that are not full.
    """
    forget = forget or (lambda: None)
    p = parameters()
    number = 0
    gc.collect()
    gc.disable()
    try:
        while number < warm:
            p = step(p, number)
            number += 1
        tp.synchronize()  # copies under way to a device are held until they are done
        forget()
        before = census()
        while number < steps:
            p = step(p, number)
            number += 1
        tp.synchronize()
        forget()
        after = census()
        assert after == before, f"grown: {after - before}, shrunk: {before - after}"
        assert after["tape nodes"] == 0
        assert own_garbage() == []
    finally:
        gc.enable()


def own_garbage() -> list[str]:
    """Return the types of unreachable objects of ours, which only cycles keep."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        kinds = [type(left) for left in gc.garbage]
        return sorted(kind.__qualname__ for kind in kinds if _ours(kind))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()
