"""Chained methods: ops marked ``@chained`` become methods of Tensor under the same name.

The facade attaches the core's own; the plugin layer attaches those of extension packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.errors import RegistrationError
from tensorplug.signatures import location
from tensorplug.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

__all__ = ["attach", "chained_in"]


def chained_in(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the ops that ``module`` defines and marks as chained."""
    return [
        each
        for each in vars(module).values()
        if getattr(each, "__tensorplug_chained__", False) and each.__module__ == module.__name__
    ]


def attach(functions: Iterable[Callable[..., Any]]) -> None:
    """Make each function a method of Tensor; all or none. Attaching one again does nothing.

    Raises:
        RegistrationError: when Tensor has another attribute of that name.

    """
    listed = list(functions)
    new: dict[str, Callable[..., Any]] = {}
    for function in listed:
        name = function.__name__
        old = getattr(Tensor, name, None) or new.setdefault(name, function)
        if old is not function:
            raise RegistrationError(
                f"Tensor has a method {function.__name__!r} already; "
                f"{location(function)} cannot be chained under that name"
            )
    for function in listed:
        setattr(Tensor, function.__name__, function)
