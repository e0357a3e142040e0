"""Trees: leaves in order, rebuilding, and maps over several trees of one structure."""

from __future__ import annotations

from collections import Counter, OrderedDict, UserDict, defaultdict
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, NamedTuple

import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.tensors.tree import flatten, leaves, matched, paths


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any = 0
    norm: Any = field(default=None, init=False)


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class Layer:
    weight: Any
    activation: Any = field(default="relu", metadata={"static": True})
    bias: Any = None


class Labels(dict[str, Any]):
    """A dict that has something besides."""

    def __init__(self, *args: Any, title: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = title


class Listed(list[Any]):
    pass


class Shape(tuple[Any, ...]):
    __slots__ = ()


class Checked(NamedTuple("_Checked", [("low", Any), ("high", Any)])):
    """A named tuple whose constructor takes something else than its fields."""

    __slots__ = ()

    def __new__(cls, middle: Any) -> Any:
        return super().__new__(cls, middle - 1, middle + 1)


TREES = [
    (5, [5]),
    ([], []),
    ({}, []),
    ([1, (2, [3])], [1, 2, 3]),
    ({"b": 1, "a": [2, 3]}, [1, 2, 3]),
    (Pair(1, [2]), [1, 2]),
    (Point(1, {"k": 2}), [1, 2]),
    (Point, [Point]),
    (Layer(1, "tanh", [2]), [1, 2]),
    (Layer(1, [7]), [1]),
    (OrderedDict(b=1, a=2), [1, 2]),
    (defaultdict(list, a=1, b=[2]), [1, 2]),
    (Counter(a=1), [1]),
    (Labels(a=1, b=2), [1, 2]),
    (Listed([1, [2]]), [1, 2]),
    (Shape((1, 2)), [1, 2]),
    (Checked(5), [4, 6]),
    ({"weight": 1, "bias": None}, [1]),
    ([None, (None,)], []),
    (UserDict(a=1), [UserDict(a=1)]),
    (None, []),
    ("text", ["text"]),
]


@pytest.mark.parametrize(("tree", "found"), TREES)
def test_flatten(tree, found):
    listed, rebuild = flatten(tree)
    assert listed == found
    again = rebuild(listed)
    assert (again, type(again)) == (tree, type(tree))
    numbered = rebuild(list(range(10, 10 + len(found))))
    assert flatten(numbered)[0] == list(range(10, 10 + len(found)))
    assert type(numbered) is type(tree) or tree in (5, "text", Point, UserDict(a=1))
    assert flatten(tree)[0] == found  # the tree itself is as it was


def test_subclasses_keep_what_they_have_besides():
    grown = defaultdict(list, a=1)
    again = flatten(grown)[1]([2])
    assert again == {"a": 2}
    assert again["new"] == []
    assert list(grown) == ["a"]
    assert flatten(Labels(a=1, title="t"))[1]([2]).title == "t"
    assert list(flatten(OrderedDict(b=1, a=2))[1]([3, 4]).items()) == [("b", 3), ("a", 4)]
    # A dict that grew since is rebuilt as it was.
    for kind in (dict, OrderedDict, Labels, Listed):
        tree = kind([1]) if kind is Listed else kind(a=1)
        rebuild = flatten(tree)[1]
        tree.append(5) if kind is Listed else tree.update(b=5)
        assert flatten(rebuild([2]))[0] == [2]


def test_dataclasses():
    layer = Layer(1, bias=2)
    again = flatten(layer)[1]([3, 4])
    assert again == Layer(3, "relu", 4)
    assert layer == Layer(1, "relu", 2)
    with pytest.raises(FrozenInstanceError):
        again.weight = 5

    @dataclass
    class Vector:
        x: Any
        twice: Any = field(init=False)
        tag: Any = field(init=False)

        def __post_init__(self):
            self.twice = self.x * 2

    vector = Vector(3)
    rebuild = flatten(vector)[1]
    assert (rebuild([5]).x, rebuild([5]).twice) == (5, 10)  # the class makes it anew
    assert not hasattr(rebuild([5]), "tag")
    vector.tag = "by hand"
    assert rebuild([5]).tag == "by hand"
    assert flatten(vector)[0] == [3]
    assert leaves(vector) == [3, 6, "by hand"]  # all that is within reach


def test_static_fields_are_no_leaves_of_a_gradient():
    layer = Layer(tp.asarray(3.0), "square")
    f = {"square": lambda w: w * w}
    with tp.use_backend("cpu"):
        gradient = tp.grad(lambda p: f[p.activation](p.weight))(layer)
    assert (gradient.activation, gradient.bias, gradient.weight.item()) == ("square", None, 6)


def _cycles():
    listed: list[Any] = [1]
    listed.append([listed])
    keyed: dict[str, Any] = {"a": 1}
    keyed["self"] = (keyed,)
    point = Point(1, [])
    point.y.append(point)
    return [(listed, "list"), (keyed, "dict"), (point, "Point")]


@pytest.mark.parametrize(("tree", "name"), _cycles(), ids=["list", "dict", "dataclass"])
def test_trees_that_contain_themselves(tree, name):
    with pytest.raises(ArgumentError, match=f"a {name} contains itself"):
        flatten(tree)
    with pytest.raises(ArgumentError, match="contains itself"):
        tp.tree_map(lambda a: a, tree)
    with pytest.raises(ArgumentError, match="contains itself"):
        tp.compile(lambda _: 1)(tree)
    assert leaves(tree) == [1]


def test_a_subtree_in_two_places_is_no_cycle():
    shared = [1]
    assert flatten([shared, {"a": shared}, None, None])[0] == [1, 1]
    assert flatten([shared, shared])[1]([2, 3]) == [[2], [3]]


def test_tidy_and_dispose_end_at_cycles_and_depths(on_the_cpu):
    x = tp.asarray([1.0])
    made = []

    def cyclic():
        result: dict[str, Any] = {"a": x + 1.0, "list": [x + 2.0]}
        result["list"].append(result)
        made.append(x + 3.0)
        return result

    result = tp.tidy(cyclic)
    assert [result["a"].item(), result["list"][0].item(), made[0].is_disposed] == [2, 3, True]
    tp.dispose(result)
    assert result["list"][0].is_disposed
    deep: Any = [x]
    for _ in range(100_000):
        deep = [deep]
    tp.dispose(deep)
    assert x.is_disposed


PATHS = [
    (5, [""]),
    ([1, (2, [3])], ["[0]", "[1][0]", "[1][1][0]"]),
    ({"b": 1, 3: [2]}, ["['b']", "[3][0]"]),
    (Point(1, {"k": 2}), [".x", ".y['k']"]),
    (Layer(1, [9], (2,)), [".weight", ".bias[0]"]),
    ([None, 1, {}], ["[1]"]),
    (None, []),
]


@pytest.mark.parametrize(("tree", "found"), PATHS)
def test_paths(tree, found):
    assert paths(tree) == found
    assert len(found) == len(flatten(tree)[0])


def test_matched_takes_what_stands_at_a_leaf_whole():
    tree = {"a": 1, "b": [2, None]}

    def message(where: str, mine: str, theirs: str) -> str:
        return f"{where}: {mine} and {theirs}"

    assert matched(tree, {"b": [(3, 4), None], "a": [5]}, message, whole=True) == [[5], (3, 4)]
    with pytest.raises(ArgumentError, match=r"^\['b'\]\[1\]: NoneType and int$"):
        matched(tree, {"a": 1, "b": [2, 3]}, message, whole=True)
    with pytest.raises(ArgumentError, match=r"^\['a'\]: int and list of \[0\]$"):
        matched(tree, {"a": [1], "b": [2, None]}, message)


MAPS = [  # trees, what subtracting the leaves of the second from the first gives
    (([3, 4], [1, 2]), [2, 2]),
    (({"a": 5, "b": 7}, {"b": 1, "a": 2}), {"a": 3, "b": 6}),
    ((Pair(3, 4), Pair(1, 1)), Pair(2, 3)),
    ((Point(3, [4]), Point(1, [1])), Point(2, [3])),
    (((3, {"k": [4]}), (1, {"k": [2]})), (2, {"k": [2]})),
    (({"w": 3, "b": None}, {"b": None, "w": 1}), {"w": 2, "b": None}),
    ((Layer(3, "a"), Layer(1, "b")), Layer(2, "a")),
]


@pytest.mark.parametrize(("trees", "result"), MAPS)
def test_tree_map_matches_by_structure(trees, result):
    assert tp.tree_map(lambda a, b: a - b, *trees) == result


def test_tree_map_of_one_and_of_three():
    assert tp.tree_map(lambda a: a + 1, {"a": [1]}) == {"a": [2]}
    assert tp.tree_map(lambda *numbers: sum(numbers), [1], [2], [3]) == [6]


MISMATCHES = [
    ({"a": 1}, {"b": 1}, "tree_map: tree is dict of ['a'] in the first tree, but dict of ['b']"),
    ({"a": 1}, {"a": 1, "b": 2}, "but dict of ['a', 'b'] in another"),
    ([1, 2], [1], "tree is list of [0, 1] in the first tree, but list of [0]"),
    ([1, 2], (1, 2), "tree is list of [0, 1] in the first tree, but tuple of [0, 1]"),
    ([1, [2]], [1, 2], "tree[1] is list of [0] in the first tree, but int in another"),
    ({"k": 1}, {"k": [1]}, "tree['k'] is int in the first tree, but list of [0] in another"),
    (Point(1), Point([1]), "tree.x is int in the first tree"),
    ({"a": 1}, OrderedDict(a=1), "but OrderedDict of ['a'] in another"),
    ({"a": None}, {"a": 1}, "tree['a'] is NoneType in the first tree, but int in another"),
    ([1], [None], "tree[0] is int in the first tree, but NoneType in another"),
]


@pytest.mark.parametrize(("first", "second", "message"), MISMATCHES)
def test_tree_map_says_where_structures_differ(first, second, message):
    with pytest.raises(ArgumentError) as caught:
        tp.tree_map(lambda a, b: a - b, first, second)
    assert message in str(caught.value)
