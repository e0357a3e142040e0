"""Names in the rows of a history, for what compares epochs."""

from __future__ import annotations

import math
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tensorplug.plugin import ArgumentError, arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Row: TypeAlias = Mapping[str, Any]
    Mode: TypeAlias = Literal["min", "max"]


def monitored(row: Row, monitor: str | None) -> float:
    """Return the number of a row that is compared.

    ``monitor``: its name; None is the validation's loss or, without a validation, the loss.

    Raises:
        ArgumentError: there is no such number in the row; the message has similar names.

    """
    name = monitor or ("validation_loss" if "validation_loss" in row else "loss")
    if name not in row:
        raise ArgumentError(_unknown(name, row))
    if not isinstance(row[name], int | float):
        raise ArgumentError(f"monitor: {name!r} is no single number: {row[name]!r:.60}")
    return float(row[name])


def best_first(values: Iterable[float], mode: Mode) -> list[int]:
    """Return the positions of numbers, the best first; of equal ones the earlier; no NaN."""
    sign = -1.0 if mode == "max" else 1.0
    numbers = [sign * value for value in values]
    return sorted(
        (at for at, value in enumerate(numbers) if not math.isnan(value)), key=numbers.__getitem__
    )


def check(who: str, monitor: str | None, mode: str, **counts: int) -> None:
    """Refuse a name that is no text, an unknown mode, and a count that is no integer from 0."""
    if monitor is not None and not isinstance(monitor, str):
        raise ArgumentError(f"{who}: monitor must be text or None, got {monitor!r:.60}")
    if mode not in {"min", "max"}:
        raise ArgumentError(f"{who}: mode must be 'min' or 'max', got {arguments.quoted(mode)}")
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise ArgumentError(f"{who}: {name} must be an integer from 0, got {count!r:.60}")


def check_names(observers: Iterable[Any], metrics: Iterable[str], *, validated: bool) -> None:
    """Refuse a ``monitor`` of an observer that no row will have, before an epoch is spent."""
    prefixes = ("", "validation_") if validated else ("",)
    measured = [prefix + name for prefix in prefixes for name in metrics]
    names = [*(prefix + "loss" for prefix in prefixes), *measured, "seconds", "epoch", "step"]
    parts = tuple(f"{name}_" for name in measured)  # of results that are dicts
    for observer in observers:
        name = getattr(observer, "monitor", None)
        if isinstance(name, str) and name not in names and not name.startswith(parts):
            raise ArgumentError(_unknown(name, names))


def _unknown(name: str, names: Iterable[str]) -> str:
    known = list(names)
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if name.startswith("validation_") and "validation_loss" not in known:
        hint = " There is no validation."
    return f"monitor: the history has no {name!r}; it has {', '.join(known)}.{hint}"
