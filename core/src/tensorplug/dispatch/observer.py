"""Observers: profilers, debug checks and traces that see kernels run.

An observer wraps each kernel call in its context; an observer of the engine wraps those in any
context. With an observer all calls take the slow path; without one, observers cost nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tensorplug.dispatch import host_values
from tensorplug.dispatch.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Plan = Any  # ``engine.plans.Plan``, of a higher layer
Promotion = Any  # ``engine.promotion.Promotion``, likewise


class Observer(Protocol):
    """Wraps kernel calls.

    It may have three more methods:

    - ``transferred(tensor)``: sees a tensor that was copied from another device;
    - ``recorded(plan, outputs)``: sees a call's outputs after the context's tape and scope;
    - ``promoting(promotion, inputs, run)``: wraps a call whose inputs are cast to a common dtype
      together with these casts, as ``around`` wraps one kernel.
    """

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]], /
    ) -> list[Tensor]:
        """Call ``run`` once and return its result.

        ``inputs`` are live tensors of the plan's types (lists for variadic inputs, None for
        absent ones). A decomposition or a fallback calls its kernels within ``run``, in the same
        thread.
        """

    def uploaded(self, tensor: Tensor, /) -> None:
        """See a tensor made from the caller's data: lists, arrays, tensors of other libraries.

        Constants made from Python numbers are not shown.
        """


def execute(
    observers: Sequence[Observer],
    plan: Plan,
    inputs: Sequence[Any],
    run: Callable[[], list[Tensor]],
) -> list[Tensor]:
    """Call ``run`` inside the observers, the first one outermost."""
    for observer in reversed(observers):
        run = partial(observer.around, plan, inputs, run)
    return run()


def promote(
    observers: Sequence[Observer], promotion: Promotion, inputs: Sequence[Any], run: Any
) -> Any:
    """Run a call and the casts before it inside the observers that have ``promoting``."""
    for observer in reversed(observers):
        around = getattr(observer, "promoting", None)
        if around is not None:
            run = partial(around, promotion, inputs, run)
    return run()


def notify(
    observers: Sequence[Observer], event: Literal["recorded", "transferred"], *what: Any
) -> None:
    """Report ``event`` to the observers that have a method for it."""
    for observer in observers:
        method = getattr(observer, event, None)
        if method is not None:
            method(*what)


def report_inputs(
    observers: Sequence[Observer], inputs: Sequence[Any], tensors: Sequence[Any]
) -> None:
    """Report the uploaded and transferred inputs of a call to the observers."""
    for value, tensor in zip(inputs, tensors, strict=True):
        if isinstance(tensor, list):
            report_inputs(observers, value, tensor)
        elif tensor is value or host_values.is_scalar(value):
            continue  # constants are not reported
        elif isinstance(value, Tensor):
            if value._placement.device is not tensor._placement.device:  # else a variable
                notify(observers, "transferred", tensor)
        else:
            for observer in observers:
                observer.uploaded(tensor)
