"""State that an object holds between calls, and that compiled functions read and set at each call.

Optimizers hold the state of variables in it. Outside of tracing these are plain tensors; in
tracing, the program gets them as inputs, and each run of it sets them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from tensorplug.dispatch.context import Context, current_context, engine_of, use_context
from tensorplug.tensors.variable import Variable, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorplug.dispatch.tensor import Tensor


class Slot(Variable):
    """A variable that no list of variables contains, as a part of an object's state."""

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


def outside_tracing() -> AbstractContextManager[Any]:
    """Return a context in which ops run at once, even while a function is being traced."""
    context = current_context()
    device = context.device
    if device is None or device.is_real:
        return nullcontext()
    return use_context(Context(context.engine, device.root))


def is_traced() -> bool:
    """Return whether a compiled function is being traced."""
    device = current_context().device
    return device is not None and not device.is_real


def check_each_run(check: Callable[[], None]) -> None:
    """If a function is being traced, let each run of its program call ``check`` first."""
    current_context().interpreter.check(check)


def find_variable(name: str) -> Variable | None:
    """Return the live variable of the current engine with this name, if there is one."""
    listed = variables_of(engine_of(current_context())).listed()
    return next((variable for variable in listed if variable.name == name), None)
