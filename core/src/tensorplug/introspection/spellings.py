"""The message about an unknown name in tensorplug: what was probably meant, or how to do it here.

A wrong hint is worse than none. So names of other libraries are looked up in tables, and only
what a slip of the fingers can cause counts as a misspelling.
"""

from __future__ import annotations

import sys
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.misspellings import nearest, plain
from tensorplug.introspection.foreign_advice import ADVICE
from tensorplug.introspection.foreign_names import FOREIGN

if TYPE_CHECKING:
    from collections.abc import Iterable


_PACKAGE: Final = __name__.partition(".")[0]
_OF_PLUGINS: Final = ("algorithms", "einops", "errors", "plugin", "testing")  # never suggested


def missing(module: str, name: str) -> AttributeError:
    """Return the error for an unknown name in a public module, such as ``tensorplug.nn``."""
    message = f"module {module!r} has no attribute {name!r}"
    if not name.startswith("__"):  # else Python itself asks
        message += _hint(module.removeprefix(_PACKAGE).removeprefix("."), name)
    return AttributeError(message, name=name)


def missing_method(owner: object, module: str, name: str) -> AttributeError:
    """Return the error for an unknown method of an object whose methods are those of a module."""
    kind = type(owner).__name__
    message = f"{kind!r} object has no attribute {name!r}"
    if not name.startswith("_"):  # else Python itself asks, or a copy that is not complete yet
        hint = _hint(module.removeprefix(_PACKAGE).removeprefix("."), name)
        start, _, method = hint.rstrip("?").rpartition(f"{module}.")
        if start and hasattr(owner, method):
            message += hint.replace(f"{module}.", f"{kind}.")
    return AttributeError(message, name=name)


@lru_cache(maxsize=256)
def _hint(part: str, name: str) -> str:
    key = plain(name)
    places = _places()
    here = [place for place in places if place.rpartition(".")[0] == part]
    foreign = _foreign()
    known = foreign.get((part, key)) or foreign.get(("", key))
    if known:
        return f"; {known}"
    match = _same(name, here) or _same(name, places)
    if match:
        return f"; here it is {_PACKAGE}.{match}"
    near = nearest(key, here) or nearest(key, places)
    return f"; did you mean {_PACKAGE}.{near}?" if near else ""


@cache
def _foreign() -> dict[tuple[str, str], str]:
    """Return the hints of the tables by part and plain name."""
    hints = {
        **ADVICE,
        **{name: f"here it is {_PACKAGE}.{place}" for name, place in FOREIGN.items()},
    }
    return {(key.rpartition(".")[0], plain(key)): hint for key, hint in hints.items()}


def _places() -> list[str]:
    """Return the qualified form of each public name: ``["abs", ..., "nn.relu", ...]``."""
    package: Any = sys.modules[_PACKAGE]
    places: list[str] = list(package.__all__)
    for part in package.__all__:
        member = getattr(package, part)
        if isinstance(member, ModuleType) and part not in _OF_PLUGINS:
            places += [f"{part}.{name}" for name in getattr(member, "__all__", ())]
    return places


def _same(name: str, places: Iterable[str]) -> str:
    """Return the place of ``name``, or of the first name that differs in capitals at most."""
    alike = [place for place in places if plain(place) == plain(name)]
    exact = [place for place in alike if place.rpartition(".")[2] == name]
    return next(iter(exact or alike), "")
