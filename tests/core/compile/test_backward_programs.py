"""Backward passes that occur again run as programs, with the same results to the last bit."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.gradient_points import POINTS, as_function

import tensorplug as tp
from tensorplug.compile.backward import programs as backward
from tensorplug.contract import inference
from tensorplug.contract.spec import KernelSpec
from tensorplug.dispatch.calls import dispatch
from tensorplug.engine.current import current_engine
from tensorplug.tensors.tree import flatten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.core.support.samples import Case

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.linspace(0.5, 2.0, 6)


@pytest.fixture(autouse=True)
def no_programs() -> Iterator[None]:
    programs().clear()
    yield
    programs().clear()


def programs() -> dict[Any, Any]:
    return current_engine().devices.active.programs


def count() -> int:
    """Return how many kinds of tapes have programs."""
    return sum(isinstance(known, tuple) for known in programs().values())


def pull(case: Case) -> list[bytes]:
    """Return the gradients of a case's outputs, each with weights, as bytes."""
    f, args = as_function(case)
    y, vjp = tp.vjp(f, *args, unconnected="zeros")
    weights = tp.tree_map(
        lambda out: tp.asarray(np.cos(np.arange(out.size)).reshape(out.shape), dtype=out.dtype), y
    )
    return [gradient.numpy().tobytes() for gradient in flatten(vjp(weights))[0]]


@pytest.mark.parametrize("case", POINTS, ids=str)
def test_all_rules_give_the_same_bits(case: Case) -> None:
    first, *others = (pull(case) for _ in range(3))
    assert others == [first] * 2


def loss(x: Any, y: Any) -> Any:
    return tp.sum(tp.tanh(x * y) - y / x)


def right(x: Any, y: Any) -> tuple[Any, Any]:
    slope = 1 - np.tanh(x * y) ** 2
    return slope * y + y / x**2, slope * x - 1 / x


def test_the_second_pass_of_one_kind_is_a_program() -> None:
    f = tp.grad(loss, argnums=(0, 1))
    for turn in range(4):
        x, y = X + turn, X * 2 - turn / 8
        result = f(tp.asarray(x), tp.asarray(y))
        assert (len(programs()), count()) == (1, int(turn > 0))
        for gradient, expected in zip(result, right(x, y), strict=True):
            np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-13)
    f(tp.asarray(X[:3]), tp.asarray(X[:3]))  # another type
    tp.grad(loss)(tp.asarray(X), tp.asarray(X))  # another set of leaves
    assert (len(programs()), count()) == (3, 1)


def test_large_tensors_make_the_first_pass_a_program() -> None:
    """A backend may then group kernels, so results must not depend on when a pass came."""
    large = tp.asarray(np.linspace(0.5, 2.0, backward.LARGE))
    results = [tp.grad(loss, argnums=(0, 1))(large, large) for _ in range(2)]
    assert count() == 1
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_forgotten_when_the_registry_changes() -> None:
    f = tp.grad(lambda x: tp.sum(tp.exp(-x)))
    x = tp.asarray(X)
    for _ in range(3):
        f(x)
    assert count() == 1
    with tp.register_kernel("Neg", "cpu", lambda x: np.negative(x) * 3, override=True):
        assert count() == 0
        for _ in range(3):
            np.testing.assert_allclose(f(x).numpy(), -3 * np.exp(-3 * X), rtol=1e-13)
    np.testing.assert_allclose(f(x).numpy(), -np.exp(-X), rtol=1e-13)


OPAQUE = KernelSpec("Opaque", ("x",), inference.same)


def test_rules_that_read_data_run_as_before() -> None:
    calls = []

    def rule(dy: Any, x: Any) -> Any:
        calls.append(float(tp.sum(x)))
        return dy * calls[-1]

    with (
        tp.register_decomposition(OPAQUE, lambda x: x * 1.0),
        tp.register_gradient(OPAQUE, "x", rule),
    ):
        for turn in range(4):
            gradient = tp.grad(lambda x: tp.sum(dispatch(OPAQUE, x)))(tp.asarray(X + turn))
            np.testing.assert_allclose(gradient.numpy(), np.full(6, (X + turn).sum()), rtol=1e-13)
        assert len(calls) == 4
        assert programs()
        assert not count()


def test_errors_of_rules_are_theirs() -> None:
    def rule(dy: Any) -> Any:
        raise ZeroDivisionError("mine")

    with (
        tp.register_decomposition(OPAQUE, lambda x: x * 1.0),
        tp.register_gradient(OPAQUE, "x", rule),
    ):
        for _ in range(3):
            with pytest.raises(ZeroDivisionError, match="mine") as caught:
                tp.grad(lambda x: tp.sum(dispatch(OPAQUE, x)))(tp.asarray(X))
            assert caught.value.__notes__ == ["in the gradient of 'Opaque' with respect to 'x'"]


def test_functions_with_gradients_of_their_own_are_called_each_time() -> None:
    calls = []

    @tp.custom_grad
    def doubled(x: Any) -> Any:
        def pull(dy: Any) -> Any:
            calls.append(dy)
            return dy * 2.0

        return x * 2.0, pull

    for _ in range(3):
        tp.grad(lambda x: tp.sum(doubled(x) * x))(tp.asarray(X))
    assert len(calls) == 3
    assert not programs()


