"""Asking by naming: a function's parameters say what it wants, and are checked once.

Kernels, gradient rules, decompositions and inference rules are plain functions. Nothing is
passed to them that they do not name, so their signatures are the whole contract between a
plugin and the engine. A misspelt name is found when a table is filled, not when it runs.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def location(function: Callable[..., Any]) -> str:
    """Return where a function stands, as ``module.qualified_name``, for error messages."""
    name = getattr(function, "__qualname__", None) or repr(function)
    return f"{getattr(function, '__module__', '?')}.{name}"


def parameters(function: Callable[..., Any], role: str) -> list[inspect.Parameter]:
    """Return the named parameters of ``function``.

    Raises:
        RegistrationError: when it is not callable, has no readable signature, or takes
            ``*args`` or ``**kwargs``, which name nothing.

    """
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise RegistrationError(
            f"{role}: {function!r} has no signature to read ({error}); wrap it in a function "
            "whose parameters have names"
        ) from error
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(
                f"{role}: {location(function)} takes {parameter}, but must name what it asks for"
            )
    return found


def check_split(
    function: Callable[..., Any], role: str, inputs: tuple[str, ...], may_ask: Iterable[str]
) -> tuple[str, ...]:
    """Check a function of ``inputs`` (in order) and keyword-only extras; return the extras.

    Raises:
        RegistrationError: naming the function, what it asked and what it may ask.

    """
    found = parameters(function, role)
    positional = tuple(p.name for p in found if p.kind in _POSITIONAL)
    keywords = tuple(p.name for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY)
    allowed = tuple(may_ask)
    if positional != inputs or not set(keywords) <= set(allowed):
        asked = ", ".join([*positional, "*", *keywords] if keywords else positional)
        takes = ", ".join([*inputs, "*", *allowed] if allowed else inputs)
        raise RegistrationError(
            f"{role}: {location(function)} asks for ({asked}); the inputs by name come first, "
            f"then what it wants of the rest as keyword-only parameters: ({takes})"
        )
    return keywords


def check_names(
    function: Callable[..., Any], role: str, may_ask: Iterable[str]
) -> tuple[str, ...]:
    """Check a function whose parameters may stand in any order; return their names.

    Raises:
        RegistrationError: naming the function, what it asked and what it may ask.

    """
    asked = tuple(p.name for p in parameters(function, role))
    allowed = tuple(may_ask)
    unknown = [name for name in asked if name not in allowed]
    if unknown:
        raise RegistrationError(
            f"{role}: {location(function)} asks for {', '.join(unknown)}; it may ask for "
            f"{', '.join(allowed)}"
        )
    return asked
