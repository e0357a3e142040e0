"""What may watch kernels run: profilers, debug checks, traces.

An observer stands around each call of a kernel that is made in its context (or, if it is one of
the engine's own, in any context). While there is one, no call takes the short cut of ``dispatch``,
so that none escapes; without one, a call pays nothing.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tensorplug.contract.dtypes import DType
from tensorplug.contract.spec import show
from tensorplug.dispatch.context import ContextGuard, current_context
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.plans import Plan

__all__ = [
    "Observation",
    "describe",
    "observe",
    "provenance",
]


def describe(plan: Plan) -> str:
    """Return a call as text: ``Sum(x=float32[3], axis=(0,)) -> float32[]``."""
    named = zip(plan.spec.input_names, plan.inputs, strict=True)
    parts = [f"{name}={show(item)}" for name, item in named]
    parts += [f"{name}={_short(value)}" for name, value in plan.attributes.items()]
    outputs = ", ".join(str(output.type) for output in plan.outputs)
    return f"{plan.spec.name}({', '.join(parts)}) -> {outputs}"


def _short(value: object) -> str:
    text = str(value) if isinstance(value, DType) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def provenance(plan: Plan) -> str:
    """Return how, by whom and where a call runs: ``native by tensorplug-cpu 0.1.0 on cpu``."""
    by = "from" if plan.how == "fallback" else "on"
    return f"{plan.how} by {plan.owner} {by} {plan.device.name}"


class Observation:
    """Lets observers watch what this thread or task does, from ``start`` to ``stop``.

    ``who`` is what the user called, for messages.
    """

    __slots__ = ("_entered",)

    def __init__(self, who: str) -> None:
        self._entered = ContextGuard(who)

    def start(self, observers: Sequence[Observer]) -> None:
        """Add ``observers`` to the context, inside those that are there.

        Raises:
            RuntimeError: it is started already.

        """
        context = current_context()
        self._entered.enter(context.replace(observers=(*context.observers, *observers)))

    def stop(self) -> None:
        """Make the context before current again."""
        self._entered.leave()


def observe(
    who: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Return ``function(*args, **kwargs)``, called for the function ``who`` of ours.

    Raises:
        ArgumentError: it is no function, or a coroutine function, which would return before
            it has done anything.

    """
    if not callable(function):
        raise ArgumentError(f"{who}: needs a function, got {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"{who}: {getattr(function, '__name__', function)!r} is a coroutine function, of "
            f"which nothing runs before it is awaited; write `with {who}(): await ...`"
        )
    return function(*args, **kwargs)
