"""Attributes in the keys of plans: equal only if no kernel could tell them apart."""

from __future__ import annotations

import copy
from collections import namedtuple
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.keys import freeze_attributes

Pair = namedtuple("Pair", ("a", "b"))  # noqa: PYI024  # of any types

DIFFERENT: list[Any] = [
    *(1, True, 1.0, 1 + 0j, "1", np.float32(1), np.float64(1), np.int64(1), np.bool_(True)),
    *(0, False, 0.0, -0.0, None, "", (), [], ((),), [[]], int, bool),
    *((1,), [1], (True,), (1.0,), (1, 1), (1, True), (True, 1), (1, 1.0), (1, None), ("1",)),
    *((int, 1), (1, int), ((int, 1),), ((1,), 1), (1, (1,)), Pair(1, 1), [1, 1], [1, True]),
    *(tp.float32, tp.int32, (tp.float32,), slice, float("nan"), float("inf")),
]


def test_values_that_differ_have_other_keys() -> None:
    keys = [tuple(freeze_attributes({"axis": value})) for value in DIFFERENT]
    for (one, key), (other, other_key) in combinations(zip(DIFFERENT, keys, strict=True), 2):
        assert key != other_key, (one, other)


@pytest.mark.parametrize("value", DIFFERENT, ids=repr)
def test_equal_values_have_equal_keys(value: Any) -> None:
    key, again = (
        tuple(freeze_attributes({"axis": given})) for given in (value, copy.deepcopy(value))
    )
    assert key == again
    assert hash(key) == hash(again)
    assert key != tuple(freeze_attributes({"axes": value}))


@pytest.mark.parametrize("value", [{}, ({},), [set()], np.ones(2), (1, np.ones(2))], ids=repr)
def test_other_values_have_no_key(value: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        freeze_attributes({"axis": value})


def test_lists_that_contain_themselves_have_no_key() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="nested too deeply, or contains itself"):
        freeze_attributes({"axis": endless})
