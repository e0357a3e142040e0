"""Trees: leaves in order, rebuilding, and maps over several trees of one structure."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.tree import flatten, leaves


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0
    norm: Any = field(default=None, init=False)


class Pair(NamedTuple):
    a: Any
    b: Any


TREES = [
    (5, [5]),
    ([], []),
    ({}, []),
    ([1, (2, [3])], [1, 2, 3]),
    ({"b": 1, "a": [2, 3]}, [1, 2, 3]),
    (Pair(1, [2]), [1, 2]),
    (Point(1, {"k": 2}), [1, 2]),
    (Point, [Point]),
    (None, []),
    ("text", ["text"]),
]


@pytest.mark.parametrize(("tree", "found"), TREES)
def test_flatten(tree, found):
    assert leaves(tree) == found
    listed, rebuild = flatten(tree)
    again = rebuild(listed)
    assert (again, type(again)) == (tree, type(tree))
    numbered = rebuild(list(range(10, 10 + len(found))))
    assert leaves(numbered) == list(range(10, 10 + len(found)))


MAPS = [  # trees, what subtracting the leaves of the second from the first gives
    (([3, 4], [1, 2]), [2, 2]),
    (({"a": 5, "b": 7}, {"b": 1, "a": 2}), {"a": 3, "b": 6}),
    ((Pair(3, 4), Pair(1, 1)), Pair(2, 3)),
    ((Point(3, [4]), Point(1, [1])), Point(2, [3])),
    (((3, {"k": [4]}), (1, {"k": [2]})), (2, {"k": [2]})),
]


@pytest.mark.parametrize(("trees", "result"), MAPS)
def test_tree_map_matches_by_structure(trees, result):
    assert tp.tree_map(lambda a, b: a - b, *trees) == result


def test_tree_map_of_one_and_of_three():
    assert tp.tree_map(lambda a: a + 1, {"a": [1]}) == {"a": [2]}
    assert tp.tree_map(lambda *each: sum(each), [1], [2], [3]) == [6]


MISMATCHES = [
    ({"a": 1}, {"b": 1}, "tree_map: tree is dict of ['a'] in the first tree, but dict of ['b']"),
    ({"a": 1}, {"a": 1, "b": 2}, "but dict of ['a', 'b'] in another"),
    ([1, 2], [1], "tree is list of [0, 1] in the first tree, but list of [0]"),
    ([1, 2], (1, 2), "tree is list of [0, 1] in the first tree, but tuple of [0, 1]"),
    ([1, [2]], [1, 2], "tree[1] is list of [0] in the first tree, but int in another"),
    ({"k": 1}, {"k": [1]}, "tree['k'] is int in the first tree, but list of [0] in another"),
    (Point(1), Point([1]), "tree['x'] is int in the first tree"),
    ({"a": 1}, OrderedDict(a=1), "but OrderedDict of ['a'] in another"),
]


@pytest.mark.parametrize(("first", "second", "message"), MISMATCHES)
def test_tree_map_says_where_structures_differ(first, second, message):
    with pytest.raises(ArgumentError) as caught:
        tp.tree_map(lambda a, b: a - b, first, second)
    assert message in str(caught.value)
