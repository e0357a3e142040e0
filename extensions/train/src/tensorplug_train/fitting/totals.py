"""Means and metrics over the batches of an epoch, which stay on the device until they are read."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT: Final = 64
"""How many losses are kept on the device before they are read, all in one call."""


class Totals:
    """The mean loss, and the metrics, of the batches so far.

    Losses are averaged in float64, on the host, in the order of the batches: the mean does not
    depend on when they are read.

    ``saved``: what ``kept`` returned, to go on from there.
    """

    def __init__(self, metrics: Mapping[str, Any], saved: Mapping[str, Any] | None = None) -> None:
        before = {"batches": 0, "loss": 0.0, "weight": 0.0, "first_nan": None, **(saved or {})}
        self._metrics = metrics
        self.batches: int = before["batches"]
        self._loss: float = before["loss"]
        self._weight: float = before["weight"]
        self.first_nan: int | None = before["first_nan"]
        self._unread: list[tuple[Tensor, Any]] = []
        self._sums: dict[str, list[Any]] = {
            name: [tree] for name, tree in before.get("sums", {}).items()
        }

    def add(self, loss: Tensor, weight: Any, sums: Mapping[str, Any]) -> None:
        """Take the loss of a batch, its weight, and the sums of its metrics."""
        self.batches += 1
        self._unread.append((loss, weight))
        if len(self._unread) >= KEPT:
            self.read()
        for name, new in sums.items():
            known = self._sums.setdefault(name, [])
            known.append(new)
            if len(known) > 1 and not self._metrics[name].collects:
                known[:] = [self._metrics[name].merge(*known)]

    def read(self) -> float:
        """Read the losses of the device; return the last one of them.

        ``first_nan`` is then the number, from 0, of the first batch whose loss is NaN, or None.
        """
        losses = numbers([loss for loss, _ in self._unread])
        weights = numbers([weight for _, weight in self._unread])
        first = self.batches - len(losses)
        for at, (loss, weight) in enumerate(zip(losses, weights, strict=True), first):
            self._loss += weight * loss
            self._weight += weight
            if math.isnan(loss) and self.first_nan is None:
                self.first_nan = at
        self._unread.clear()
        return losses[-1] if losses else math.nan

    def results(self, prefix: str = "") -> dict[str, Any]:
        """Return the mean loss and the results of the metrics, under names with a prefix.

        Raises:
            ArgumentError: there were no batches, or a metric refuses the labels.

        """
        if not self.batches:
            raise ArgumentError(f"fit: {'validation' if prefix else 'data'} has no batches")
        self.read()
        mean = self._loss / self._weight if self._weight else math.nan
        row: dict[str, Any] = {f"{prefix}loss": mean}
        for name, metric in self._metrics.items():
            result = metric.result(self._merged(name))
            parts = (
                {f"{name}_{part}": value for part, value in result.items()}
                if isinstance(result, dict)
                else {name: result}
            )
            row |= {prefix + part: np.asarray(value).tolist() for part, value in parts.items()}
        return row

    def kept(self) -> dict[str, Any]:
        """Return all that is needed to go on: Python numbers, and ``sums``, a tree of tensors."""
        self.read()
        return {
            "batches": self.batches,
            "loss": self._loss,
            "weight": self._weight,
            "first_nan": self.first_nan,
            "sums": {name: self._merged(name) for name in self._sums},
        }

    def _merged(self, name: str) -> Any:
        """Merge neighbours, then the results, so that what is collected is copied few times."""
        known, merge = self._sums[name], self._metrics[name].merge
        while len(known) > 1:
            known[:] = [reduce(merge, known[at : at + 2]) for at in range(0, len(known), 2)]
        return known[0]


def numbers(values: list[Any]) -> list[float]:
    """Return tensors of rank 0 and Python numbers as floats; ``KEPT`` tensors in one call."""
    if len(values) == KEPT and all(isinstance(value, Tensor) for value in values):
        return [float(value) for value in _stacked(values).tolist()]
    return [float(value) for value in values]


_stacked: Final = tp.compile(tp.stack)  # outside of a program, each value is a call of its own


def check_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metrics by name; refuse what is no dict of them, and names with dots."""
    found = {} if metrics is None else metrics
    members = ("of", "merge", "result", "collects")
    if (
        not isinstance(found, dict)
        or not all(isinstance(name, str) and "." not in name for name in found)
        or not all(hasattr(metric, name) for metric in found.values() for name in members)
    ):
        raise ArgumentError(
            "fit: metrics must be a dict of metrics by name (text without dots), such as "
            f"{{'accuracy': tp.train.metrics.Accuracy()}}, got {metrics!r:.100}"
        )
    return found