def test_second_derivatives_and_observers_see_every_call() -> None:
    f = tp.grad(lambda x: tp.sum(tp.grad(lambda x: tp.sum(x**3.0))(x)))
    for _ in range(3):
        np.testing.assert_allclose(f(tp.asarray(X)).numpy(), 6 * X, rtol=1e-13)
    g = tp.grad(lambda x: tp.sum(tp.sin(x)))
    for _ in range(3):
        g(tp.asarray(X))
    names = [record.name for record in tp.profile(g, tp.asarray(X)).kernels]
    assert "Cos" in names


def test_results_belong_to_the_user() -> None:
    """The gradient of an identity is dy itself, and the tape's memory is the forward pass's."""
    for _ in range(3):
        x = tp.asarray(X)
        dy = tp.asarray(X * 3)
        y, vjp = tp.vjp(lambda x: x + 1.0, x)
        (result,) = vjp(dy)
        result.dispose()
        np.testing.assert_array_equal(dy.numpy(), X * 3)
        (again,) = vjp(dy)
        again[0] = 100.0
        np.testing.assert_array_equal(dy.numpy(), X * 3)
        y.dispose()


def test_scopes_keep_what_they_return() -> None:
    for _ in range(3):
        result = tp.tidy(lambda: tp.grad(loss)(tp.asarray(X), tp.asarray(X)))
        np.testing.assert_allclose(result.numpy(), right(X, X)[0], rtol=1e-13)
    before = tp.memory()
    tp.tidy(lambda: tp.grad(loss)(tp.asarray(X), tp.asarray(X))).dispose()
    assert tp.memory() == before


def test_old_programs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backward, "KEPT", 8)
    for length in range(1, 30):
        for _ in range(2):
            tp.grad(lambda x: tp.sum(x * x))(tp.asarray(np.ones(length)))
        assert len(programs()) <= 8


def test_threads_share_programs() -> None:
    errors: list[BaseException] = []

    def work(salt: int) -> None:
        try:
            for turn in range(40):
                x = X + salt + turn % 3
                for f, slope in ((tp.sin, np.cos), (tp.exp, np.exp)):
                    gradient = tp.grad(lambda x, f=f: tp.sum(f(x)))(tp.asarray(x))
                    np.testing.assert_allclose(gradient.numpy(), slope(x), rtol=1e-13)
        except BaseException as error:  # noqa: BLE001  # to be shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(salt,)) for salt in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


STATE = tp.Variable(tp.asarray([1.0, -2.0, 0.5]))
LARGE = np.linspace(-1.0, 1.0, backward.LARGE, dtype=np.float32)


def two_results(x: Any, y: Any) -> tuple[Any, Any]:
    return tp.tanh(x * y), tp.exp(x) * 2


# Functions to compile, each inside another one that is not.
COMPILED: dict[str, tuple[Any, Any, list[Any]]] = {
    "chain": (loss, lambda f: lambda x, y: f(x, y) * 2 + tp.sum(x), [X, X * 2]),
    "two results": (two_results, lambda f: lambda x, y: tp.sum(f(x, y)[0] * f(x, y)[1]), [X, X]),
    "one of two": (two_results, lambda f: lambda x, y: tp.sum(f(x, y)[1] * y), [X, X]),
    "one after the other": (lambda x: tp.sin(x) * x, lambda f: lambda x: tp.sum(f(f(x))), [X]),
    "twice": (lambda x, y: x * tp.cos(y), lambda f: lambda x: tp.sum(f(x, x)), [X]),
    "a variable": (lambda x: x * STATE, lambda f: lambda x: tp.sum(f(x) ** 2), [X[:3]]),
    "a product": (lambda x: tp.nn.relu(x @ x + 1), lambda f: lambda x: tp.mean(f(x)), [np.eye(4)]),
    "large": (loss, lambda f: lambda x: f(x, x + 2), [LARGE]),
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_functions_are_part_of_the_programs_of_tapes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f, around, arrays = COMPILED[name]
    tensors = [tp.asarray(array) for array in arrays]
    wrt = tuple(range(len(tensors)))
    outer = tp.grad(around(tp.compile(f)), argnums=wrt)
    first, *others = [[x.numpy().tobytes() for x in outer(*tensors)] for _ in range(4)]
    assert others == [first] * 3
    assert count() == 1
    monkeypatch.setattr(backward, "walk", None)  # which each further pass does without
    assert [x.numpy().tobytes() for x in outer(*tensors)] == first
    plain = tp.grad(around(f), argnums=wrt)
    for mine, eager in zip(outer(*tensors), plain(*tensors), strict=True):
        np.testing.assert_allclose(mine.numpy(), eager.numpy(), rtol=2e-5, atol=1e-6)


def test_compiled_functions_of_one_form_keep_their_programs_apart() -> None:
    for factor in (2.0, 3.0, 2.0):
        f = tp.compile(lambda x, factor=factor: tp.sin(x) * factor)
        for _ in range(3):
            slope = tp.grad(lambda x, f=f: tp.sum(f(x)))(tp.asarray(X))
            np.testing.assert_allclose(slope.numpy(), np.cos(X) * factor, rtol=1e-12)


def test_second_derivatives_of_compiled_functions_beside_such_programs() -> None:
    f = tp.compile(lambda x: tp.sin(x) * x)
    for _ in range(3):
        bend = tp.grad(lambda x: tp.sum(tp.grad(lambda x: tp.sum(f(x)))(x)))(tp.asarray(X))
        np.testing.assert_allclose(bend.numpy(), 2 * np.cos(X) - X * np.sin(X), rtol=1e-11)
