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
    """Return the tables by the names of their families.

    Raises:
        TypeError: when a family module has no table called ``cases``.

    """
    found = {}
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda iter_module: iter_module.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        table = getattr(module, "cases", None)
        if not isinstance(table, CaseTable):
            raise TypeError(f"{module.__name__} has no CaseTable called 'cases'")
        found[info.name] = table
    return found
