"""Tests of the recommender on ratings that are made up, for which the right answer is known."""

from __future__ import annotations

import movies
import numpy as np
import pytest
import train_movies

import tensorplug as tp


def made_up(people: int = 60, films: int = 50) -> movies.Ratings:
    """Return every rating of people and films, with two tastes, and noise of 0.1 stars."""
    random = np.random.default_rng(0)
    taste, kind = random.choice([-1, 1], people), random.choice([-1, 1], films)
    pairs = np.stack(np.meshgrid(np.arange(people), np.arange(films), indexing="ij"), axis=-1)
    stars = 3 + random.normal(0, 0.3, (people, 1)) + taste[:, None] * kind
    stars = stars + random.normal(0, 0.1, (people, films))
    return movies.Ratings(
        pairs.reshape(-1, 2).astype(np.int32), stars.reshape(-1).astype(np.float32)
    )


def test_stars_are_a_sum_of_four_parts() -> None:
    model = movies.Recommender.init(tp.random.key(0), 4, 5, 3, 3.5)
    people, films = model.people.table.numpy(), model.films.table.numpy()
    found = model(tp.asarray([[2, 4], [0, 1]]))
    assert (found.dtype, found.shape) == (tp.float32, (2,))
    wanted = 3.5 + np.array([people[2] @ films[4], people[0] @ films[1]])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_means_know_nothing_of_taste() -> None:
    assert movies.error_of_means(made_up()) == pytest.approx(1.0, abs=0.1)


def test_tastes_are_found() -> None:
    ratings = made_up()
    model, history = train_movies.train(ratings, 40, 0, progress=False)
    assert movies.error(history) < 0.5 * movies.error_of_means(ratings)
    stars = model(tp.asarray(ratings.pairs)).numpy()
    assert np.corrcoef(stars, ratings.stars)[0, 1] > 0.9


def test_films_that_were_rated_are_not_recommended() -> None:
    ratings = made_up()
    kept = ratings.take((ratings.pairs[:, 0] != 7) | (ratings.pairs[:, 1] < 40))
    model = movies.Recommender.init(tp.random.key(0), 60, 50, 3, 3.0)
    assert set(movies.recommend(model, kept, 7, 10)) == set(range(40, 50))
