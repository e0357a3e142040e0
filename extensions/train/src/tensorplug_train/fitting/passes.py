"""Going over data: the batches of an epoch, from any of them on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from tensorplug.plugin import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator


def check(data: Any, epochs: int, name: str, who: str = "fit") -> None:
    """Refuse no iterable, an iterator for several epochs, and data with epochs of their own."""
    if not isinstance(data, Iterable):
        raise ArgumentError(f"{who}: {name} must be an iterable of batches, got {data!r:.60}")
    if epochs > 1 and iter(data) is data:
        raise ArgumentError(
            f"{who}: {name} is an iterator ({type(data).__name__}), which serves for one epoch, "
            f"but epochs={epochs}; pass what can be iterated again, such as a list"
        )
    own = getattr(data, "epochs", 1)
    if own != 1:
        raise ArgumentError(f"{who}: {name} has epochs={own} of its own; leave them out")


def rest(data: Any, epoch: int, first: int) -> Iterator[Any]:
    """Return the batches of an epoch (from 0), without the ``first`` ones."""
    if hasattr(data, "epoch"):
        found: Iterator[Any] = data.epoch(epoch, first)
        return found
    return islice(iter(data), first, None)


def length(data: Any) -> int | None:
    """Return the number of batches in an epoch; None if it is unknown."""
    try:
        return len(data)
    except TypeError:
        return None
