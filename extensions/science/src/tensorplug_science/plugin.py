"""The hooks through which tensorplug finds what this distribution adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.plugin import hookimpl
from tensorplug_science import quantiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@hookimpl
def tensorplug_chained_ops() -> Iterable[Callable[..., Any]]:
    """Return the functions that are methods of tensors too: ``x.quantile(0.5)``."""
    return [getattr(quantiles, name) for name in quantiles.__all__]
