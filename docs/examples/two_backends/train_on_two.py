"""Train on one backend with batches that another prepares at the same time.

The command compares the two backends on both tasks, then trains in turn and as a pipeline, and
draws one picture. It exits with 1 if the trainings differ, or if the network learns too little.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pipeline
import recognizer
import two_backends_picture
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[1] / "digits"))
import data  # the images are those of the example with the digits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


BATCH = 128
TIMED = 12  # steps to time in both ways
ROUNDS = 6  # of timing, of which the fastest counts: other programs disturb it
ENOUGH = 0.7  # share of distorted test images to be read


def compare(names: Sequence[str], split: data.Split, repeat: int) -> list[tuple[Any, ...]]:
    """Time both tasks on each backend, on the same input.

    Returns:
        For each task its name, milliseconds on each backend, and how far the results differ.

    """
    prepare = tp.compile(recognizer.prepare)
    train = tp.compile(recognizer.train_step)
    key = tp.random.key(1)

    def prepare_once() -> tp.Tensor:
        images, labels = tp.asarray(split.train_images), tp.asarray(split.train_labels)
        distorted: tp.Tensor = prepare(images, labels, key, BATCH)[0]
        return distorted

    inputs = prepare_once().numpy(), np.arange(BATCH, dtype=np.int32) % data.CLASSES
    initial = tp.tree_map(lambda weight: weight.numpy(), recognizer.initial_weights(key))

    def train_once() -> tp.Tensor:
        weights = tp.tree_map(tp.asarray, initial)
        images, labels = map(tp.asarray, inputs)
        loss: tp.Tensor = train(weights, recognizer.OPTIMIZER.init(weights), images, labels)[2]
        return loss

    rows = []
    for title, task in (("prepare a batch", prepare_once), ("a training step", train_once)):
        times, results = [], []
        for name in names:
            with tp.use_backend(name):
                milliseconds, result = _best(task, repeat)
            times.append(milliseconds)
            results.append(result)
        rows.append((title, *times, float(np.max(np.abs(results[1] - results[0])))))
    return rows


def _best(task: Callable[[], tp.Tensor], repeat: int) -> tuple[float, Any]:
    seconds = []
    for _ in range(repeat + 1):  # the first call compiles
        start = time.perf_counter()
        result = task().numpy()
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds[1:]), result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console, split = Console(), data.split(data.load())
    places = pipeline.Places(options.prepare, options.train)
    with console.status("comparing the two backends"):
        rows = compare((places.prepare, places.train), split, options.repeat)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("milliseconds", style="bold")
    for heading in (places.prepare, places.train, "difference"):
        table.add_column(heading, justify="right")
    for title, here, there, difference in rows:
        table.add_row(title, f"{here:.1f}", f"{there:.1f}", f"{difference:.1e}")
    console.print(table)

    work = pipeline.Work(places, split.train_images, split.train_labels, options.seed, BATCH)
    with console.status("training"):
        pipeline.in_turn(work, 1)  # compiles
        timed = min(TIMED, options.steps)
        rounds = [
            (pipeline.in_turn(work, timed), pipeline.pipelined(work, timed)) for _ in range(ROUNDS)
        ]
        turns, piped = (
            min(runs, key=lambda run: run.seconds) for runs in zip(*rounds, strict=True)
        )
        whole = pipeline.pipelined(work, options.steps)
    difference = np.max(np.abs(np.subtract(turns.losses, whole.losses[:timed])))
    share = _test(work, whole, split, options.seed)
    per_step = [1e3 * run.seconds / len(run.losses) for run in (turns, piped)]
    console.print(f"in turn: {per_step[0]:.0f} ms a step; as a pipeline: {per_step[1]:.0f} ms")
    console.print(f"largest difference of their losses: {difference:.1e}")
    console.print(f"distorted test images read: {share:.0%}")
    two_backends_picture.draw(work, turns, piped, whole.losses, options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if difference < 1e-3 and share > ENOUGH else 1


def _test(work: pipeline.Work, run: pipeline.Run, split: data.Split, seed: int) -> float:
    """Return the share of distorted test images that the network reads."""
    with tp.use_backend(work.places.train):
        images, labels = recognizer.prepare(
            tp.asarray(split.test_images),
            tp.asarray(split.test_labels),
            tp.random.key(seed + 1),
            len(split.test_labels),
        )
        return float(recognizer.accuracy(run.weights, images, labels))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--prepare", default="cpu", metavar="BACKEND", help="(default: cpu)")
    parser.add_argument("--train", default="opencl", metavar="BACKEND", help="(default: opencl)")
    parser.add_argument("--steps", type=int, default=100, metavar="N")
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="calls to time")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/two_backends.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
