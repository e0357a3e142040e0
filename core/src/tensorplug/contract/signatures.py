"""Arguments by name: a function gets the arguments that its parameters name.

Kernels, gradient rules, decompositions and inference rules are plain functions. Their signatures
are the contract between a plugin and the engine, and are checked when a table is filled, so that
a misspelt name is found before a call.
"""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_UNNAMED: Final = 2  # inputs that need no names: with more, their order is easily mistaken
_REST = [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def location(function: Callable[..., Any]) -> str:
    """Return the qualified name of a function, ``module.qualified_name``, for messages.

    A lambda is told from the others of its module by its line.
    """
    name = getattr(function, "__qualname__", None) or repr(function)
    if name.endswith("<lambda>"):
        name += f" in line {function.__code__.co_firstlineno}"
    return f"{getattr(function, '__module__', '?')}.{name}"


def parameters(function: Callable[..., Any], role: str) -> list[inspect.Parameter]:
    """Return the named parameters of ``function``.

    Raises:
        RegistrationError: it is not callable, has no readable signature, or takes ``*args`` or
            ``**kwargs``.

    """
    try:
        declared = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"{role}: {function!r} has no signature to read ({error}); wrap it in a function "
            "whose parameters have names"
        ) from error
    for parameter in declared:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"{role}: {location(function)} takes {parameter}, but must name its parameters"
            )
    return declared


def named(function: Callable[..., Any], role: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the positional parameters, and of the keyword-only ones.

    Raises:
        RegistrationError: see ``parameters``.

    """
    if _is_plain(function):  # the usual case, in which ``inspect`` would be forty times slower
        code = function.__code__
        by_position, all_of_them = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        return code.co_varnames[:by_position], code.co_varnames[by_position:all_of_them]
    declared = parameters(function, role)
    return (
        tuple(p.name for p in declared if p.kind in _POSITIONAL),
        tuple(p.name for p in declared if p.kind is inspect.Parameter.KEYWORD_ONLY),
    )


def _is_plain(function: Callable[..., Any]) -> bool:
    """Return whether the code object has the signature of ``function``."""
    if type(function) is not FunctionType:
        return False
    if function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return False
    return not {"__wrapped__", "__signature__"} & vars(function).keys()


def check_split(
    function: Callable[..., Any], role: str, inputs: tuple[str, ...], may_ask: Iterable[str]
) -> tuple[str, ...]:
    """Check a function of ``inputs`` (in order) and keyword-only extras; return the extras.

    One or two inputs need no names in a function that takes them by position alone: a ufunc, or
    one such as ``operator.neg``.

    Raises:
        RegistrationError: the parameters are not allowed.

    """
    allowed = tuple(may_ask)
    if 0 < len(inputs) <= _UNNAMED and _takes_by_position(function) == len(inputs):
        return ()
    positional, keywords = named(function, role)
    if positional != inputs or not set(keywords) <= set(allowed):
        actual = ", ".join([*positional, "*", *keywords] if keywords else positional)
        possible = ", ".join([*inputs, "*", *allowed] if allowed else inputs)
        raise RegistrationError(
            f"{role}: {location(function)} has the parameters ({actual}); it must have the inputs "
            f"first, then any of the others as keyword-only parameters: ({possible})"
        )
    return keywords


def asked_by_launch(launch: Callable[..., Any], may_ask: Iterable[str]) -> tuple[str, ...]:
    """Check the ``launch`` of a table of kernels; return what it names for itself.

    Raises:
        RegistrationError: it does not take ``(program, *inputs, **asked)``, or names other things.

    """
    role, form = "KernelTable: launch", "(program, *inputs, **asked)"
    if not callable(launch):
        raise RegistrationError(f"{role} must be a function of {form}, got {launch!r}")
    declared = inspect.signature(launch).parameters.values()
    keywords = tuple(p.name for p in declared if p.kind is p.KEYWORD_ONLY)
    kinds = [p.kind for p in declared if p.kind is not p.KEYWORD_ONLY]
    if not set(keywords) <= set(may_ask) or kinds[1:] != _REST or kinds[0] not in _POSITIONAL:
        raise RegistrationError(
            f"{role}: {location(launch)} has the parameters {inspect.signature(launch)}; it must "
            f"take {form}, and may name {', '.join(may_ask)} for itself, keyword-only"
        )
    return keywords


def _takes_by_position(function: Any) -> int:
    """Return how many inputs a function takes that has no names for them, and nothing else.

    It is a ufunc, or all its parameters are positional-only; 0 for others.
    """
    if isinstance(function, np.ufunc):
        return function.nin if function.nout == 1 and not function.signature else 0
    if isinstance(function, FunctionType) and not function.__code__.co_posonlyargcount:
        return 0  # the usual case, without the slow ``inspect``
    try:
        declared = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # ``named`` says so
        return 0
    return len(declared) if all(p.kind is p.POSITIONAL_ONLY for p in declared) else 0


def check_names(
    function: Callable[..., Any], role: str, may_ask: Iterable[str]
) -> tuple[str, ...]:
    """Check a function whose parameters may be in any order; return their names.

    Raises:
        RegistrationError: the parameters are not allowed.

    """
    positional, keywords = named(function, role)
    names = positional + keywords
    allowed = tuple(may_ask)
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise RegistrationError(
            f"{role}: {location(function)} has unknown parameters {', '.join(unknown)}; possible "
            f"are {', '.join(allowed)}"
        )
    return names
