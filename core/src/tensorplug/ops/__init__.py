"""Ops by family: kernel specs and the public functions that call them.

``__all__`` of a family lists its public functions. The first part of its path below this package
says where they are public: those of ``nn/activation.py`` in ``tensorplug.nn``, those of
``strings.py`` in ``tensorplug.strings``. Where no public module has that name, as for
``reduction.py`` and ``indexing/slicing.py``, they are functions of ``tensorplug`` itself.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["families", "public"]

_PACKAGE: Final = __name__.partition(".")[0]


def families(namespace: str) -> Iterator[ModuleType]:
    """Import and yield the families whose functions are public in ``namespace``.

    ``namespace``: ``"nn"`` for ``tensorplug.nn``, ``""`` for the package itself.
    """
    package = importlib.import_module(_PACKAGE)
    modules = {info.name for info in pkgutil.iter_modules(package.__path__) if not info.ispkg}
    for info in pkgutil.walk_packages(__path__, f"{__name__}."):
        first = info.name[len(__name__) + 1 :].partition(".")[0]
        if not info.ispkg and (first if first in modules else "") == namespace:
            yield importlib.import_module(info.name)


def public(namespace: str) -> dict[str, Any]:
    """Return the functions and classes that are public in ``namespace``, by name."""
    return {
        name: getattr(family, name)
        for family in families(namespace)
        for name in getattr(family, "__all__", ())
    }
