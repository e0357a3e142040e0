"""Kernels that prepare the constants of a program once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorplug_cpu.arrays import Array, Call


class Bindable:
    """A call of a kernel that can do some of its work once for inputs that are constant.

    Args:
        run: the call.
        binder: takes one array for each constant input, and None for each other; returns a call of
            the same inputs, or None.

    """

    __slots__ = ("_run", "bind")

    def __init__(self, run: Call, binder: Callable[[Sequence[Array | None]], Call | None]) -> None:
        self._run, self.bind = run, binder

    def __call__(self, *inputs: Any) -> Any:
        """Run the kernel."""
        return self._run(*inputs)


def bind(call: Call, constants: Sequence[Array | None]) -> Call | None:
    """Return a call for inputs of which some are constant; None if the kernel has none."""
    return call.bind(constants) if isinstance(call, Bindable) else None
