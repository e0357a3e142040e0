"""Tests of the table, its scaling, and one training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import penguins
import train_penguins

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_table_has_all_birds() -> None:
    table = penguins.load()
    assert table.numbers.shape == (344, 4)
    assert np.bincount(table.species).tolist() == [152, 68, 124]
    assert np.isnan(table.numbers).any(axis=1).sum() == 2
    assert np.bincount(table.categories[:, 1]).tolist() == [165, 168, 11]  # the last is unknown


def test_what_is_missing_becomes_the_mean_of_the_training() -> None:
    table, test = penguins.split(penguins.load())
    (numbers, categories), species = penguins.scaling(table)(table)
    assert [x.dtype.name for x in (numbers, categories, species)] == ["float32", "int32", "int32"]
    known = ~np.isnan(table.numbers)
    assert not numbers[~known].any()
    for column, there in zip(numbers.T, known.T, strict=True):
        np.testing.assert_allclose([column[there].mean(), column[there].std()], [0, 1], atol=1e-5)
    assert not set(map(tuple, table.numbers)) & set(map(tuple, test.numbers))


def test_a_training_names_the_birds_of_the_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "folder" / "penguins.png"
    assert train_penguins.main(["--output", str(file)]) == 0
    assert "named Gentoo" in capsys.readouterr().out
    assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
