"""What an optimizer holds between steps; compiled functions read and assign it at each call."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.context import Context, current_context, use_context
from tensorplug.tensors.variable import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor

__all__ = ["HeldNumber", "HeldTensor", "Slot", "outside_tracing"]


class HeldNumber:
    """A number that may change between calls of a compiled function."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value: float = value

    def get(self) -> Any:
        """Return the number; in tracing, one that stands for it."""
        trace = current_context().trace
        return self.value if trace is None else trace.get(self)

    def set(self, value: Any) -> None:
        """Replace the number; in tracing, let each run of the program do so."""
        trace = current_context().trace
        if trace is None:
            self.value = value
        else:
            trace.set(self, value)


class Slot(Variable):
    """A variable that no list of variables contains, as a part of an optimizer's state."""

    __slots__ = ()

    def __init__(self, value: Tensor, name: str) -> None:
        self._begin(value, False)  # noqa: FBT003  # not trainable
        self._name = name

    def get(self) -> Tensor:
        """Return the contents, which the caller must not dispose of."""
        return self._reading()

    def set(self, value: Tensor) -> None:
        """Replace the contents by ``value``, which has their type."""
        self._hold(value)


class HeldTensor:
    """A slot that is made at its first use, with the result of ``make`` as contents."""

    __slots__ = ("_make", "_name", "_slot")

    def __init__(self, make: Callable[[], Tensor], name: str) -> None:
        self._make = make
        self._name = name
        self._slot: Slot | None = None

    def get(self) -> Tensor:
        """Return the contents, which the caller must not dispose of."""
        return self._found().get()

    def set(self, value: Tensor) -> None:
        """Replace the contents by ``value``, which has their type."""
        self._found().set(value)

    def _found(self) -> Slot:
        if self._slot is None:
            with outside_tracing():
                self._slot = Slot(self._make(), self._name)
        return self._slot


def outside_tracing() -> AbstractContextManager[Any]:
    """Return a context in which ops run at once, even while a function is being traced."""
    context = current_context()
    device = context.device
    while device is not None and device.trace is not None:
        device = device.trace.real
    return (
        nullcontext() if device is context.device else use_context(Context(context.engine, device))
    )
