"""The methods of Tensor: operators, indexing and the like, and ops marked ``@chained``.

The facade attaches the core's own; the plugin layer attaches those of extension packages. A
chained method takes what its op takes. As NumPy's and PyTorch's methods do, it also takes an axis
by position and a shape number by number: ``x.sum(0)``, ``x.reshape(2, 3)``.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.signatures import location
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import RegistrationError
from tensorplug.tensors.assignment import Assignment
from tensorplug.tensors.indexing import Indexing
from tensorplug.tensors.interchange import Interchange
from tensorplug.tensors.operators import Operators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

__all__ = ["PARTS", "as_method", "attach", "attach_parts", "find_chained", "takes_numbers"]

PARTS: Final = (Operators, Indexing, Assignment, Interchange)
"""The classes whose members become members of Tensor."""

_SPREAD: Final = ("shape", "axes")  # parameters that hold one number per axis
_OWN: Final = ("__dict__", "__doc__", "__module__", "__slots__", "__weakref__")  # every class's
_MOVED: Final = frozenset(("axis", *_SPREAD))  # parameters without which an op is its method


def attach_parts() -> None:
    """Make the members of ``PARTS`` members of Tensor."""
    for part in PARTS:
        for name, member in vars(part).items():
            if name not in _OWN:
                setattr(Tensor, name, member)


def find_chained(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the ops that ``module`` defines and marks as chained."""
    return [
        variable
        for variable in vars(module).values()
        if getattr(variable, "__tensorplug_chained__", False)
        and variable.__module__ == module.__name__
    ]


def attach(functions: Iterable[Callable[..., Any]]) -> None:
    """Make each function a method of Tensor; all or none. Attaching one again does nothing.

    Raises:
        RegistrationError: when Tensor has another attribute of that name.

    """
    new: dict[str, Callable[..., Any]] = {}
    for function in functions:
        name = function.__name__
        old = getattr(Tensor, name, None) or new.get(name)
        if old is None:
            new[name] = as_method(function)
        elif function not in (old, getattr(old, "__wrapped__", None)):
            raise RegistrationError(
                f"Tensor has a method {name!r} already; "
                f"{location(function)} cannot be chained under that name"
            )
    for name, function in new.items():
        setattr(Tensor, name, function)


def as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the op as a method: itself, or a function that passes on what it is given.

    The method of an op whose only argument by position is a shape, or the order of axes, takes
    its numbers one by one too. Where ``axis`` is the first of the arguments by name, the method
    takes it by position too.
    """
    if _MOVED.isdisjoint(_parameters(function)):
        return function
    signature = inspect.signature(function)
    if takes_numbers(function):
        return _taking_numbers(function, signature)
    named = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    if named and named[0].name == "axis" and named[0].default is not signature.empty:
        return _taking_the_axis(function, signature)
    return function


def _parameters(function: Callable[..., Any]) -> Iterable[str]:
    """Return the names of the parameters; read from the code, far sooner than a signature."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return inspect.signature(function).parameters
    count: int = code.co_argcount + code.co_kwonlyargcount
    names: tuple[str, ...] = code.co_varnames[:count]
    return names


def takes_numbers(function: Callable[..., Any]) -> bool:
    """Return whether the method of an op takes the numbers of its shape one by one."""
    rest = list(inspect.signature(function).parameters.values())[1:]
    positional = [item for item in rest if item.kind is not item.KEYWORD_ONLY]
    return len(positional) == 1 and positional[0].name in _SPREAD


def _taking_numbers(
    function: Callable[..., Any], signature: inspect.Signature
) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Any, /, *numbers: Any, **options: Any) -> Any:
        given = (numbers,) if len(numbers) > 1 else numbers
        return function(self, *given, **options)

    first, shape, *named = signature.parameters.values()
    several = shape.replace(kind=shape.VAR_POSITIONAL, default=shape.empty)
    return _signed(method, signature, [first, several, *named])


def _taking_the_axis(
    function: Callable[..., Any], signature: inspect.Signature
) -> Callable[..., Any]:
    listed = list(signature.parameters.values())
    count = sum(item.kind is not item.KEYWORD_ONLY for item in listed)
    others = ", ".join(item.name for item in listed[count + 1 :])

    @functools.wraps(function)
    def method(*given: Any, **options: Any) -> Any:
        if len(given) <= count:
            return function(*given, **options)
        if len(given) == count + 1:
            return function(*given[:-1], axis=given[-1], **options)
        raise TypeError(
            f"{function.__name__}: the last argument by position is axis, got {given[count:]!r}"
            + (f"; by name: {others}" if others else "")
        )

    axis = listed[count].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return _signed(method, signature, [*listed[:count], axis, *listed[count + 1 :]])


def _signed(
    method: Any, signature: inspect.Signature, parameters: list[inspect.Parameter]
) -> Callable[..., Any]:
    method.__signature__ = signature.replace(parameters=parameters)
    result: Callable[..., Any] = method
    return result
