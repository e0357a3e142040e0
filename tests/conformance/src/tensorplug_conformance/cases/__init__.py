"""The suite's own cases, by family, found by walking the package."""

from __future__ import annotations

import importlib
import pkgutil

from tensorplug_conformance.tables import CaseTable

__all__ = ["by_family", "tables"]


def tables() -> tuple[CaseTable, ...]:
    """Return the table of every family."""
    return tuple(by_family().values())


def by_family() -> dict[str, CaseTable]:
    """Return the tables by the names of their families, in the order of these names.

    Raises:
        TypeError: when a family module has no table called ``cases``.

    """
    walked = pkgutil.walk_packages(__path__, f"{__name__}.")
    modules = sorted((info.name for info in walked if not info.ispkg), key=_family)
    families = {}
    for name in modules:
        table = getattr(importlib.import_module(name), "cases", None)
        if not isinstance(table, CaseTable):
            raise TypeError(f"{name} has no CaseTable called 'cases'")
        families[_family(name)] = table
    return families


def _family(module: str) -> str:
    return module.rpartition(".")[2]
