"""Train a small transformer on this project's decision records, and let it write another one.

The command shows the loss on the way and what the network writes, and draws one picture. It
exits with 1 when the network predicts held-out text no better than the frequencies of its
characters do.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import records
import transformer
import transformer_picture
from rich.console import Console

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence

BATCH = 32  # pieces of text


def train(
    corpus: records.Corpus,
    sizes: transformer.Sizes,
    epochs: int,
    seed: int,
    *,
    progress: bool = True,
) -> tuple[tp.train.Fit, dict[int, str]]:
    """Train on the active backend.

    Returns:
        What ``fit`` returns; by step, what the network writes before, on the way and after.

    """
    for_weights, for_order, for_noise, for_text = tp.random.split(tp.random.key(seed), 4)
    network = transformer.network(for_weights, len(corpus.alphabet), sizes)
    data = tp.train.batches(records.pieces(corpus.train, sizes.context), BATCH, key=for_order)
    write, samples = tp.compile(transformer.write), {}

    def sample(network: Any, step: int) -> None:
        begin = tp.asarray(corpus.held_out[: sizes.context])
        numbers = write(network, for_text, begin, 240, 0.7)
        samples[step] = corpus.read(numbers.numpy())

    def after_epoch(epoch: tp.train.Epoch) -> None:
        if len(epoch.history) in {max(epochs // 4, 1), epochs}:
            sample(epoch.model, epoch.row["step"])

    sample(network, 0)
    fitted = tp.train.fit(
        network,
        data,
        tp.train.supervised(tp.losses.sparse_softmax_cross_entropy),
        optimizer(epochs * len(data)),
        epochs=epochs,
        key=for_noise,
        validation=tp.train.batches(records.pieces(corpus.held_out, sizes.context), 4 * BATCH),
        callbacks=[after_epoch],
        progress=progress,
    )
    return fitted, samples


def optimizer(steps: int) -> Any:
    """Return Adam, whose learning rate rises at first, and then falls along a cosine."""
    falls = tp.train.cosine_decay(3e-3, steps, final=1e-4)
    return tp.train.chain(clip, tp.train.adam(tp.train.warmup(falls, max(steps // 20, 1))))


def clip(gradients: Any) -> Any:
    """Return gradients of norm 1 at most."""
    return tp.train.clip_by_global_norm(gradients, 1.0)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    console, corpus, sizes = Console(highlight=False), records.load(), transformer.Sizes()
    runs = {}
    for name in options.backend or [tp.get_backend()]:
        with tp.use_backend(name):
            runs[name] = train(corpus, sizes, options.epochs, options.seed)
    (fitted, samples), *_ = runs.values()
    for step, sample in samples.items():
        console.rule(f"after {step} steps")
        console.print(sample, markup=False)
    console.rule()
    for name, (other, _) in runs.items():
        apart = max(
            abs(row["loss"] - first["loss"])
            for row, first in zip(other.history, fitted.history, strict=True)
        )
        console.print(f"{name}: losses differ from the first backend's by at most {apart:.1e}")
    limit, shown = records.by_frequency(corpus), corpus.held_out[: sizes.context]
    maps = transformer.attention_maps(fitted.model, tp.asarray(shown))
    transformer_picture.draw(
        fitted.history, limit, samples, corpus.read(shown), maps[-1].numpy(), options.output
    )
    console.print(f"Picture: {options.output}")
    reached = [other.history[-1]["validation_loss"] for other, _ in runs.values()]
    return 0 if max(reached) < limit else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--backend",
        action="append",
        metavar="NAME",
        help="may be repeated (default: the one that tensorplug chooses)",
    )
    parser.add_argument("--epochs", type=int, default=16, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--output", type=Path, default=Path("out/transformer.png"), metavar="PNG")
    return parser


if __name__ == "__main__":
    sys.exit(main())
