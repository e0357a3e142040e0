"""Batches prepared on one backend while another trains, and a record of when each worked."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import recognizer

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Batch = tuple[tp.Tensor, tp.Tensor]

AHEAD = 2  # batches that may be prepared before they are needed


@dataclass(frozen=True)
class Places:
    """The backend that prepares batches, and the one that trains."""

    prepare: str
    train: str


@dataclass(frozen=True)
class Span:
    """When a batch was prepared, copied or trained with; in seconds since the run began."""

    what: str
    batch: int
    start: float
    end: float


@dataclass
class Run:
    """What a run left: the weights on the training backend, losses before each step, spans."""

    weights: dict[str, tp.Tensor] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(span.end for span in self.spans)


class Work:
    """The three things to do for each batch. Each may be called in any thread.

    Compiled functions are kept, so that a second run does not compile again.
    """

    def __init__(self, places: Places, images: Any, labels: Any, seed: int, size: int) -> None:
        """Copy the images to the backend that prepares; ``size`` images are a batch."""
        self.places = places
        self.batch_key, self.weight_key = tp.random.split(tp.random.key(seed))
        with tp.use_backend(places.prepare):
            self._images, self._labels = tp.asarray(images), tp.asarray(labels)
        self._size = size
        self._prepare = tp.compile(recognizer.prepare)
        self._train = tp.compile(recognizer.train_step)

    def prepare(self, number: int) -> Batch:
        """Return a batch on the backend that prepares. It depends on seed and number alone."""
        # A thread does not inherit the backend of the block that started it: enter it here.
        with tp.use_backend(self.places.prepare):
            key = tp.random.fold_in(self.batch_key, number)
            batch: Batch = self._prepare(self._images, self._labels, key, self._size)
            tp.synchronize()
            return batch

    def copy(self, batch: Batch) -> Batch:
        """Return the batch on the backend that trains."""
        images, labels = batch
        return images.to(self.places.train), labels.to(self.places.train)

    def train(self, run: Run, state: Any, batch: Batch) -> Any:
        """Take a step: change the run's weights, add its loss, return the new state."""
        run.weights, state, value = self._train(run.weights, state, *batch)
        run.losses.append(float(value))  # waits for the device
        return state

    def begin(self) -> tuple[Run, Any]:
        """Return a run with initial weights, and the optimizer's state."""
        weights = recognizer.initial_weights(self.weight_key)
        return Run(weights=weights), recognizer.OPTIMIZER.init(weights)


def in_turn(work: Work, steps: int) -> Run:
    """Prepare, copy and train, batch after batch, in this thread."""
    return _train(work, steps, lambda span: (_prepared(work, n, span) for n in range(steps)))


def pipelined(work: Work, steps: int) -> Run:
    """Do the same, but prepare the next batches in a second thread meanwhile."""

    def batches(span: Callable[..., Any]) -> Iterator[Batch]:
        with ThreadPoolExecutor(1) as pool:
            first = range(min(AHEAD, steps))
            waiting = deque(pool.submit(_prepared, work, number, span) for number in first)
            for following in range(AHEAD, steps + AHEAD):
                batch = waiting.popleft().result()  # raises here what was raised there
                if following < steps:
                    waiting.append(pool.submit(_prepared, work, following, span))
                yield batch

    return _train(work, steps, batches)


def _prepared(work: Work, number: int, span: Callable[..., Any]) -> Batch:
    with span("prepare", number):
        return work.prepare(number)


def _train(
    work: Work, steps: int, batches: Callable[[Callable[..., Any]], Iterator[Batch]]
) -> Run:
    with tp.use_backend(work.places.train):
        run, state = work.begin()
        began = time.perf_counter()

        @contextmanager
        def span(what: str, batch: int) -> Iterator[None]:
            start = time.perf_counter() - began
            yield
            run.spans.append(Span(what, batch, start, time.perf_counter() - began))

        for number, batch in enumerate(batches(span)):
            with span("copy", number):
                there = work.copy(batch)
            with span("train", number):
                state = work.train(run, state, there)
    assert len(run.losses) == steps
    return run
