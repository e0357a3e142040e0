"""Ops by family: kernel specs and the public functions that call them.

``__all__`` of a family lists its public functions. The first part of its path below this package
says where they are public: those of ``nn/activation.py`` in ``tensorplug.nn``, those of
``strings.py`` in ``tensorplug.strings``. Where no public module has that name, as for
``reduction.py`` and ``indexing/slicing.py``, they are functions of ``tensorplug`` itself.
"""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.families import modules_of

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["families", "public"]

_PACKAGE: Final = __name__.partition(".")[0]


@cache
def families() -> tuple[tuple[str, ModuleType], ...]:
    """Import all families; return each after the public module of its functions.

    That is ``"nn"`` for ``tensorplug.nn``, ``""`` for the package itself.
    """
    package = sys.modules[_PACKAGE]
    modules = {info.name for info in pkgutil.iter_modules(package.__path__) if not info.ispkg}
    found = []
    for family in modules_of(sys.modules[__name__]):
        first = family.__name__.removeprefix(f"{__name__}.").partition(".")[0]
        found.append((first if first in modules else "", family))
    return tuple(found)


def public(namespace: str) -> dict[str, Any]:
    """Return the functions and classes that are public in ``namespace``, by name."""
    from tensorplug.ops.default_integers import in_public  # a module of this package

    return {
        name: in_public(getattr(family, name))
        for module, family in families()
        for name in getattr(family, "__all__", ())
        if module == namespace
    }
