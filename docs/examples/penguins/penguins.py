"""The table of penguins: columns to features, and the network that names the species."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

FILE = Path(__file__).with_name("penguins.csv")
SPECIES = ("Adelie", "Chinstrap", "Gentoo")
NUMBERS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
CATEGORIES = {"island": ("Biscoe", "Dream", "Torgersen"), "sex": ("female", "male", "")}
HIDDEN, WIDTH = 16, 2  # units; numbers that stand for a category

layers = tp.train.layers


@dataclass(frozen=True)
class Table:
    """Birds in rows.

    ``numbers``: float32[n, 4], NaN where a number is missing; ``categories``: int32[n, 2];
    ``species``: int32[n].
    """

    numbers: NDArray[np.float32]
    categories: NDArray[np.int32]
    species: NDArray[np.int32]

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return some of the rows."""
        return Table(self.numbers[rows], self.categories[rows], self.species[rows])


def load(file: Path = FILE) -> Table:
    """Read the CSV; a missing number is NaN, a missing sex a category of its own."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    numbers = [[float(row[name] or "nan") for name in NUMBERS] for row in rows]
    categories = [
        [known.index(row[name].replace("NA", "")) for name, known in CATEGORIES.items()]
        for row in rows
    ]
    species = [SPECIES.index(row["species"]) for row in rows]
    return Table(
        np.array(numbers, np.float32), np.array(categories, np.int32), np.array(species, np.int32)
    )


def split(table: Table) -> tuple[Table, Table]:
    """Keep every fourth bird for the test; return what is left, and those."""
    rows = np.arange(len(table.species))
    return table.take(rows[rows % 4 != 3]), table.take(rows[rows % 4 == 3])


def scaling(table: Table) -> Callable[[Table], tuple[Any, NDArray[np.int32]]]:
    """Return a function that makes a table examples: ((numbers, categories), species).

    It subtracts the means of *this* table's numbers and divides by their deviations, so that
    nothing of a test is known. A number that is missing becomes the mean, 0.
    """
    mean, deviation = np.nanmean(table.numbers, axis=0), np.nanstd(table.numbers, axis=0)

    def scaled(given: Table) -> tuple[Any, NDArray[np.int32]]:
        numbers = np.nan_to_num((given.numbers - mean) / deviation)
        return (numbers, given.categories), given.species

    return scaled


@dataclass(frozen=True)
class Network:
    """A table of numbers for each category, beside the scaled numbers, and a hidden layer."""

    islands: tp.train.layers.Embedding
    sexes: tp.train.layers.Embedding
    hidden: tp.train.layers.Linear
    out: tp.train.layers.Linear

    @classmethod
    def init(cls, key: tp.Tensor) -> Network:
        """Draw the weights."""
        keys = tp.random.split(key, 4)
        sizes = [len(known) for known in CATEGORIES.values()]
        return cls(
            layers.Embedding.init(keys[0], sizes[0], WIDTH),
            layers.Embedding.init(keys[1], sizes[1], WIDTH),
            layers.Linear.init(keys[2], len(NUMBERS) + 2 * WIDTH, HIDDEN),
            layers.Linear.init(keys[3], HIDDEN, len(SPECIES)),
        )

    def __call__(self, birds: tuple[tp.Tensor, tp.Tensor]) -> tp.Tensor:
        """Return logits [n, 3] of numbers [n, 4], scaled, and categories [n, 2]."""
        numbers, categories = birds
        island, sex = self.islands(categories[:, 0]), self.sexes(categories[:, 1])
        return self.out(tp.nn.relu(self.hidden(tp.concat([numbers, island, sex], axis=1))))
