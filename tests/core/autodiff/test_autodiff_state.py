"""grad and vjp leave nothing behind: after exceptions, and in memory."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import pytest
from tests.core.support.tensors import live, same, tensor, total

import tensorplug as tp
from tensorplug.autodiff.tape import Node
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, DTypeError, NotConnectedError
from tensorplug.testing import isolated_engine

pytestmark = pytest.mark.usefixtures("on_the_cpu")

# What an exception leaves behind --------------------------------------------------------


def _raise(*_: Any) -> Any:
    raise ZeroDivisionError("on purpose")


def _failing_backward(x: tp.Tensor) -> tp.Tensor:
    return tp.custom_grad(lambda x: (x * 1.0, _raise))(x)


def _failing_again() -> Any:
    """Return a function that fails every second time, which is in the backward pass."""
    calls = itertools.count()
    return tp.checkpoint(lambda x: _raise() if next(calls) % 2 else x * x)


FAILING: dict[str, Any] = {
    "in f": tp.grad(_raise),
    "in f, after some calls": tp.grad(lambda x: _raise(x * x)),
    "in a backward function": tp.grad(total(_failing_backward)),
    "in a rule": tp.grad(total(lambda x: tp.exp(x) * x)),
    "in a nested gradient": tp.grad(total(tp.grad(total(_failing_backward)))),
    "in the second derivative": tp.grad(total(lambda x: tp.grad(total(tp.exp))(x) * x)),
    "in a checkpoint": tp.grad(tp.checkpoint(lambda x: _raise(x * x))),
    "in a checkpoint, again": tp.grad(total(_failing_again())),
    "in a vjp": lambda x: tp.vjp(_failing_backward, x)[1](x),
    "in jvp": lambda x: tp.jvp(lambda x: [x, _failing_backward(x * x)], (x,), (x,)),
    "in jacobian": tp.jacobian(_failing_backward),
    "in hessian": tp.hessian(lambda x: tp.sum(tp.exp(x))),
    "dy does not fit": lambda x: tp.grad(lambda x: x * x)(x, dy=1.0),
    "no tensor": tp.grad(lambda x: [x * x]),
    "not connected": tp.grad(total(lambda x: x * x > 0)),
    "not floating": lambda x: tp.grad(lambda *_: x, (0, 1))(x, 1),
}


@pytest.mark.parametrize("what", FAILING)
def test_after_an_exception_nothing_is_recorded_or_held(what: str) -> None:
    with isolated_engine("cpu"):
        rule = (
            {"Exp": "x"} if what in {"in a rule", "in the second derivative", "in hessian"} else {}
        )
        for kernel, name in rule.items():
            tp.register_gradient(kernel, name, lambda dy: _raise(dy), override=True)  # noqa: PLW0108  # asks for dy
        x = tensor([1.0, 2.0])
        seen: list[weakref.ref[Any]] = []

        def call() -> None:
            twice = x * 2.0  # dies with the call, unless somebody holds it
            seen.append(weakref.ref(twice))
            FAILING[what](twice)

        _type_of_failure(call)  # fills the caches
        gc.collect()
        gc.disable()
        try:
            before, context = (live(), _nodes()), current_context()
            for _ in range(3):
                assert _type_of_failure(call) in EXPECTED.get(what, {ZeroDivisionError})
                assert current_context() is context
            assert (live(), _nodes()) == before
            assert [item() for item in seen] == [None] * 4
        finally:
            gc.enable()
        assert (x * x)._node is None
        same(tp.grad(total(lambda x: x * x))(x), [2, 4])


EXPECTED = {
    "dy does not fit": {ArgumentError},
    "no tensor": {ArgumentError},
    "not connected": {NotConnectedError},
    "not floating": {DTypeError},
}


def _type_of_failure(call: Any) -> type[Exception] | None:
    """Return what was raised, and keep neither it nor its traceback."""
    try:
        call()
    except Exception as error:  # noqa: BLE001  # the test compares
        return type(error)
    return None


def _nodes() -> int:
    return sum(issubclass(type(get_object_), Node) for get_object_ in gc.get_objects())


def test_a_kernel_that_raises_leaves_the_tape_off() -> None:
    with isolated_engine("cpu"):
        tp.register_kernel("Square", "cpu", lambda x: _raise(x), override=True)  # noqa: PLW0108
        with pytest.raises(ZeroDivisionError) as caught:
            tp.grad(lambda x: tp.square(x * 2.0))(tensor(1.0))
        assert "in kernel Square(x=float32[])" in "".join(caught.value.__notes__)
        assert current_context().recording is None
        same(tp.grad(lambda x: x * x)(tensor(3.0)), 6)


# Memory ---------------------------------------------------------------------------------


def test_saved_outputs_make_no_cycle() -> None:
    gc.collect()
    before = live()
    gc.disable()
    try:
        y, vjp = tp.vjp(lambda x: tp.exp(tp.sqrt(tp.exp(x))), tensor([1.0, 2.0]))
        vjp(tensor([1.0, 1.0]))
        del y, vjp
        assert live() <= before + 1  # dispatch may have cached one constant
    finally:
        gc.enable()
