"""Finding the modules of a package that has one module per family, and their tables.

A new family needs no list entry: its module is found in the package's folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, TypeVar

from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


T = TypeVar("T")


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Import and yield the modules of a package and of the packages in it, by name."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not info.ispkg:
            yield importlib.import_module(info.name)


def tables_of(package: ModuleType, kind: type[T], name: str) -> tuple[T, ...]:
    """Return the tables of class ``kind`` that the modules of a package call ``name``.

    Example::

        from tensorplug_acme import kernels  # a package with one module per family

        tables_of(kernels, KernelTable, "kernels")

    Raises:
        RegistrationError: a module has such a table under another name.

    """
    tables: list[T] = []
    for module in modules_of(package):
        for attribute, value in vars(module).items():
            if not isinstance(value, kind):
                continue
            if attribute != name:
                raise RegistrationError(
                    f"{module.__name__}.{attribute} is a {kind.__name__}, but tables are "
                    f"expected under the name {name!r}"
                )
            if all(value is not table for table in tables):
                tables.append(value)
    return tuple(tables)
