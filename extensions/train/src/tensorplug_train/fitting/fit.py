"""The loop over epochs and batches."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensorplug.plugin import ArgumentError, NonFiniteError, arguments
from tensorplug_train.fitting import monitoring, passes, resuming
from tensorplug_train.fitting.callbacks import Epoch, scalars
from tensorplug_train.fitting.interrupts import Interrupts
from tensorplug_train.fitting.steps import Steps
from tensorplug_train.fitting.totals import Totals, check_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tqdm import tqdm

    from tensorplug import Tensor
    from tensorplug_train.fitting.checkpoints import Checkpoints


class Fit(NamedTuple):
    """A trained model.

    ``model``, ``state``, ``optimizer_state``: trees of tensors; ``history``: a dict for each
    epoch, the rows of a table.

    Examples:
        >>> def loss(w, batch):
        ...     return tp.mean(tp.square(w - batch))
        >>> fitted = tp.train.fit(
        ...     tp.asarray(0.0), [tp.asarray([2.0])], loss, tp.train.sgd(0.25), progress=False
        ... )
        >>> fitted.model.item(), fitted.history[0]["loss"]
        (1.0, 4.0)

    """

    model: Any
    state: Any
    optimizer_state: Any
    history: list[dict[str, Any]]


def fit(
    model: Any,
    data: Iterable[Any],
    objective: Callable[..., Any],
    optimizer: Any,
    *,
    epochs: int = 1,
    key: Tensor | None = None,
    validation: Iterable[Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    callbacks: Sequence[Callable[[Epoch], Any]] = (),
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    state: Any = None,
    progress: bool = True,
    compile: bool = True,
    on_nan: Literal["raise", "stop", "ignore"] = "raise",
) -> Fit:
    """Train a model: take a step of the optimizer for each batch, in so many epochs.

    Each step is one call of a compiled function. Losses stay on the device: 64 of them are read
    in one call, and the last one where the progress bar shows it, at most twice a second.

    The first Ctrl-C ends the training after the current step: a checkpoint is saved, and the
    model and the history so far are returned. A second one raises ``KeyboardInterrupt``.

    Args:
        model: a tree of tensors, all of which are trained.
        data: what ``batches`` returns, or any iterable of batches: trees of tensors. An iterator
            serves for one epoch.
        objective: ``objective(model, batch)``, which returns the loss, of rank 0, or the loss and
            an ``Outcome``. It also gets, by keyword, those of ``state``, ``key`` (for noise, or
            None) and ``training`` (a bool) that it has parameters for. ``supervised`` makes one.
        optimizer: what ``adam`` and the others return, or an object with their ``init`` and
            ``step``; ``LossScaled`` scales the loss.
        epochs: how often to go over the data.
        key: from which each step derives a key of its own, by its number. Needed for noise.
        validation: like ``data``: batches for which the loss and the metrics are computed after
            each epoch.
        metrics: by name; their results are in the history under this name, and under
            ``validation_`` and the name. If a result is a dict, its names are added.
        callbacks: functions of an ``Epoch``, called after each epoch. Training stops if one of
            them returns True.
        checkpoints: where to save the model after each epoch, and when interrupted.
        resume: whether to go on from the latest checkpoint, if there is one. Losses are then
            bitwise those of a run that was never interrupted. A run that a callback stopped is at
            its end: nothing is trained.
        state: of the model, such as ``layers.initial_state(model)``.
        progress: whether to show a bar for each epoch.
        compile: whether to compile the step; without it, each op is called by itself.
        on_nan: what to do when a loss that was read is NaN: raise an error, stop and return, or
            go on, as is right for ``LossScaled``, which skips such steps.

    Returns:
        ``Fit(model, state, optimizer_state, history)``. A row of the history has ``epoch``,
        ``step`` (of the last step, from 1), ``loss`` (the mean over the epoch, during which the
        model changes), the metrics, the same of the validation, ``learning_rate`` (of the
        next step, if the optimizer has one), and ``seconds``.

    Raises:
        ArgumentError: an argument is not of these kinds; there are no batches; batches differ in
            structure; an iterator cannot serve for another epoch; a name to monitor is not in the
            history; the folder has checkpoints, but ``resume`` is False, or those of another
            model.
        ShapeError: the objective returns a loss that is no scalar.
        NonFiniteError: a loss is NaN; the message has the epoch and the step.

    Examples:
        >>> batches = [(tp.asarray([[1.0], [2.0]]), tp.asarray([[3.0], [6.0]]))]
        >>> def loss(w, batch):
        ...     x, y = batch
        ...     return tp.mean(tp.square(x @ w - y))
        >>> fitted = tp.train.fit(
        ...     tp.zeros((1, 1)), batches, loss, tp.train.sgd(0.1), epochs=20, progress=False
        ... )
        >>> round(fitted.model.item(), 2), round(fitted.history[0]["loss"], 2)
        (3.0, 22.5)

    """
    metrics = check_metrics(metrics)
    _check(data, validation, epochs, on_nan)
    monitoring.check_names([*callbacks, checkpoints], metrics, validated=validation is not None)
    steps = Steps(objective, optimizer, metrics, key, compile=compile)
    now: Sequence[Any]
    begun = resuming.begin(steps, model, state, checkpoints, resume=resume)
    now, epoch, history, saved, stopped = begun
    with Interrupts() as interrupts:
        while epoch < epochs and not stopped and not interrupts.seen():
            began, before = time.perf_counter(), history[-1]["step"] if history else 0
            totals, saved = Totals(metrics, saved), None
            with _shown(data, epoch, epochs, totals, progress=progress) as bar:
                for batch in passes.rest(data, epoch, totals.batches):
                    *now, loss, weight, sums = steps.train(*now, batch)
                    totals.add(loss, weight, sums)
                    if bar.update():  # it was drawn, which happens twice a second at most
                        bar.set_postfix(loss=totals.read(), refresh=False)
                    if interrupts.seen() or (totals.first_nan is not None and on_nan != "ignore"):
                        break
                totals.read()
                if totals.first_nan is not None and on_nan != "ignore":
                    if on_nan == "stop":
                        break
                    step = before + totals.first_nan + 1
                    raise NonFiniteError(
                        f"fit: the loss is NaN in epoch {epoch + 1} at step {step}"
                    )
                checked = _validated(steps, now, validation, metrics, interrupts)
                if interrupts.seen():
                    resuming.keep(checkpoints, now, epoch, history, totals)
                    break
                row = {"epoch": epoch + 1, "step": before + totals.batches, **totals.results()}
                row |= checked | steps.rate(now) | {"seconds": time.perf_counter() - began}
                bar.set_postfix(_short(row))
            epoch, history = epoch + 1, [*history, row]
            resuming.keep(checkpoints, now, epoch, history)
            told = Epoch(history, *now[:3])
            answers = [callback(told) for callback in callbacks]
            if stopped := any(answers):
                resuming.keep(checkpoints, now, epoch, history, stopped=True)
    trained, trained_state, optimizer_state, _ = now
    return Fit(trained, trained_state, optimizer_state, history)


def _validated(
    steps: Steps,
    now: Sequence[Any],
    validation: Iterable[Any] | None,
    metrics: Mapping[str, Any],
    interrupts: Interrupts,
) -> dict[str, Any]:
    """Return the loss and the metrics of the validation; {} without one, or if interrupted."""
    totals = Totals(metrics)
    for batch in () if validation is None else passes.rest(validation, 0, 0):
        totals.add(*steps.check(*now, batch))
        if interrupts.seen():
            break
    return {} if validation is None or interrupts.seen() else totals.results("validation_")


@contextmanager
def _shown(
    data: Any, epoch: int, epochs: int, totals: Totals, *, progress: bool
) -> Iterator[tqdm[Any]]:
    """Show a bar for an epoch, whose place is added to errors."""
    from tqdm import tqdm  # imported where it is used, so that ``import tensorplug`` stays fast

    with tqdm(
        total=passes.length(data),
        initial=totals.batches,
        desc=f"epoch {epoch + 1}/{epochs}",
        disable=not progress,
        mininterval=0.5,
    ) as bar:
        try:
            yield bar
        except Exception as error:
            error.add_note(f"fit: in epoch {epoch + 1}, after {totals.batches} batches")
            raise


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {"epoch", "step", "seconds"}
    return {name: value for name, value in scalars(row).items() if name not in hidden}


def _check(data: Any, validation: Any, epochs: int, on_nan: str) -> None:
    if type(epochs) is not int or epochs < 1:
        raise ArgumentError(
            f"fit: epochs must be a positive integer, got {arguments.quoted(epochs)}"
        )
    if on_nan not in {"raise", "stop", "ignore"}:
        raise ArgumentError(
            f"fit: on_nan must be 'raise', 'stop' or 'ignore', got {arguments.quoted(on_nan)}"
        )
    passes.check(data, epochs, "data")
    if validation is not None:
        passes.check(validation, epochs, "validation")
