"""What ``fit`` minimizes: a function of a model and a batch."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug import Tensor
from tensorplug.plugin import ArgumentError, ShapeError, arguments
from tensorplug_train.layers import apply

if TYPE_CHECKING:
    from collections.abc import Callable


class Outcome(NamedTuple):
    """What an objective knows beside its loss.

    ``state``: of the model after the batch, such as running statistics; ``labels`` and
    ``predictions``: what metrics compare; ``weight``: how much the batch counts in means over an
    epoch, usually the number of examples, or a weight of each example, ``[n]``.

    Examples:
        >>> def objective(model, batch):
        ...     x, labels = batch
        ...     error = tp.mean(tp.abs(x @ model - labels))
        ...     return error, tp.train.Outcome(labels=labels, predictions=x @ model, weight=len(x))
        >>> loss, outcome = objective(tp.ones((2, 1)), (tp.ones((3, 2)), tp.zeros((3, 1))))
        >>> loss.item(), outcome.weight
        (2.0, 3)

    """

    state: Any = None
    labels: Any = None
    predictions: Any = None
    weight: float | Tensor = 1.0


def supervised(loss: Callable[..., Tensor]) -> Callable[..., tuple[Tensor, Outcome]]:
    """Return an objective for batches ``(x, labels)``: the loss of a model's predictions.

    The model is called by ``layers.apply``, so it may have state and noise. A batch counts by the
    number of its examples.

    Args:
        loss: a function of labels and predictions that returns their mean loss, of rank 0, such
            as those of ``tp.losses``.

    Raises:
        ArgumentError: a batch is not a pair.

    Examples:
        >>> objective = tp.train.supervised(tp.losses.mean_squared_error)
        >>> batch = tp.asarray([[1.0], [2.0]]), tp.asarray([[2.0], [6.0]])
        >>> loss, outcome = objective(lambda x: 2 * x, batch)
        >>> loss.item(), outcome.weight
        (2.0, 2)

    """

    def objective(
        model: Any, batch: Any, state: Any = None, *, key: Any = None, training: bool = False
    ) -> tuple[Tensor, Outcome]:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ArgumentError(
                "supervised: a batch must be a pair (x, labels), got " + outline(batch)
            )
        x, labels = batch
        predictions, state = apply(model, x, state, key=key, training=training)
        return loss(labels, predictions), Outcome(state, labels, predictions, labels.shape[0])

    return objective


def judge(objective: Callable[..., Any]) -> Callable[..., tuple[Tensor, Outcome]]:
    """Return a function that calls ``objective`` with what it names, and checks the result.

    It takes ``(model, batch, state, key, *, training)``. The last three are passed if
    ``objective`` has parameters of these names.

    Raises:
        ArgumentError: ``objective`` is not a function.

    """
    if not callable(objective):
        raise ArgumentError(
            "fit: objective must be a function of a model and a batch, got "
            f"{arguments.quoted(objective)}"
        )
    parameters = inspect.signature(objective).parameters
    whole = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    named = [name for name in ("state", "key", "training") if whole or name in parameters]
    return partial(_judged, objective, frozenset(named))


def _judged(
    objective: Callable[..., Any],
    named: frozenset[str],
    model: Any,
    batch: Any,
    state: Any,
    key: Any,
    *,
    training: bool,
) -> tuple[Tensor, Outcome]:
    offered = {"state": state, "key": key, "training": training}
    found = objective(model, batch, **{name: offered[name] for name in offered if name in named})
    loss, outcome = found if isinstance(found, tuple) else (found, Outcome(state))
    if not isinstance(loss, Tensor) or not isinstance(outcome, Outcome):
        raise ArgumentError(
            "fit: the objective must return a loss, or a loss and an Outcome, got "
            f"{outline(found)}"
        )
    if loss.shape != ():
        raise ShapeError(
            f"fit: the objective must return a scalar loss, got {loss.type}; take its mean"
        )
    return loss, outcome


def outline(batch: Any) -> str:
    """Return a short description of a tree for messages: containers, and types of leaves."""
    if isinstance(batch, Tensor):
        return str(batch.type)
    if isinstance(batch, dict):
        return "{" + ", ".join(f"{key!r}: {outline(batch[key])}" for key in batch) + "}"
    if isinstance(batch, tuple | list):
        return f"{type(batch).__name__} of ({', '.join(outline(part) for part in batch)})"
    return type(batch).__name__
