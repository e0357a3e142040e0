"""What the core itself brings: its kernel specs, gradient rules and decompositions.

Nobody keeps a list: the family packages are walked when an engine is built, so a new family
file is found because it stands there.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, TypeVar

from tensorplug.contract.spec import KernelSpec
from tensorplug.contract.tables import DecompositionTable, GradientTable
from tensorplug.errors import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["catalogue", "decompositions", "gradients"]

T = TypeVar("T")


def catalogue() -> tuple[KernelSpec, ...]:
    """Return every kernel spec of the core, in the order of families and their lines.

    Raises:
        RegistrationError: when two specs have one name.

    """
    found: dict[str, tuple[KernelSpec, str]] = {}
    for module in _families("tensorplug.ops"):
        for value in vars(module).values():
            if not isinstance(value, KernelSpec):
                continue
            known, where = found.setdefault(value.name, (value, module.__name__))
            if known is not value:  # an import of another family's spec is the same object
                raise RegistrationError(
                    f"two kernel specs are called {value.name!r}, in {where} and in "
                    f"{module.__name__}"
                )
    return tuple(spec for spec, _ in found.values())


def gradients() -> tuple[GradientTable, ...]:
    """Return the gradient table of every family."""
    return _tables("tensorplug.gradients", "gradients", GradientTable)


def decompositions() -> tuple[DecompositionTable, ...]:
    """Return the decomposition table of every family."""
    return _tables("tensorplug.decompositions", "decompositions", DecompositionTable)


def _families(package_name: str) -> Iterator[ModuleType]:
    package = importlib.import_module(package_name)
    for info in pkgutil.walk_packages(package.__path__, f"{package_name}."):
        if not info.ispkg:
            yield importlib.import_module(info.name)


def _tables(package_name: str, attribute: str, kind: type[T]) -> tuple[T, ...]:
    """Return the table called ``attribute`` of every module that has one.

    Raises:
        RegistrationError: when a table has another name, and so would never be found.

    """
    found: list[T] = []
    for module in _families(package_name):
        for name, value in vars(module).items():
            if not isinstance(value, kind):
                continue
            if name != attribute:
                raise RegistrationError(
                    f"{module.__name__}.{name} is a {kind.__name__}, but the name looked for "
                    f"is {attribute!r}"
                )
            if all(value is not each for each in found):
                found.append(value)
    return tuple(found)
