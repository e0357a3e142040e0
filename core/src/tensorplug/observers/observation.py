"""Adding observers (profilers, debug checks, traces) to a context, and describing calls."""

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
    parts = [f"{name}={show(type_)}" for name, type_ in named]
    parts += [f"{name}={_short(value)}" for name, value in plan.attributes.items()]
    outputs = ", ".join(str(output.type) for output in plan.outputs)
    return f"{plan.spec.name}({', '.join(parts)}) -> {outputs}"


def _short(value: object) -> str:
    text = str(value) if isinstance(value, DType) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def provenance(plan: Plan) -> str:
    """Return mode, owner and device of a call: ``native by tensorplug-cpu 0.1.0 on cpu``."""
    by = "from" if plan.how == "fallback" else "on"
    return f"{plan.how} by {plan.owner} {by} {plan.device.name}"


class Observation:
    """Adds observers to the context of this thread or task, from ``start`` to ``stop``.

    ``who`` is the name of the user's function, for messages.
    """

    __slots__ = ("_entered",)

    def __init__(self, who: str) -> None:
        self._entered = ContextGuard(who)

    def start(self, observers: Sequence[Observer]) -> None:
        """Add ``observers`` to the context, inside the present ones.

        Raises:
            RuntimeError: it has been started already.

        """
        context = current_context()
        self._entered.enter(context.replace(observers=(*context.observers, *observers)))

    def stop(self) -> None:
        """Make the previous context current again."""
        self._entered.leave()


def observe(
    who: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Return ``function(*args, **kwargs)``; ``who`` is the name of the caller, for messages.

    Raises:
        ArgumentError: it is not a function, or is a coroutine function, whose body runs later.

    """
    if not callable(function):
        raise ArgumentError(f"{who}: function must be callable, got {type(function).__name__}")
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"{who}: {getattr(function, '__name__', function)!r} is a coroutine function, whose "
            f"body runs only when it is awaited; write `with {who}(): await ...`"
        )
    return function(*args, **kwargs)
