"""Attaching methods to Tensor: operators, indexing, interchange, and ops marked ``@chained``.

The package attaches its own methods, the plugin layer those of extension packages. A chained
method has the parameters of its op. As in NumPy and PyTorch, it also accepts the numbers of a
shape as separate arguments: ``x.reshape(2, 3)``. NumPy's reductions call methods with options of
their own, such as ``out=None``, which are accepted.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.signatures import location
from tensorplug.dispatch.tensor import Tensor
from tensorplug.errors import RegistrationError
from tensorplug.ops.default_integers import in_public
from tensorplug.tensors.assignment import Assignment
from tensorplug.tensors.call_hints import explain, hinting
from tensorplug.tensors.indexing import Indexing
from tensorplug.tensors.interchange import Interchange
from tensorplug.tensors.notebooks import Notebooks
from tensorplug.tensors.operators import Operators
from tensorplug.tensors.ufuncs import Ufuncs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType


PARTS: Final = (Operators, Indexing, Assignment, Interchange, Notebooks, Ufuncs)
"""The classes whose members become members of Tensor."""

_SPREAD: Final = frozenset(("shape", "axes"))  # parameters that hold one number per axis
_OWN: Final = ("__dict__", "__doc__", "__module__", "__slots__", "__weakref__")  # of any class
_CALLED_BY_NUMPY: Final = frozenset(("clip", "round"))  # besides reductions
_NUMPYS: Final = frozenset(("ddof", "dtype", "initial", "out", "where"))


def attach_parts() -> None:
    """Add the members of ``PARTS`` to Tensor."""
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
    """Make all functions, or none, methods of Tensor. Attaching one again does nothing.

    Raises:
        RegistrationError: Tensor has another attribute of that name.

    """
    new: dict[str, Callable[..., Any]] = {}
    for function in functions:
        name = function.__name__
        old = getattr(Tensor, name, None) or new.get(name)
        if old is None:
            new[name] = hinting(in_public(as_method(function)))
        elif not _is_behind(function, old):
            raise RegistrationError(
                f"Tensor has a method {name!r} already; "
                f"{location(function)} cannot be chained under that name"
            )
    for name, function in new.items():
        setattr(Tensor, name, function)


def _is_behind(function: Callable[..., Any], member: Any) -> bool:
    """Return whether ``member`` is the function, or wraps it."""
    while member is not function and hasattr(member, "__wrapped__"):
        member = member.__wrapped__
    return member is function


def as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op as a method: the op itself, or a wrapper with a more flexible signature.

    If the only positional argument is a shape or an order of axes, the method also accepts its
    numbers as separate arguments. If the op has an axis and keyword-only options, as a reduction
    has, or is one of a few others, the method also accepts what NumPy passes to it.
    """
    if takes_numbers(function):
        return _accept_numbers(function)
    reduces = "axis" in _parameters(function) and getattr(function, "__kwdefaults__", None)
    if reduces or function.__name__ in _CALLED_BY_NUMPY:
        return _accept_numpys_options(function)
    return function


def _parameters(function: Callable[..., Any]) -> Iterable[str]:
    """Return the names of the parameters, from the code object, which is fast."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return inspect.signature(function).parameters
    count: int = code.co_argcount + code.co_kwonlyargcount
    names: tuple[str, ...] = code.co_varnames[:count]
    return names


def takes_numbers(function: Callable[..., Any]) -> bool:
    """Return whether the method of an op accepts the numbers of a shape as separate arguments."""
    if _SPREAD.isdisjoint(_parameters(function)):
        return False
    rest = list(inspect.signature(function).parameters.values())[1:]
    positional = [parameter for parameter in rest if parameter.kind is not parameter.KEYWORD_ONLY]
    return len(positional) == 1 and positional[0].name in _SPREAD


def _accept_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Any, /, *numbers: Any, **options: Any) -> Any:
        arguments = (numbers,) if len(numbers) > 1 else numbers
        try:
            return function(self, *arguments, **options)
        except TypeError as error:
            explain(error, function, (self, *arguments), options)
            raise

    signature = inspect.signature(function)
    first, shape, *named = signature.parameters.values()
    numbers = shape.replace(kind=shape.VAR_POSITIONAL, default=shape.empty)
    parameters = [first, numbers, *named]
    method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    return method


def _accept_numpys_options(function: Callable[..., Any]) -> Callable[..., Any]:
    # Options that NumPy passes to an argument's method, and that this op does not have.
    foreign = _NUMPYS.difference(_parameters(function))

    @functools.wraps(function)
    def method(*args: Any, **options: Any) -> Any:
        if options and not foreign.isdisjoint(options):
            options = _translate(function, foreign, options)
        try:
            return function(*args, **options)
        except TypeError as error:
            explain(error, function, args, options)
            raise

    return method


def _translate(
    function: Callable[..., Any], foreign: frozenset[str], options: dict[str, Any]
) -> dict[str, Any]:
    """Return the op's options for those that ``numpy.sum(x)`` and the like pass to ``x.sum``.

    Raises:
        TypeError: an option of NumPy is set that the op does not have.

    """
    kept = {name: value for name, value in options.items() if name not in foreign}
    for name in foreign.intersection(options):
        value = options[name]
        if name == "ddof" and "correction" in _parameters(function):
            kept["correction"] = value
        elif value is not None:
            instead = "; use astype" if name == "dtype" else ""
            raise TypeError(f"{function.__name__}: {name} of NumPy is not supported{instead}")
    return kept
