"""Lifetimes: scopes, disposal, and errors where something is used after its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import DisposedError
from tensorplug_conformance.checks.check import Check, CheckFailedError
from tensorplug_conformance.checks.programs.compiling import judged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


def _scopes(_target: Target, opened: Callable[[], Session]) -> None:
    """A scope frees its tensors, but neither its result nor earlier tensors."""
    with opened().entered():
        outside = tp.asarray(np.arange(6, dtype=np.float32))
        made: list[Any] = []

        def inside(x: Any) -> Any:
            made.extend([x * 2, tp.keep(x + 1)])
            return tp.reshape(made[0], (2, 3)) + 0.5, made[0][1:3]  # the second may be a view

        result, part = tp.tidy(inside, outside)
        _expect(made[0], "what a scope made")
        for name, tensor, meant in (
            ("kept", made[1], np.arange(6) + 1.0),
            ("the result", result, np.arange(6).reshape(2, 3) * 2 + 0.5),
            ("a part of what was freed", part, np.array([2.0, 4.0])),
            ("from before", outside, np.arange(6.0)),
        ):
            _fill()  # overwrites memory that was freed too soon
            if not np.array_equal(tensor.numpy(), meant):
                raise CheckFailedError(f"{name} is {tensor.tolist()}, must be {meant.tolist()}")


def _fill() -> None:
    """Write to as many blocks of these sizes as a pool may have handed out."""
    for shape in ((6,), (12,), (2, 3), (2,)):
        _ = [tp.asarray(np.full(shape, -77, np.float32)) * 3 for _ in range(8)]


def _expect(tensor: Any, what: str) -> None:
    for use in (tensor.numpy, lambda: tensor + 1, lambda: tp.compile(tp.exp)(tensor)):
        try:
            use()
        except DisposedError:
            continue
        raise CheckFailedError(f"{what} can still be used after it was freed")


def _disposal(_target: Target, opened: Callable[[], Session]) -> None:
    """Disposing of one tensor ends that one, and no others that share its memory."""
    with opened().entered():
        whole = tp.asarray(np.arange(12, dtype=np.float32)) * 2
        views = [tp.reshape(whole, (3, 4)), whole[2:5], whole[::2]]
        whole.dispose()
        _expect(whole, "a disposed tensor")
        _fill()
        host = np.arange(12) * 2.0
        for view, meant in zip(views, (host.reshape(3, 4), host[2:5], host[::2]), strict=True):
            if not np.array_equal(view.numpy(), meant):
                raise CheckFailedError(f"a view is {view.tolist()}, its tensor being disposed of")


def _in_place(_target: Target, opened: Callable[[], Session]) -> None:
    """Writing to a tensor changes that one, and no copy or view of it."""
    with opened().entered():
        x = tp.asarray(np.arange(6, dtype=np.float32))
        copy = x + 0
        slopes = tp.grad(lambda w: tp.sum(_changed(w) ** 2))(x)
        x[1] = 50
        if not np.array_equal(x.numpy(), [0, 50, 2, 3, 4, 5]):
            raise CheckFailedError(f"after an assignment x is {x.tolist()}")
        if not np.array_equal(copy.numpy(), np.arange(6.0)):
            raise CheckFailedError("an assignment to x changed a copy of it")
        if not np.array_equal(slopes.numpy(), [0, 2, 4, 0, 8, 10]):
            raise CheckFailedError(f"the gradient through an assignment is {slopes.tolist()}")
        rows = tp.reshape(x, (2, 3))
        x[0] = 1
        if not np.array_equal(x.numpy(), [1, 50, 2, 3, 4, 5]):
            raise CheckFailedError(f"after an assignment beside a view x is {x.tolist()}")
        if not np.array_equal(rows.numpy(), [[0, 50, 2], [3, 4, 5]]):
            raise CheckFailedError("an assignment to x changed a view of it")


def _changed(w: Any) -> Any:
    y = w * 1
    y[3] = 9.0
    return y


def _custom_gradients(_target: Target, opened: Callable[[], Session]) -> None:
    """A gradient of the user's own is used: eagerly, compiled, and differentiated again."""

    @tp.custom_grad
    def cube(x: Any) -> Any:
        return x * x * x, lambda dy: dy * 5 * x * x  # not 3, to tell it from the built-in rule

    with opened().entered():
        host = np.array([0.5, -1.25, 2.0], np.float32)
        x = tp.asarray(host)

        def total(x: Any) -> Any:
            return tp.sum(cube(x))

        slope = tp.grad(total)
        second = tp.grad(lambda x: tp.sum(slope(x) * x))
        wide = host.astype(np.float64)
        for name, function, meant in (
            ("value", cube, wide**3),
            ("gradient", slope, 5 * wide**2),
            ("second gradient", second, 15 * wide**2),
        ):
            for how, called in (("eagerly", function), ("compiled", tp.compile(function))):
                judged([np.array(called(x).numpy())], [meant], f"{name}, {how}", steps=2)


CHECKS: Final = (
    Check(4, "scopes", _scopes),
    Check(4, "disposal", _disposal),
    Check(4, "assignment to elements", _in_place),
    Check(4, "gradients of one's own", _custom_gradients),
)
