"""Adding observers (profilers, debug checks, traces) to a context, and describing calls."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

from tensorplug.contract.dtypes import DType
from tensorplug.contract.spec import show
from tensorplug.dispatch.blocks import ContextBlock
from tensorplug.dispatch.exits import Exit
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.context import Context
    from tensorplug.dispatch.observer import Observer
    from tensorplug.engine.plans import Plan


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


class Observation(ContextBlock):
    """Base class of context managers that add observers to the context of a thread or task.

    ``who`` is the name of the user's function, for messages. ``_finish`` may be overridden.
    """

    __slots__ = ("_observers",)

    def __init__(self, who: str) -> None:
        super().__init__(who)
        self._observers: Sequence[Observer] = ()

    @Exit
    def __exit__(self, *_error: object) -> None:
        try:
            self._finish()
        finally:
            self._stop()

    def _finish(self) -> None:
        """Do what is to be done at the end, once or more often."""

    def _start(self, observers: Sequence[Observer]) -> Self:
        """Add ``observers`` to the context, inside the present ones; return this object.

        Raises:
            RuntimeError: it has been started already.

        """
        if not self._observers:
            self._observers = observers
        self._enter(self._finish)
        return self

    def _stop(self) -> None:
        """Remove the observers from the context."""
        self._leave()
        self._observers = ()  # they may refer to this object

    def _derive(self, below: Context) -> Context:
        return below.replace(observers=(*below.observers, *self._observers))


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
