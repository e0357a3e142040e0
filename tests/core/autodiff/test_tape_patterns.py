"""Patterns tell tapes apart exactly as their descriptions do."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.compile.backward import programs as backward
from tensorplug.compile.backward.tapes import Pattern, describe, outline
from tensorplug.engine.current import current_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tensorplug.autodiff.tape import Node
    from tensorplug.dispatch.tensor import Tensor

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture(autouse=True)
def no_programs() -> Iterator[None]:
    device = current_engine().devices.active
    device.programs.clear()
    device.recent.clear()
    yield
    device.programs.clear()
    device.recent.clear()


def shared(x: Any, y: Any) -> Any:
    t, u = tp.tanh(x), tp.tanh(y)
    return t * t + u


def swapped(x: Any, y: Any) -> Any:
    t, u = tp.tanh(y), tp.tanh(x)
    return t * t + u


def crossed(x: Any, y: Any) -> Any:
    t, u = tp.tanh(x), tp.tanh(y)
    return t * u + t


def doubled(x: Any, y: Any) -> Any:
    t, u = tp.tanh(x), tp.tanh(x)
    return t * u + y


def merged(x: Any, y: Any) -> Any:
    t, _ = tp.tanh(x), tp.tanh(x)
    return t * t + y


def other_function(x: Any, y: Any) -> Any:
    t, u = tp.tanh(x), tp.sin(y)
    return t * t + u


def other_constant(x: Any, y: Any) -> Any:
    t, u = tp.tanh(x), tp.tanh(y)
    return t * 3.0 + u


def unused(x: Any, _: Any) -> Any:
    return tp.tanh(tp.tanh(x)) + tp.tanh(x) * 3.0


def halves(x: Any, y: Any) -> Any:
    first, second = tp.split(x, 2)
    return tp.concat([first * second, y[:3]])


def other_halves(x: Any, y: Any) -> Any:
    first, _ = tp.split(x, 2)
    return tp.concat([first * first, y[:3]])


def second_halves(x: Any, y: Any) -> Any:
    first, second = tp.split(x, 2)
    return tp.concat([second * first, y[:3]])


def listed(x: Any, y: Any) -> Any:
    return tp.concat([x, y, x])


def other_list(x: Any, y: Any) -> Any:
    return tp.concat([x, y, y])


def partly_constant(x: Any, y: Any) -> Any:
    return tp.concat([x, y, tp.ones((6,), dtype=tp.float64)])


def other_part_constant(x: Any, y: Any) -> Any:
    return tp.concat([x, tp.ones((6,), dtype=tp.float64), y])


FUNCTIONS = [
    *(shared, swapped, crossed, doubled, merged, other_function, other_constant, unused),
    *(halves, other_halves, second_halves),
    *(listed, other_list, partly_constant, other_part_constant),
]
UNKNOWN = {partly_constant, other_part_constant}  # have no pattern

Passed = tuple["Sequence[tuple[Node, Tensor]]", "Sequence[Node]"]


def slopes(f: Callable[..., Any], x: tp.Tensor, y: tp.Tensor, **options: Any) -> Any:
    """Return the gradients of the sum of ``f``, with no Sum on the tape."""
    return tp.grad(f, argnums=(0, 1), **options)(x, y, dy=tp.ones_like(f(x, y)))


def passes(f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Passed:
    """Return what the backward pass of ``f`` gets."""
    result: list[Any] = []

    def keep(proceed: Any, starts: Any, leaves: Any) -> Any:
        result.append((starts, leaves))
        return proceed(starts, leaves)

    x, y = (tp.asarray(np.linspace(0.5, 2.0, 6) + shift) for shift in (0.0, 0.25))
    with monkeypatch.context() as patched:
        engine = current_engine()
        patched.setattr(engine, "handlers", engine.handlers._replace(backward=keep))
        slopes(f, x, y, unconnected="zeros")
    (taken,) = result
    return taken  # type: ignore[no-any-return]  # in a list of anything


def test_patterns_and_keys_tell_the_same_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    tapes = [(f, turn, passes(f, monkeypatch)) for f, turn in product(FUNCTIONS, range(2))]
    described = [(f, turn, *ends, describe(*ends)) for f, turn, ends in tapes]
    matches = 0
    for f, turn, starts, leaves, tape in described:
        assert tape is not None
        pattern = Pattern.of(tape, starts, leaves)
        assert (pattern is None) == (f in UNKNOWN), f.__name__
        for g, other_turn, other_starts, other_leaves, other in described:
            assert other is not None
            what = f"{f.__name__} {turn}, {g.__name__} {other_turn}"
            same = tape.key == other.key
            assert same == (f is g), what
            if same:
                assert outline(starts, leaves) == outline(other_starts, other_leaves)
            if pattern is None:
                continue
            result = pattern.match(other_starts, other_leaves)
            assert (result is not None) == same, what
            if result is not None:
                saved = [buffer for buffer, _ in other.saved]
                assert len(result) == len(saved)
                assert all(a is b for a, b in zip(result, saved, strict=True)), what
                matches += 1
    assert matches == 4 * (len(FUNCTIONS) - len(UNKNOWN))


def test_tapes_that_look_alike_at_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    outlines = {outline(*passes(f, monkeypatch)) for f in FUNCTIONS[:7]}
    assert len(outlines) == 1
    x, y = (tp.asarray(np.linspace(0.5, 2.0, 6) + shift) for shift in (0.0, 0.25))
    expected = [slopes(f, x, y) for f in FUNCTIONS[:7]]  # without programs
    device = current_engine().devices.active
    for _ in range(3):
        for f, first in zip(FUNCTIONS[:7], expected, strict=True):
            result = slopes(f, x, y)
            for gradient, right in zip(result, first, strict=True):
                assert gradient.numpy().tobytes() == right.numpy().tobytes(), f.__name__
            assert len(device.recent) == 1
    assert len(device.programs) == 7


def test_a_leaf_may_be_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of checkpoints are, and such a leaf could be in the place of a call."""
    starts, (x, y) = passes(unused, monkeypatch)
    ((last, _),) = starts
    call = last.parents[0]
    assert call is not None
    kinds = {"apart": (x, y), "inside": (x, call)}
    tapes = {name: describe(starts, leaves) for name, leaves in kinds.items()}
    for name, leaves in kinds.items():
        tape = tapes[name]
        assert tape is not None
        pattern = Pattern.of(tape, starts, leaves)
        assert pattern is not None
        for other, other_leaves in kinds.items():
            matches = pattern.match(starts, other_leaves) is not None
            assert matches == (name == other), (name, other)
    beside = passes(unused, monkeypatch)[0][0][0]  # of another tape
    tape = describe(starts, (x, beside))
    assert tape is not None
    assert Pattern.of(tape, starts, (x, beside)) is None


