"""The public functions, by module and name: ``"sum"``, ``"nn.softmax"``."""

from __future__ import annotations

import inspect
from typing import Any

import tensorplug as tp
from tensorplug.introspection.families import families
from tensorplug.plugins import parts
from tensorplug.system.distributions import EXTENSIONS

FUNCTIONS: dict[str, Any] = {
    f"{namespace}.{name}".lstrip("."): getattr(family, name)
    for namespace, family in families()
    for name in getattr(family, "__all__", ())
    if inspect.isfunction(getattr(family, name))
} | {name: found for name in EXTENSIONS if inspect.isfunction(found := parts.find(name))}

MODULES = {"tp": tp} | {
    f"tp.{name}": module
    for name in tp.__all__
    if inspect.ismodule(module := getattr(tp, name)) and name != "errors"
}
MODULES |= {
    f"{outer}.{name}": inner
    for outer, module in list(MODULES.items())
    if outer.removeprefix("tp.") in EXTENSIONS
    for name in module.__all__
    if inspect.ismodule(inner := getattr(module, name))
}
"""The namespaces that a user sees."""
PUBLIC: dict[str, Any] = {
    f"{prefix}.{name}": value
    for prefix, module in MODULES.items()
    for name in getattr(module, "__all__", ())
    if inspect.isfunction(value := getattr(module, name)) or inspect.isclass(value)
}
"""All public functions and classes: ``"tp.sum"``, ``"tp.train.ema"``."""
PUBLIC_HOMES = {value.__module__ for value in PUBLIC.values()} | {"tensorplug.typing"}


def with_parameter(*names: str) -> dict[str, Any]:
    """Return the functions that have a parameter of one of these names."""
    return {
        name: function
        for name, function in FUNCTIONS.items()
        if not set(names).isdisjoint(inspect.signature(function).parameters)
    }
