"""A recommender: which stars a person would give a film, from the stars of everybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from numpy.typing import NDArray

Embedding = tp.train.layers.Embedding


@dataclass(frozen=True)
class Ratings:
    """Ratings in rows.

    ``pairs``: int32[n, 2], person and film, numbered from 0; ``stars``: float32[n], 0.5 to 5.
    """

    pairs: NDArray[np.int32]
    stars: NDArray[np.float32]

    def take(self, rows: NDArray[Any]) -> Ratings:
        """Return some of the rows."""
        return Ratings(self.pairs[rows], self.stars[rows])


def split(ratings: Ratings, seed: int = 0) -> tuple[Ratings, Ratings]:
    """Keep a tenth of the ratings, drawn at random, for the test; return the rest and those."""
    kept = np.random.default_rng(seed).random(len(ratings.stars)) < 0.1
    return ratings.take(~kept), ratings.take(kept)


@dataclass(frozen=True)
class Recommender:
    """Stars are the mean, how generous the person is, how good the film is, and their affinity.

    The affinity is the product of two vectors, one of the person and one of the film (Koren, Bell
    and Volinsky, "Matrix factorization techniques for recommender systems", 2009).
    """

    mean: tp.Tensor
    generous: Embedding
    good: Embedding
    people: Embedding
    films: Embedding

    @classmethod
    def init(
        cls, key: tp.Tensor, people: int, films: int, features: int, mean: float
    ) -> Recommender:
        """Draw small vectors; begin with the mean of all stars."""
        first, second = tp.random.split(key, 2)
        small, zeros = tp.train.initializers.normal, tp.train.initializers.zeros
        return cls(
            tp.asarray(mean),
            Embedding.init(first, people, 1, table_init=zeros),
            Embedding.init(first, films, 1, table_init=zeros),
            Embedding.init(first, people, features, table_init=small),
            Embedding.init(second, films, features, table_init=small),
        )

    def __call__(self, pairs: tp.Tensor) -> tp.Tensor:
        """Return stars [n] of pairs [n, 2]."""
        person, film = pairs[:, 0], pairs[:, 1]
        affinity = tp.sum(self.people(person) * self.films(film), axis=1)
        return self.mean + self.generous(person)[:, 0] + self.good(film)[:, 0] + affinity


def recommend(model: Recommender, ratings: Ratings, person: int, count: int) -> list[int]:
    """Return the films that a person would like best: with ten ratings, and none of theirs."""
    films = model.films.table.shape[0]
    pairs = tp.stack(
        [tp.full((films,), person, dtype="int32"), tp.arange(films, dtype="int32")], 1
    )
    stars = model(pairs).numpy().copy()
    stars[np.bincount(ratings.pairs[:, 1], minlength=films) < 10] = -np.inf
    stars[ratings.pairs[ratings.pairs[:, 0] == person, 1]] = -np.inf
    return [int(film) for film in np.argsort(-stars)[:count]]


def error(history: list[dict[str, Any]]) -> float:
    """Return the least root mean square error of the test, in stars."""
    return float(np.sqrt(min(row["validation_loss"] for row in history)))


def error_of_means(ratings: Ratings) -> float:
    """Return the error of who knows the means of people and of films alone.

    The stars of a film are taken from what they differ from the person's mean; both means are
    drawn towards that of all, as if there were five more ratings of that.
    """
    known, test = split(ratings)
    mean, rest = known.stars.mean(), known.stars - known.stars.mean()
    found = np.full(len(test.stars), mean, np.float64)
    for column in range(2):
        own, size = known.pairs[:, column], int(ratings.pairs[:, column].max()) + 1
        off = np.bincount(own, rest, size) / (np.bincount(own, minlength=size) + 5)
        rest = rest - off[own]
        found += off[test.pairs[:, column]]
    return float(np.sqrt(np.mean(np.square(found - test.stars))))
