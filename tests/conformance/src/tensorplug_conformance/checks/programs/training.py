"""Training: losses and parameters are those of the same steps in NumPy's float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tensorplug as tp
from tensorplug.plugin import dtypes as dt
from tensorplug_conformance.checks.check import Check, CheckFailedError, NotMeasuredError
from tensorplug_conformance.checks.programs import references
from tensorplug_conformance.checks.programs.models import (
    CONVOLUTIONAL,
    LOGISTIC,
    PERCEPTRON,
    Model,
)
from tensorplug_conformance.checks.programs.references import Update, trained
from tensorplug_conformance.comparing.tolerances import tolerances
from tensorplug_conformance.floats import finfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tensorplug_conformance.case import Array
    from tensorplug_conformance.checks.check import Target
    from tensorplug_conformance.session import Session


STEPS: Final = 24


@dataclass(frozen=True, slots=True)
class Training:
    """A model, the optimizer that trains it, and the same optimizer in NumPy.

    ``optimizer`` None: the steps are written with ``value_and_grad``, without variables.
    """

    name: str
    model: Model
    optimizer: Callable[[], Any] | None
    update: Update


TRAININGS: Final = (
    Training("logistic regression, by hand", LOGISTIC, None, references.sgd(0.5)),
    Training("perceptron, SGD", PERCEPTRON, lambda: tp.train.sgd(0.25), references.sgd(0.25)),
    Training("perceptron, Adam", PERCEPTRON, lambda: tp.train.adam(0.05), references.adam(0.05)),
    Training(
        "convolutional network, momentum",
        CONVOLUTIONAL,
        lambda: tp.train.momentum(0.02, 0.75),
        references.momentum(0.02, 0.75),
    ),
)


class Run:
    """One training in progress, in the current context."""

    def __init__(self, training: Training, dtype: str = "float32", seed: int = 0) -> None:
        model = training.model
        self._loss = model.loss
        self.x, self.y = (tp.asarray(array) for array in model.batch(dtype))
        start = model.start(dtype, seed)
        self.optimizer: Any = training.optimizer() if training.optimizer else None
        make: Any = tp.Variable if self.optimizer else tp.asarray
        self.parameters: dict[str, Any] = {name: make(item) for name, item in start.items()}

    def loss(self) -> Any:
        """Return the current loss."""
        return self._loss(self.parameters, self.x, self.y)

    def step(self) -> Any:
        """Take one step; return the loss before it."""
        if self.optimizer is not None:
            return self.optimizer.minimize(self.loss, list(self.parameters.values()))
        loss, slopes = tp.value_and_grad(self._loss)(self.parameters, self.x, self.y)
        self.parameters = {
            name: parameter - 0.5 * slopes[name] for name, parameter in self.parameters.items()
        }
        return loss

    def steps(self, count: int) -> list[float]:
        """Take ``count`` steps; return the losses before each."""
        return [float(self.step()) for _ in range(count)]

    def values(self) -> dict[str, Array]:
        """Return copies of the parameters."""
        return {name: np.array(parameter.numpy()) for name, parameter in self.parameters.items()}


def _trains(
    training: Training, dtype: str, _target: Target, opened: Callable[[], Session]
) -> None:
    session = opened()
    if dt.of(dtype) not in session.device.backend.dtypes:
        raise NotMeasuredError(f"the backend does not declare {dtype}")
    losses, parameters = trained(training.model, training.update, STEPS)
    with session.entered():
        run = Run(training, dtype)
        reached = run.steps(STEPS)
        values = run.values()
    judge(reached, losses, values, parameters, dtype)


def judge(
    reached: list[float],
    losses: list[float],
    values: Mapping[str, Array],
    parameters: Mapping[str, Array],
    dtype: str,
) -> None:
    """Compare a training with its reference; the allowed error grows with each step.

    That is ``factor * eps * steps`` of the first loss, or of the largest parameter of a name.

    Raises:
        CheckFailedError: at the first step or parameter that is wrong.

    """
    eps = float(finfo(dtype).eps)
    allowed = tolerances().program * eps
    for step, (got, right) in enumerate(zip(reached, losses, strict=True), 1):
        if not abs(got - right) <= allowed * step * losses[0]:
            raise CheckFailedError(f"the loss before step {step} is {got!r}, must be {right!r}")
    for name, meant in parameters.items():
        final = values[name]
        if (final.shape, final.dtype) != (meant.shape, np.dtype(dtype)):
            raise CheckFailedError(f"{name} is {final.dtype}{list(final.shape)} after training")
        error = float(np.max(np.abs(final - meant)) / np.max(np.abs(meant)))
        if not error <= allowed * STEPS:
            raise CheckFailedError(f"{name} is off by {error / eps:.3g} eps after {STEPS} steps")


def _stays(_target: Target, opened: Callable[[], Session]) -> None:
    """A step of training reads no data from the device, and runs on no other one."""
    session = opened()
    backend: Any = session.device.backend
    with session.entered():
        run = Run(TRAININGS[2])
        run.steps(2)
        held = tp.memory()[session.device.name]
        if held.transfers or held.fallbacks:
            raise CheckFailedError(
                f"{held.transfers} tensors came from other devices; kernels that ran on another "
                f"device: {held.fallbacks}"
            )
        if session.device.capabilities.shares_memory is not None:
            raise NotMeasuredError("its buffers lie in the host's memory")
        fetched = watched(backend, run.step)
    if fetched:
        raise CheckFailedError(
            f"a step of training fetched {fetched[0]} to the host: a part of it is computed there"
        )


def watched(backend: Any, step: Callable[[], object]) -> list[Any]:
    """Return the types of the buffers that are fetched to the host during ``step``."""
    fetched: list[Any] = []
    clean = backend.to_host

    def to_host(buffer: Any) -> Any:
        fetched.append(backend.describe(buffer))
        return clean(buffer)

    try:
        backend.to_host = to_host
    except AttributeError:
        raise NotMeasuredError("the backend's methods cannot be watched") from None
    try:
        step()
    finally:
        del backend.to_host
    return fetched


CHECKS: Final = (
    *(
        Check(4, f"training {dtype}: {training.name}", partial(_trains, training, dtype))
        for training in TRAININGS
        for dtype in ("float32", "float64")
    ),
    Check(4, "training stays on the device", _stays),
)
