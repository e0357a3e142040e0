"""A learning rate to begin with, from a short run in which it grows."""

from __future__ import annotations

import math
from itertools import count, islice, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import tensorplug as tp
from tensorplug.plugin import ArgumentError
from tensorplug_train.fitting import passes
from tensorplug_train.fitting.steps import Steps
from tensorplug_train.fitting.totals import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tensorplug import Tensor

_SMOOTHING: Final = 0.9  # the share of the running mean that stays at each step
_DIVERGED: Final = 4.0  # times the least smoothed loss


class LearningRates(NamedTuple):
    """What ``find_learning_rate`` found.

    ``suggestion``: the rate at which the loss fell fastest; ``rows``: a dict for each step with
    ``learning_rate``, ``loss`` and ``smoothed``, a running mean of the losses.

    Examples:
        >>> rows = [{"learning_rate": 0.1, "loss": 2.0, "smoothed": 2.0}]
        >>> tp.train.LearningRates(0.1, rows).suggestion
        0.1

    """

    suggestion: float
    rows: list[dict[str, float]]


def find_learning_rate(
    model: Any,
    data: Iterable[Any],
    objective: Callable[..., Any],
    optimizer: Callable[[Any], Any],
    *,
    lowest: float = 1e-6,
    highest: float = 10.0,
    steps: int = 100,
    key: Tensor | None = None,
    state: Any = None,
) -> LearningRates:
    """Train with a learning rate that grows from step to step; return the losses and a suggestion.

    The rate grows by the same factor at each step. The run ends early when the smoothed loss is
    NaN, or four times the least one. The suggestion is the rate at which the smoothed loss falls
    most steeply, over the logarithm of the rate (Smith, "Cyclical learning rates for training
    neural networks", 2017). The model is not changed. Losses are read at each step.

    ``model``, ``data``, ``objective``, ``key``, ``state``: as for ``fit``; data that end are gone
    over again. ``optimizer``: makes an optimizer with a learning rate: ``tp.train.adam``, or a
    function such as ``lambda rate: tp.train.adamw(rate, weight_decay=0.1)``. ``lowest`` and
    ``highest``: the first and the last rate; ``steps``: how many there are, 3 or more.

    Raises:
        ArgumentError: an argument is not of these kinds; there are no batches; the loss never
            falls.

    Examples:
        >>> batches = [(tp.asarray([[1.0], [2.0]]), tp.asarray([[3.0], [6.0]]))]
        >>> def loss(w, batch):
        ...     x, y = batch
        ...     return tp.mean(tp.square(x @ w - y))
        >>> found = tp.train.find_learning_rate(tp.zeros((1, 1)), batches, loss, tp.train.sgd)
        >>> 0.01 < found.suggestion < 1.0
        True

    """
    if not 0 < lowest < highest < math.inf or type(steps) is not int or steps < 3:
        raise ArgumentError(
            "find_learning_rate: 0 < lowest < highest and at least 3 steps are needed, got "
            f"lowest={lowest}, highest={highest}, steps={steps}"
        )
    passes.check(data, 1, "data", "find_learning_rate")
    growth = math.log(highest / lowest) / (steps - 1)

    def rate(step: Tensor) -> Tensor:
        return lowest * tp.exp(growth * tp.astype(step, tp.float32))

    trying = Steps(objective, optimizer(rate), {}, key, compile=True)
    now: Sequence[Any] = trying.begin(model, state)
    rows: list[dict[str, float]] = []
    mean = least = math.inf
    for step, batch in enumerate(islice(_repeated(data), steps)):
        *now, loss, _, _ = trying.train(*now, batch)
        (value,) = numbers([loss])
        mean = value if not rows else _SMOOTHING * mean + (1 - _SMOOTHING) * value
        least = min(least, mean)
        if not mean <= _DIVERGED * abs(least):
            break
        rows.append(
            {"learning_rate": lowest * math.exp(growth * step), "loss": value, "smoothed": mean}
        )
    return LearningRates(_steepest(rows), rows)


def _repeated(data: Any) -> Iterator[Any]:
    """Go over data again and again; once over an iterator, and over no batches."""
    for epoch in count():
        empty = True
        for batch in passes.rest(data, epoch, 0):
            empty = False
            yield batch
        if empty or iter(data) is data:
            return


def _steepest(rows: list[dict[str, float]]) -> float:
    if not rows:
        raise ArgumentError("find_learning_rate: data has no batches, or the first loss is NaN")
    slopes = [after["smoothed"] - before["smoothed"] for before, after in pairwise(rows)]
    least = min(slopes, default=0.0)
    if least >= 0:
        raise ArgumentError(
            "find_learning_rate: the loss never falls; its first values are "
            + ", ".join(f"{row['loss']:.4g}" for row in rows[:5])
        )
    return rows[slopes.index(least)]["learning_rate"]
