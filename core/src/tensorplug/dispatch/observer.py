"""Observers: profilers, debug checks and traces that see kernels run.

An observer stands around each call of a kernel that is made in its context (or, if it is one of
the engine's own, in any context). While there is one, no call takes the fast path of ``dispatch``,
so that none escapes; without one, a call pays nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["Observer", "execute", "notify", "promote"]

Plan = Any  # ``engine.plans.Plan``, which knows what stands here
Promotion = Any  # ``engine.promotion.Promotion``, likewise


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
