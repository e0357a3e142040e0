"""One step of training, and the measures of one batch, as compiled functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import tensorplug as tp
from tensorplug import Tensor
from tensorplug.plugin import ArgumentError, tree
from tensorplug_train.fitting.objective import Outcome, judge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Trained(NamedTuple):
    """What a step changes, in the order of its arguments.

    ``steps``: how many came before, int32 of rank 0, if a key is derived from it; else None.
    """

    model: Any
    state: Any
    optimizer_state: Any
    steps: Tensor | None


class Steps:
    """The functions of a batch that ``fit`` calls, for an objective and an optimizer.

    ``train(*trained, batch)`` returns ``(*trained, loss, weight, sums)``, and ``check``, with the
    same arguments, ``(loss, weight, sums)``. ``sums``: what each metric knows of the batch. Trees
    are arguments one by one, since a call opens each container of an argument anew.
    """

    def __init__(
        self,
        objective: Callable[..., Any],
        optimizer: Any,
        metrics: Mapping[str, Any],
        key: Tensor | None,
        *,
        compile: bool,
    ) -> None:
        self._judge = judge(objective)
        self._optimizer = optimizer
        self._scale = getattr(optimizer, "scale", None)
        self._metrics = metrics
        self._key = key
        self._structures: dict[str, Any] = {}
        self.train: Any = tp.compile(self._train) if compile else self._train
        self.check: Any = tp.compile(self._check) if compile else self._check

    def begin(self, model: Any, state: Any) -> Trained:
        """Return what there is before the first step."""
        return Trained(model, state, self._optimizer.init(model), self.count(0))

    def rate(self, now: Sequence[Any]) -> dict[str, float]:
        """Return an entry of the learning rate of the next step, if the optimizer has one."""
        rate = self._optimizer.rate(now[2]) if hasattr(self._optimizer, "rate") else None
        return {} if rate is None else {"learning_rate": float(rate)}

    def count(self, steps: int) -> Tensor | None:
        """Return a number of steps as ``Trained`` has it."""
        return None if self._key is None else tp.asarray(steps, dtype=tp.int32)

    def _train(
        self, model: Any, state: Any, optimizer_state: Any, steps: Any, batch: Any
    ) -> tuple[Any, ...]:
        self._alike("data", batch)
        key = None if self._key is None else tp.random.fold_in(self._key, steps)

        def judged(model: Any) -> tuple[Tensor, Outcome]:
            return self._judge(model, batch, state, key, training=True)

        def scaled(model: Any) -> tuple[Tensor, Any]:
            loss, outcome = judged(model)
            scale = self._scale
            return (scale(loss, optimizer_state) if scale else loss), (loss, outcome)

        (_, (loss, outcome)), gradients = tp.value_and_grad(scaled, has_aux=True)(model)
        model, optimizer_state = self._optimizer.step(
            gradients,
            optimizer_state,
            model,
            value=loss,
            value_fn=lambda model: judged(model)[0],  # L-BFGS searches for the length of its step
        )
        steps = None if steps is None else steps + 1
        measured = self._measured(outcome)
        return model, outcome.state, optimizer_state, steps, loss, *measured

    def _check(
        self, model: Any, state: Any, _optimizer_state: Any, _steps: Any, batch: Any
    ) -> tuple[Any, ...]:
        self._alike("validation", batch)
        loss, outcome = self._judge(model, batch, state, None, training=False)
        return loss, *self._measured(outcome)

    def _measured(self, outcome: Outcome) -> tuple[Any, dict[str, Any]]:
        if self._metrics and outcome.predictions is None:
            raise ArgumentError(
                "fit: metrics need an objective that returns an Outcome with labels and "
                "predictions"
            )
        weight, each = outcome.weight, None
        if isinstance(weight, Tensor) and weight.shape != ():
            weight, each = tp.sum(weight), weight
        sums = {
            name: metric.of(outcome.labels, outcome.predictions, each)
            for name, metric in self._metrics.items()
        }
        return weight, sums

    def _alike(self, which: str, batch: Any) -> None:
        """Refuse a batch of another structure than the first one.

        This costs nothing in a program: another structure has another signature, so it is traced.
        """
        structure = tree.tree_map(lambda _leaf: 0, batch)
        tree.matched(
            self._structures.setdefault(which, structure),
            structure,
            lambda where, first, this: (
                f"fit: {which}: batch{where} is {this}, but that of the first batch is {first}"
            ),
        )
