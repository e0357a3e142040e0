"""What may watch kernels run: profilers, debug checks, traces.

An observer stands around each call of a kernel that is made in its frame (or, if it is one of
the engine's own, in any frame). While there is one, no call takes the short cut of ``dispatch``,
so that none escapes; without one, a call pays nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug.plans import Plan
    from tensorplug.tensor import Tensor

__all__ = ["Observer", "execute"]


class Observer(Protocol):
    """Stands around kernel calls."""

    def around(
        self, plan: Plan, inputs: Sequence[Any], run: Callable[[], list[Tensor]]
    ) -> list[Tensor]:
        """Call ``run`` once and return what it returns; see what was given and what came.

        ``inputs`` are live tensors of the plan's types (lists for variadic inputs, None for
        absent ones). The calls inside a decomposition or a fallback are made within ``run``.
        """

    def uploaded(self, tensor: Tensor) -> None:
        """See a tensor that was made from data of the caller's: numbers, lists, arrays."""


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
