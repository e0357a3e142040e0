"""Tensors that outlive the call of a transformed function, in which alone they have a meaning."""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Any

import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 3


def vmapped(f: Callable[[Any], Any]) -> Any:
    """Call ``f`` with each element of the vector 1, 2, 3."""
    return tp.vmap(f)(tp.asarray([1.0, 2.0, 3.0]))


def pushed(f: Callable[[Any], Any]) -> Any:
    """Return the tangent of ``f`` at 2."""
    return tp.jvp(f, (tp.asarray(2.0),), (tp.asarray(1.0),))[1]


CALLS = {"vmap": vmapped, "jvp": pushed}


def _keep(kept: list[Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        kept.append(x * 2)
        return x

    return f


def _raise_after(kept: list[Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        kept.append(x * 2)
        raise LookupError

    return f


def _from_generator(kept: list[Any]) -> Callable[[Any], Any]:
    def tensors(x: Any) -> Any:
        yield x
        yield x * 2

    def f(x: Any) -> Any:
        source = tensors(x)
        result = next(source)
        kept.append(source)
        return result

    return f


def _assigned(kept: list[Any]) -> Callable[[Any], Any]:
    held = tp.zeros(())
    kept.append(held)

    def f(x: Any) -> Any:
        held[()] = x * 2
        return x

    return f


LEAKS = {
    "a list": _keep,
    "an exception": _raise_after,
    "a generator": _from_generator,
    "an assignment": _assigned,
}


def _take(kept: Any) -> Any:
    return kept if isinstance(kept, tp.Tensor) else next(kept)


@tp.custom_grad
def _own(x: Any, y: Any) -> Any:
    return x * y, lambda dy: (dy * y, dy * x)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "one input": lambda x, leaked: tp.sin(leaked) * x,
    "the first input": lambda x, leaked: leaked * x,
    "the second input": lambda x, leaked: x - leaked,
    "with a constant": lambda x, leaked: x + leaked * 2.0,
    "a list of inputs": lambda x, leaked: tp.sum(tp.stack([x, leaked])),
    "the result": lambda x, leaked: (x, leaked)[1],
    "a condition": lambda x, leaked: tp.where(leaked > 0, x, x * 2),
    "an assignment": lambda x, leaked: _set(tp.zeros(2), leaked)[0] + x,
    "a loop": lambda x, leaked: tp.fori_loop(0, 3, lambda _, y: y * x, leaked),
    "a captured loop": lambda x, leaked: tp.fori_loop(0, 3, lambda _, y: y * leaked, x),
    "a gradient": lambda x, leaked: tp.grad(lambda y: y * leaked)(x),
    "a gradient at it": lambda x, leaked: tp.grad(lambda y: y * x)(leaked),
    "a tangent": lambda x, leaked: tp.jvp(tp.sin, (x,), (leaked,))[1],
    "vmap inside": lambda x, leaked: tp.sum(tp.vmap(lambda y: y * x)(tp.stack([leaked, leaked]))),
    "a checkpoint": lambda x, leaked: tp.checkpoint(lambda y: y * leaked)(x),
    "a gradient of its own": _own,
    "stop_gradient": lambda x, leaked: tp.stop_gradient(leaked) * x,
}


def _set(tensor: Any, value: Any) -> Any:
    tensor[0] = value
    return tensor


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_no_later_call_of_the_same_size_can_use_it(name: str, use: str, compiled: bool) -> None:
    call = CALLS[name]
    kept: list[Any] = []
    call(_keep(kept))

    def again() -> Any:
        return call(lambda x: USES[use](x, kept[0]))

    fresh = call(lambda x: USES[use](x, x * 2))  # the use itself is right, and has its plans
    assert fresh.dtype == "float32"
    with pytest.raises((ArgumentError, CompileError), match=r"is used after|another traced"):
        (tp.compile(again) if compiled else again)()
    again_fresh = call(lambda x: USES[use](x, x * 2))
    expect(again_fresh, "float32", fresh.shape, fresh.numpy())


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("name", CALLS)
def test_it_does_not_matter_how_it_got_out(name: str, leak: str) -> None:
    call = CALLS[name]
    kept: list[Any] = []
    with contextlib.suppress(LookupError):
        call(LEAKS[leak](kept))
    with pytest.raises(ArgumentError, match=f"{name}: a tensor of a call of the function is used"):
        call(lambda x: x * _take(kept[0]))


@pytest.mark.parametrize("name", CALLS)
def test_calls_beside_each_other_in_an_outer_one(name: str) -> None:
    call = CALLS[name]

    def outer(x: Any) -> Any:
        kept: list[Any] = []
        call(lambda y: _keep(kept)(y * x))
        return tp.sum(call(lambda y: y * kept[0]))

    with pytest.raises(ArgumentError, match="is used after that call"):
        call(outer)


def test_a_captured_tensor_of_the_outer_call_is_none_that_leaked() -> None:
    """The inner calls are of one size, and take turns."""
    a, b = tp.asarray([1.0, 2.0, 3.0]), tp.asarray([4.0, 5.0, 6.0])
    result = tp.vmap(lambda x: tp.vmap(lambda y: x * y)(b) + tp.vmap(lambda y: x - y)(b))(a)
    expect(result, "float32", (3, 3), [[x * y + x - y for y in (4, 5, 6)] for x in (1, 2, 3)])


def test_a_captured_tensor_in_a_backward_pass_after_the_call() -> None:
    x = tp.asarray([1.0, 2.0, 3.0])

    def loss(x: Any) -> Any:
        def f(row: Any) -> Any:
            twice = row * 2
            return tp.checkpoint(lambda y: y * y * tp.stop_gradient(twice))(row)

        return tp.sum(tp.vmap(f)(x))

    expect(tp.grad(loss)(x), "float32", (3,), [4.0, 16.0, 36.0])  # 2x * 2x


def test_reading_it_in_a_later_call() -> None:
    kept: list[Any] = []
    pushed(_keep(kept))
    with pytest.raises(ArgumentError, match="is used after that call"):
        pushed(lambda x: x * float(kept[0]))


def test_assigning_it_to_a_variable_in_a_later_call() -> None:
    kept: list[Any] = []
    vmapped(_keep(kept))
    v = tp.Variable(1.0)
    with pytest.raises(ArgumentError, match="is used after that call"):
        vmapped(lambda x: v.assign(kept[0]) or x)


# Constants keep their nodes on tapes outside ----------------------------------------------

WRAPPED = {
    "vmap": lambda f: tp.sum(vmapped(f)),
    "jvp": pushed,
    "vmap(jvp)": lambda f: tp.sum(vmapped(lambda x: tp.jvp(f, (x,), (x * 0 + 1,))[1])),
    "jvp(vmap)": lambda f: pushed(lambda x: tp.sum(tp.vmap(f)(tp.stack([x, x])))),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_constants_are_differentiated_outside(name: str) -> None:
    """The same calls run before without a tape, so that their plans are known."""
    wrap, w = WRAPPED[name], tp.asarray(3.0)

    def loss(w: Any) -> Any:
        return wrap(lambda x: tp.sin(x * w) * w + x * 2.0)

    for _ in range(3):
        plain = loss(w)
    _, pull = tp.vjp(loss, w)
    step = 1e-2
    expected = (loss(w + step) - loss(w - step)).item() / (2 * step)
    for actual in (tp.grad(loss)(w), pull(tp.ones(()))[0], tp.grad(loss)(w)):
        assert actual.item() == pytest.approx(expected, rel=2e-3)
    assert loss(w).item() == plain.item()


# Assignments to captured tensors ------------------------------------------------------------


ASSIGNMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "a constant": lambda held, _: _set(held, 1.0),
    "its own elements": lambda held, _: _set(held, held[0] + 1),
    "an argument": _set,
    "in place": lambda held, _: held.__iadd__(1),
}


@pytest.mark.parametrize("how", ASSIGNMENTS)
@pytest.mark.parametrize("inside", ["compile", "vmap", "jvp", "a loop"])
def test_a_compiled_function_does_not_change_a_captured_tensor(how: str, inside: str) -> None:
    held = tp.zeros(2)

    def f(x: Any) -> Any:
        ASSIGNMENTS[how](held, x)
        return x * held[0]

    wrapped = {
        "compile": f,
        "vmap": lambda x: tp.vmap(f)(tp.stack([x, x])),
        "jvp": lambda x: tp.jvp(f, (x,), (x,)),
        "a loop": lambda x: tp.fori_loop(0, 2, lambda _, y: f(y), x),
    }[inside]
    for _ in range(2):
        with pytest.raises(
            CompileError, match=r"assigns to a tensor \(float32\[2\]\) from outside"
        ):
            tp.compile(wrapped)(tp.asarray(2.0))
        expect(held, "float32", (2,), [0, 0])


@pytest.mark.parametrize("how", ASSIGNMENTS)
@pytest.mark.parametrize(
    "make",
    [
        lambda _: tp.zeros(2),
        lambda _: tp.asarray([0.0, 0.0]),
        copy.copy,
        lambda held: copy.deepcopy({"w": held})["w"],
        lambda held: held * 1,
    ],
    ids=["zeros", "asarray", "copy", "deepcopy", "result"],
)
def test_a_compiled_function_changes_what_it_makes(how: str, make: Any) -> None:
    held = tp.zeros(2)

    def f(x: Any) -> Any:
        own = make(held)
        ASSIGNMENTS[how](own, x)
        return x * own

    expected = f(tp.asarray(2.0))
    compiled = tp.compile(f)
    for _ in range(2):
        expect(compiled(tp.asarray(2.0)), "float32", (2,), expected.numpy())
    expect(held, "float32", (2,), [0, 0])
