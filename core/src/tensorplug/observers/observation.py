"""What may watch kernels run: profilers, debug checks, traces.

An observer stands around each call of a kernel that is made in its context (or, if it is one of
the engine's own, in any context). While there is one, no call takes the short cut of ``dispatch``,
so that none escapes; without one, a call pays nothing.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tensorplug.contract.dtypes import DType
from tensorplug.contract.spec import show
from tensorplug.dispatch.context import ContextGuard, current_context
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.engine.plans import Plan
    from tensorplug.engine.promotion import Promotion

__all__ = [
    "Observation",
    "Observer",
    "describe",
    "execute",
    "notify",
    "observe",
    "promote",
    "provenance",
]


class Observer(Protocol):
    """Stands around kernel calls.

    It may have three methods more, which are called where it has them:

    - ``transferred(tensor)``: sees a tensor that was copied here from another device;
    - ``recorded(plan, outputs)``: sees a call's outputs once the context's tape and scope have;
    - ``promoting(promotion, inputs, run)``: stands around a call whose inputs are cast to a
      common dtype first, and around these casts, as ``around`` stands around one kernel.
    """

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]], /
    ) -> list[Tensor]:
        """Call ``run`` once and return what it returns; see what was given and what came.

        ``inputs`` are live tensors of the plan's types (lists for variadic inputs, None for
        absent ones). The calls inside a decomposition or a fallback are made within ``run``,
        in the same thread.
        """

    def uploaded(self, tensor: Tensor, /) -> None:
        """See a tensor that was made from data of the caller's: lists, arrays, other libraries'.

        The constants that Python numbers become beside tensors are the engine's, and not seen.
        """


def execute(
    observers: Sequence[Observer],
    plan: Plan,
    inputs: Sequence[Any],
    run: Callable[[], list[Tensor]],
) -> list[Tensor]:
    """Run with the observers around, the first one outermost."""
    for observer in reversed(observers):
        run = partial(observer.around, plan, inputs, run)
    return run()


def promote(
    observers: Sequence[Observer], promotion: Promotion, inputs: Sequence[Any], run: Any
) -> Any:
    """Run a call and the casts before it with the observers around that want to see both."""
    for observer in reversed(observers):
        around = getattr(observer, "promoting", None)
        if around is not None:
            run = partial(around, promotion, inputs, run)
    return run()


def notify(
    observers: Sequence[Observer], event: Literal["recorded", "transferred"], *what: Any
) -> None:
    """Tell of ``event`` those observers that want to know."""
    for observer in observers:
        hear = getattr(observer, event, None)
        if hear is not None:
            hear(*what)


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
