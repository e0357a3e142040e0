"""Which module is the array API namespace of our tensors, and which versions it follows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["VERSION", "namespace"]

VERSION: Final = "2025.12"
_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)


def namespace(version: str | None) -> ModuleType:
    """Return the package, as what a tensor's ``__array_namespace__`` gives.

    Raises:
        ArgumentError: it does not follow that version of the standard.

    """
    if version is not None and version not in _VERSIONS:
        raise ArgumentError(
            f"tensorplug follows the array API standard of {', '.join(_VERSIONS)}, got {version!r}"
        )
    return sys.modules["tensorplug"]
