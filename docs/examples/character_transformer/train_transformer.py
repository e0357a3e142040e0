"""Train a small transformer on this project's decision records, and let it write another one.

The command shows the loss on the way and what the network writes, and draws one picture. It
exits with 1 when the network predicts held-out text no better than the frequencies of its
characters do.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import transformer
import transformer_picture
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence


RECORDS = Path(__file__).parents[2] / "adr"
HELD_OUT = 0.1  # of the text, at its end


@dataclass(frozen=True)
class Corpus:
    """A text as numbers: positions in ``alphabet``."""

    alphabet: str
    train: np.ndarray[Any, np.dtype[np.int32]]
    held_out: np.ndarray[Any, np.dtype[np.int32]]

    def read(self, numbers: tp.Tensor) -> str:
        """Return the text that ``numbers`` stand for."""
        return "".join(self.alphabet[number] for number in numbers.tolist())


@dataclass(frozen=True)
class Setting:
    """How to train."""

    sizes: transformer.Sizes
    steps: int
    batch: int = 32
    rate: float = 0.1  # of dropout

    @property
    def optimizer(self) -> Any:
        """Adam, whose learning rate rises at first, and then falls along a cosine."""
        falls = tp.train.cosine_decay(3e-3, self.steps, final=1e-4)
        return tp.train.adam(tp.train.warmup(falls, max(self.steps // 20, 1)))


@dataclass
class Run:
    """What one training gave.

    ``losses``: of each step. ``tests``: losses of held-out text by step. ``samples``: what the
    network wrote by step. ``shown``: a piece of held-out text; ``maps``: how the trained network
    attends to it.
    """

    losses: list[float] = field(default_factory=list)
    tests: dict[int, float] = field(default_factory=dict)
    samples: dict[int, str] = field(default_factory=dict)
    shown: str = ""
    maps: list[np.ndarray[Any, Any]] = field(default_factory=list)


def load(folder: Path = RECORDS) -> Corpus:
    """Read the records in order; drop the few characters that are not ASCII."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("0*.md"))]
    text = "\n".join(texts).encode("ascii", errors="ignore").decode()
    alphabet = "".join(sorted(set(text)))
    numbers = np.array([alphabet.index(character) for character in text], np.int32)
    end = round(len(numbers) * (1 - HELD_OUT))
    return Corpus(alphabet, numbers[:end], numbers[end:])


def train(corpus: Corpus, setting: Setting, seed: int, progress: Progress) -> Run:
    """Train on the active backend, and let the network write before, on the way and after."""
    sizes, run = setting.sizes, Run()
    for_weights, for_steps, for_tests, for_text = tp.random.split(tp.random.key(seed), 4)
    text, held_out = tp.asarray(corpus.train), tp.asarray(corpus.held_out)
    tests = transformer.windows(for_tests, held_out, 64, sizes.context + 1)
    p = transformer.initial_parameters(for_weights, sizes)
    state = setting.optimizer.init(p)
    step, loss = tp.compile(transformer.train_step), tp.compile(transformer.loss)
    write = tp.compile(transformer.write)
    task = progress.add_task(tp.get_backend(), total=setting.steps, test=float("nan"))
    for number in range(setting.steps + 1):
        if number % max(setting.steps // 20, 1) == 0 or number == setting.steps:
            run.tests[number] = float(loss(p, tests, sizes.heads))
            progress.update(task, test=run.tests[number])
        if number in {0, setting.steps // 4, setting.steps}:
            begin = held_out[: sizes.context]
            numbers = write(p, for_text, begin, sizes.heads, 240, 0.7)
            run.samples[number] = corpus.read(numbers)
        if number < setting.steps:
            key = tp.random.fold_in(for_steps, number)
            p, state, value = step(p, state, key, text, setting)
            run.losses.append(float(value))
            progress.advance(task)
    piece = held_out[: sizes.context]
    run.shown = corpus.read(piece)
    run.maps = [each.numpy() for each in transformer.attention_maps(p, piece, sizes.heads)]
    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console, corpus = Console(), load()
    setting = Setting(transformer.Sizes(len(corpus.alphabet)), options.steps)
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("held-out loss {task.fields[test]:.3f}"),
        TimeElapsedColumn(),
    )
    runs: list[Run] = []
    with Progress(*columns, console=console) as progress:
        for name in options.backend or [tp.get_backend()]:
            with tp.use_backend(name):
                runs.append(train(corpus, setting, options.seed, progress))
    for number, sample in runs[0].samples.items():
        console.rule(f"after {number} steps")
        console.print(sample, markup=False, highlight=False)
    console.rule()
    for name, run in zip(options.backend or [], runs, strict=False):
        apart = np.abs(np.subtract(run.losses, runs[0].losses)).max()
        console.print(f"{name}: losses differ from the first backend's by at most {apart:.1e}")
    transformer_picture.draw(runs[0], by_frequency(corpus), options.output)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if all(run.tests[options.steps] < by_frequency(corpus) for run in runs) else 1


def by_frequency(corpus: Corpus) -> float:
    """Return the loss on held-out text of somebody who knows how frequent each character is."""
    counts = np.bincount(corpus.train, minlength=len(corpus.alphabet)) + 1.0
    return float(-np.mean(np.log(counts / counts.sum())[corpus.held_out]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="may be repeated (default: the one that tensorplug chooses)",
    )
    parser.add_argument("--steps", type=int, default=4000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/transformer.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
