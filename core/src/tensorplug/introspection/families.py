"""The families of functions, and the public modules in which their functions appear."""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tensorplug import library, ops
from tensorplug.contract.families import modules_of
from tensorplug.ops.default_integers import in_public

if TYPE_CHECKING:
    from types import ModuleType


_PACKAGE: Final = __name__.partition(".")[0]
FOLDERS: Final = tuple(f"{folder.__name__}." for folder in (ops, library))


@cache
def families() -> tuple[tuple[str, ModuleType], ...]:
    """Import all families; return each after the public module of its functions.

    The first part of a family's path says which: "nn" for ``nn/activation.py``, whose functions
    are those of ``tensorplug.nn``; "" where no public module has that name, as for
    ``reduction.py``, whose functions are those of ``tensorplug`` itself.
    """
    package = sys.modules[_PACKAGE]
    modules = {info.name for info in pkgutil.iter_modules(package.__path__) if not info.ispkg}
    listed = []
    for folder in (ops, library):
        for family in modules_of(folder):
            first = family.__name__.removeprefix(f"{folder.__name__}.").partition(".")[0]
            listed.append((first if first in modules else "", family))
    return tuple(listed)


def public(namespace: str) -> dict[str, Any]:
    """Return the functions and classes that are public in ``namespace``, by name."""
    return {
        name: in_public(getattr(family, name))
        for module, family in families()
        for name in getattr(family, "__all__", ())
        if module == namespace
    }
