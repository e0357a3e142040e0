"""The public functions, by module and name: ``"sum"``, ``"nn.softmax"``."""

from __future__ import annotations

import inspect
from typing import Any

from tensorplug.ops import families

FUNCTIONS: dict[str, Any] = {
    f"{namespace}.{name}".lstrip("."): getattr(family, name)
    for namespace, family in families()
    for name in getattr(family, "__all__", ())
    if inspect.isfunction(getattr(family, name))
}


def with_parameter(*names: str) -> dict[str, Any]:
    """Return the functions that have a parameter of one of these names."""
    return {
        name: function
        for name, function in FUNCTIONS.items()
        if not set(names).isdisjoint(inspect.signature(function).parameters)
    }
