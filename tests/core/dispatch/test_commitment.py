"""Committed tensors: calls run where the program placed their inputs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.tensors import same
from tests.core.support.valid_calls import CALLS as VALID
from tests.core.support.valid_calls import FUNCTIONS

import tensorplug as tp
from tensorplug.errors import DeviceMismatchError
from tensorplug.tensors import tree
from tensorplug.testing import isolated_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug.engine.engine import Engine

X = np.array([1.0, 2.0, 3.0], np.float32)


@pytest.fixture(autouse=True)
def engine() -> Iterator[Engine]:
    """Yield an engine on which cpu is active. The buffers of "cpu" and "minimal" differ."""
    with isolated_engine() as made:
        tp.set_backend("cpu")
        yield made


@pytest.fixture
def twin(engine: Engine) -> Iterator[str]:  # in which it is registered
    """Yield the name of a second backend, with the kernels of cpu."""

    class Twin(type(tp.find_backend("cpu"))):  # type: ignore[misc]  # a class of that moment
        name = "twin"

    tp.register_backend("twin", Twin)
    with tp.copy_registered_kernels("cpu", "twin"):
        yield "twin"


def there() -> tp.Tensor:
    return tp.asarray(X, device="minimal")


def free() -> tp.Tensor:
    return tp.asarray(X)


def _assigned(x: tp.Tensor) -> tp.Tensor:
    x[0] = 9.0
    return x


def _compiled_with_variable(variable: tp.Variable) -> Callable[..., Any]:
    return tp.compile(lambda a: a * variable)


@tp.custom_grad
def _own(x: tp.Tensor) -> tuple[tp.Tensor, Callable[[tp.Tensor], tp.Tensor]]:
    return x * 2, lambda dy: dy * 5


CALLS: dict[str, tuple[Callable[[tp.Tensor], Any], np.ndarray]] = {
    "scalar": (lambda x: x + 1, X + 1),
    "number first": (lambda x: np.float32(2) * x, 2 * X),
    "operator with a free tensor": (lambda x: free() * x, X * X),
    "list": (lambda x: tp.concat([free(), x]), np.concatenate([X, X])),
    "promotion": (lambda x: x + tp.asarray([1, 2, 3]), X + np.array([1, 2, 3])),
    "composite": (tp.nn.softmax, np.exp(X) / np.exp(X).sum()),
    "like": (tp.zeros_like, np.zeros_like(X)),
    "full like": (lambda x: tp.full_like(x, 7.0), np.full_like(X, 7)),
    "copy": (lambda x: tp.asarray(x, copy=True), X),
    "cast": (lambda x: x.astype("int32"), X.astype(np.int32)),
    "index": (lambda x: x[1:], X[1:]),
    "gathered": (lambda x: x[tp.asarray([2, 0])], X[[2, 0]]),
    "list of outputs": (lambda x: tp.unstack(x)[2], X[2]),
    "string": (lambda x: x[tp.argmax(x)], X[2]),
    "variable": (lambda x: tp.Variable(x) * 2, X * 2),
    "assignment": (_assigned, [9, 2, 3]),
    "compiled": (tp.compile(lambda a: tp.sum(a * 2) + 1), np.float32(13)),
    "compiled, captured": (lambda x: tp.compile(lambda a: a * x)(free()), X * X),
    "compiled, a captured variable": (
        lambda x: _compiled_with_variable(tp.Variable(x))(free()),
        X * X,
    ),
    "compiled, moved": (lambda _: tp.compile(lambda a: a.to("minimal") * 2)(free()), 2 * X),
    "compiled, returned": (lambda x: tp.compile(lambda _: x)(free()), X),
    "compiled loop": (
        lambda x: tp.compile(lambda a: tp.scan(lambda c, s: (c + s * x[0], c), 0.0, a)[0])(free()),
        np.float32(6),
    ),
    "loop": (lambda x: tp.scan(lambda c, s: (c + s, c), 0.0, x)[0], np.float32(6)),
    "condition": (lambda x: tp.cond(x[0] > 0, lambda a: a * 2, lambda a: a, x), X * 2),
    "gradient": (tp.grad(lambda x: tp.sum(x**3)), 3 * X**2),
    "gradient of compiled": (tp.grad(tp.compile(lambda x: tp.sum(x**3))), 3 * X**2),
    "compiled gradient": (tp.compile(tp.grad(lambda a: tp.sum(a**3))), 3 * X**2),
    "gradient of several outputs": (tp.grad(lambda x: tp.unstack(x)[1] ** 2), [0, 4, 0]),
    "gradient of a free tensor": (
        lambda x: tp.grad(lambda w: tp.sum(w * x * x))(free()),
        X**2,
    ),
    "second derivative": (tp.hessian(lambda x: tp.sum(x**3)), np.diag(6 * X)),
    "forward mode": (lambda x: tp.jvp(lambda a: a**2, (x,), (tp.ones(3),))[1], 2 * X),
    "forward mode, captured": (
        lambda x: tp.jvp(lambda a: a * x, (free(),), (tp.ones(3),))[1],
        X,
    ),
    "linearized": (lambda x: tp.linearize(lambda a: a**3, x)[1](tp.ones(3)), 3 * X**2),
    "mapped": (tp.vmap(lambda a: a * 2), X * 2),
    "mapped, captured": (lambda x: tp.vmap(lambda a: a * x[1])(free()), X * 2),
    "mapped, moved": (lambda _: tp.vmap(lambda a: a.to("minimal") * 2)(free()), X * 2),
    "mapped gradient": (tp.vmap(tp.grad(lambda a: a**3)), 3 * X**2),
    "mapped, compiled": (tp.compile(tp.vmap(lambda a: a * 2)), X * 2),
    "checkpoint": (tp.grad(tp.checkpoint(lambda x: tp.sum(tp.exp(x)))), np.exp(X)),
    "custom gradient": (tp.grad(lambda x: tp.sum(_own(x))), 5 * np.ones(3)),
    "NumPy's function": (np.square, X**2),
    "kernel by name": (lambda x: tp.run_kernel("Square", {"x": x}, {}), X**2),
    "DLPack": (tp.from_dlpack, X),
    "moved again": (lambda x: x.to("cpu").to("minimal"), X),
}


@pytest.mark.parametrize("current", ["cpu", "minimal"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_follows_its_committed_input(name: str, current: str) -> None:
    call, expected = CALLS[name]
    x = there()
    with tp.use_backend(current):
        for _ in range(2):  # by the slow path, and by the fast one
            result = call(x)
            assert (result.device, result.is_committed) == ("minimal", True)
            same(result, expected, dtype=tp.int32 if name == "cast" else tp.float32)


FREE: dict[str, Callable[[], tp.Tensor]] = {
    "array": free,
    "creation": lambda: tp.ones(3),
    "computed": lambda: free() * 2,
    "like": lambda: tp.zeros_like(free()),
    "compiled": lambda: tp.compile(lambda a: a * 2)(free()),
    "gradient": lambda: tp.grad(lambda a: tp.sum(a * a))(free()),
    "mapped": lambda: tp.vmap(lambda a: a * 2)(free()),
}


@pytest.mark.parametrize("name", FREE)
def test_what_nobody_placed_follows_the_current_backend(name: str) -> None:
    x = FREE[name]()
    assert (x.device, x.is_committed) == ("cpu", False)
    tp.set_backend("minimal")
    assert (x + 1).device == "minimal"
    assert not (x + 1).is_committed


def on_cpu() -> tp.Tensor:
    with tp.use_backend("cpu"):
        return free()


PLACED: dict[str, Callable[[], tp.Tensor]] = {
    "asarray": lambda: tp.asarray(X, device="cpu"),
    "asarray of a tensor": lambda: tp.asarray(there(), device="cpu"),
    "asarray of a tensor on the device": lambda: tp.asarray(on_cpu(), device="cpu"),
    "asarray of a variable": lambda: tp.asarray(tp.Variable(on_cpu()), device="cpu"),
    "zeros": lambda: tp.zeros(3, device="cpu"),
    "arange": lambda: tp.arange(3, device="cpu"),
    "eye": lambda: tp.eye(3, device="cpu"),
    "like": lambda: tp.ones_like(there(), device="cpu"),
    "cast": lambda: tp.astype(there(), tp.float64, device="cpu"),
    "to": lambda: free().to("cpu"),
    "to_device": lambda: there().to_device("cpu"),
    "from_dlpack": lambda: tp.from_dlpack(X, device="cpu"),
    "buffer": lambda: tp.plugin.tensor_from_buffer(X.copy(), "cpu"),
}


@pytest.mark.parametrize("name", PLACED)
def test_naming_the_device_commits(name: str) -> None:
    tp.set_backend("minimal")
    x = PLACED[name]()
    assert (x.device, x.is_committed) == ("cpu", True)
    assert (x + 1).device == "cpu"
    assert x.to("cpu") is x


MIXED: dict[str, Callable[[tp.Tensor, tp.Tensor], Any]] = {
    "Add": lambda a, b: a + b,
    "Concat": lambda a, b: tp.concat([a, b]),
    "compile": tp.compile(lambda x, _: x),
    "compiled function": lambda a, b: tp.compile(lambda x: x * b)(a),
    "vmap": tp.vmap(lambda x, _: x),
    "jvp": lambda a, b: tp.jvp(lambda x: x, (a,), (b,)),
}


@pytest.mark.parametrize("name", MIXED)
def test_two_devices_in_one_call_are_an_error(name: str) -> None:
    with pytest.raises(DeviceMismatchError) as caught:
        MIXED[name](there(), free().to("cpu"))
    message = str(caught.value)
    assert name in message
    assert "'minimal'" in message
    assert "'cpu'" in message
    assert ".to" in message


def test_gradients_return_to_where_a_tensor_was_before_it_moved() -> None:
    x = free().to("cpu")

    def f(x: tp.Tensor) -> tp.Tensor:
        return tp.sum((x.to("minimal") ** 2).to("cpu")) + tp.sum(x * 3)

    gradient = tp.grad(f)(x)
    assert (gradient.device, gradient.is_committed) == ("cpu", True)
    same(gradient, 2 * X + 3)
    same(tp.grad(lambda x: tp.sum(tp.grad(f)(x) ** 2))(x), 4 * (2 * X + 3))
    of_free = tp.grad(lambda x: tp.sum(x.to("minimal") ** 2))(free())
    assert (of_free.device, of_free.is_committed) == ("cpu", False)


def test_cotangents_from_two_devices_are_added() -> None:
    a, b = there(), free().to("cpu")

    def f(x: tp.Tensor) -> tp.Tensor:
        return tp.sum(x * a).to("cpu") + tp.sum(x * b)

    same(tp.grad(f)(free()), 2 * X)


def test_a_compiled_function_follows_a_variable_that_moves() -> None:
    variable = tp.Variable(there())
    f = tp.compile(lambda a: a * variable)
    assert f(free()).device == "minimal"
    variable.assign(tp.asarray(X, device="cpu"))
    moved = f(free())
    assert (moved.device, moved.is_committed) == ("cpu", True)
    same(moved, X * X)


def test_a_kernel_that_falls_back_returns_to_the_committed_device(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    monkeypatch.setattr(engine, "fallback", "allow")
    spec = tp.plugin.KernelSpec("OnlyOnCpu", inputs=("x",), infer=lambda x: x)
    with tp.register_kernel(spec, "cpu", lambda x: x + 1):
        result = tp.run_kernel(spec, {"x": there()}, {})
    assert (result.device, result.is_committed) == ("minimal", True)
    same(result, X + 1)


def test_host_memory_commits_nothing() -> None:
    x = there().to("host")
    assert not x.is_committed
    assert (x + 1).device == "cpu"


def test_a_warm_call_with_committed_inputs_takes_the_fast_path(
    monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    x = there()
    calls = (lambda: x + 1, lambda: x * x, lambda: tp.concat([x, x]))
    for call in calls:
        call()
        call()

    def fail(*_: Any) -> None:
        raise AssertionError("the slow path")

    monkeypatch.setattr(type(engine), "run", fail)
    for call in calls:
        assert call().device == "minimal"


def test_autocast_of_committed_tensors(twin: str) -> None:
    with tp.autocast("float16"):
        x = tp.asarray(np.eye(3, dtype=np.float32), device=twin)
        for _ in range(2):
            result = x @ x
            assert (result.device, result.dtype) == (twin, tp.float16)


@pytest.mark.parametrize("observed", [False, True])
def test_a_removed_backend_frees_what_was_committed(observed: bool) -> None:
    x = there()
    with tp.profile() if observed else nullcontext():
        y = x + 1
    tp.remove_backend("minimal")
    assert (y.device, y.is_committed) == ("host", False)
    assert (y + 1).device == "cpu"


def test_every_public_function_stays_on_the_device(twin: str) -> None:
    wrong = []
    for name, (tensors, rest) in VALID.items():
        result = FUNCTIONS[name](*(tp.asarray(x, device=twin) for x in tensors), *rest)
        leaves = [leaf for leaf in tree.flatten(result)[0] if isinstance(leaf, tp.Tensor)]
        if not all(leaf.device == twin and leaf.is_committed for leaf in leaves):
            wrong.append(name)
    assert not wrong
