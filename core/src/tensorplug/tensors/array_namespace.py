"""The array API namespace of tensors, and the versions of the standard it follows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from tensorplug.contract.arguments import quoted
from tensorplug.errors import ArgumentError

if TYPE_CHECKING:
    from types import ModuleType


VERSION: Final = "2025.12"
_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", VERSION)


def namespace(version: Any) -> ModuleType:
    """Return the package, the namespace of a tensor.

    Raises:
        ArgumentError: it does not follow that version of the standard.

    """
    if version is not None and not (isinstance(version, str) and version in _VERSIONS):
        raise ArgumentError(
            f"api_version must be one of {', '.join(_VERSIONS)}, got {quoted(version)}"
        )
    return sys.modules["tensorplug"]