def test_the_types_of_cotangents_belong_to_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    starts, leaves = passes(shared, monkeypatch)
    tape = describe(starts, leaves)
    assert tape is not None
    pattern = Pattern.of(tape, starts, leaves)
    assert pattern is not None
    ((last, dy),) = starts
    for dtype, matches in ((tp.float64, True), (tp.float32, False)):
        others = [(last, tp.astype(dy, dtype))]
        assert (pattern.match(others, leaves) is not None) == matches


def test_the_registry_forgets_patterns() -> None:
    f = tp.grad(lambda x: tp.sum(tp.exp(-x)))
    x = tp.asarray(np.linspace(0.5, 2.0, 6))
    device = current_engine().devices.active
    for _ in range(3):
        f(x)
    assert len(device.recent) == 1
    with tp.register_gradient("Neg", "x", lambda dy: dy * -2.0, override=True):
        assert not device.recent
        for _ in range(3):
            np.testing.assert_allclose(f(x).numpy(), -2 * np.exp(-x.numpy()), rtol=1e-14)


def test_patterns_are_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    f = tp.grad(lambda x: tp.sum(tp.exp(-x)))
    x = tp.asarray(np.linspace(0.5, 2.0, 6))
    expected = f(x).numpy()
    f(x)
    with monkeypatch.context() as patched:
        patched.delattr(backward, "describe")
        np.testing.assert_array_equal(f(x).numpy(), expected)
        with pytest.raises(NameError):
            tp.grad(lambda x: tp.sum(tp.exp(x * 2.0)))(x)
