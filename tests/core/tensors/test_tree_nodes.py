"""Registered classes are nodes of trees everywhere; static fields are not children."""

from __future__ import annotations

import copy
import dataclasses
import gc
import weakref
from collections import UserDict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, CompileError, RegistrationError
from tensorplug.tensors import tree


class Scale:
    """A class whose children are attributes."""

    def __init__(self, weight, axis):
        self.weight = weight
        self.axis = axis

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # like that of a dataclass

    @cached_property
    def doubled(self):
        return 2 * self.weight


class Slotted:
    __slots__ = ("__hidden", "bias", "weight")

    def __init__(self, weight, bias, hidden):
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "_Slotted__hidden", hidden)

    def __setattr__(self, name, value):
        raise AttributeError("frozen")

    @property
    def hidden(self):
        return self.__hidden


class Bag:
    """A class with functions: children by name, and a title."""

    def __init__(self, title, **items):
        self.title = title
        self.items = items


class Queue:
    """A class with functions: children by position."""

    def __init__(self, *items):
        self.items = items


@pytest.fixture(autouse=True)
def registered():
    tp.register_tree(Scale, children=["weight"])
    tp.register_tree(Slotted, children=("weight", "bias"))
    tp.register_tree(
        Bag, lambda bag: (bag.items, bag.title), lambda title, items: Bag(title, **items)
    )
    tp.register_tree(Queue, lambda q: (q.items, None), lambda _, items: Queue(*items))
    yield
    for kind in (Scale, Slotted, Bag, Queue):
        tp.unregister_tree(kind)


NODES = [
    (lambda: Scale(1, 0), [1], [".weight"]),
    (lambda: Scale({"a": [1, 2]}, 0), [1, 2], [".weight['a'][0]", ".weight['a'][1]"]),
    (lambda: Slotted(1, None, "h"), [1], [".weight"]),
    (lambda: Slotted(1, Scale(2, 0), "h"), [1, 2], [".weight", ".bias.weight"]),
    (lambda: Bag("t", a=1, b=[2]), [1, 2], ["['a']", "['b'][0]"]),
    (lambda: Bag("t", items=1), [1], [".items"]),
    (lambda: Queue(1, (2,)), [1, 2], ["[0]", "[1][0]"]),
    (Queue, [], []),
]


@pytest.mark.parametrize(("make", "leaves", "paths"), NODES)
def test_leaves_and_paths(make, leaves, paths):
    node = make()
    found, rebuild = tree.flatten(node)
    assert (found, tree.paths(node)) == (leaves, paths)
    again = rebuild([10 * leaf for leaf in leaves])
    assert type(again) is type(node)
    assert again is not node
    assert tree.flatten(again)[0] == [10 * leaf for leaf in leaves]
    assert tree.flatten(node)[0] == leaves


def test_other_attributes_stay():
    assert tree.flatten(Scale(1, 5))[1]([2]) == Scale(2, 5)
    again = tree.flatten(Slotted(1, 2, "h"))[1]([3, 4])
    assert (again.weight, again.bias, again.hidden) == (3, 4, "h")
    assert tree.flatten(Bag("t", a=1))[1]([2]).title == "t"


def test_cached_properties_are_computed_again():
    scale = Scale(1, 0)
    assert scale.doubled == 2
    again = tree.flatten(scale)[1]([5])
    assert again.doubled == 10
    assert tree.fixed(scale) == ["axis", 0]


def test_leaves_reach_static_data():
    assert tree.leaves([Bag("t", a=1)]) == [1, "t"]


def test_a_decorator():
    @tp.register_tree(children=["x"])
    class Point:
        def __init__(self, x):
            self.x = x

    @tp.register_tree(flatten=lambda t: ([t.x], None), unflatten=lambda _, new: Other(new[0]))
    class Other(Point):
        pass

    for kind in (Point, Other):
        assert tp.tree_map(lambda leaf: leaf + 1, kind(1)).x == 2
        assert type(tp.tree_map(lambda leaf: leaf + 1, kind(1))) is kind
        tp.unregister_tree(kind)


# Where trees are taken ------------------------------------------------------------------


def test_gradients(on_the_cpu):
    scale = Scale(tp.asarray([1.0, 2.0]), 0)
    gradient = tp.grad(lambda s: tp.sum(s.weight**2, axis=s.axis))(scale)
    assert (type(gradient), gradient.axis) == (Scale, 0)
    assert gradient.weight.tolist() == [2, 4]
    with pytest.raises(ArgumentError, match=r"at \['x'\]\.weight"):
        tp.grad(lambda w: {"x": Scale(3, 0), "y": w})(tp.asarray(1.0))
    value, pull = tp.vjp(lambda s: Queue(s.weight, 3 * s.weight), scale)
    assert value.items[1].tolist() == [3, 6]
    (cotangent,) = pull(Queue(tp.ones((2,)), tp.ones((2,))))
    assert cotangent.weight.tolist() == [4, 4]


def test_compiled_functions(on_the_cpu):
    traced = []

    @tp.compile
    def f(scale, bag):
        traced.append(scale.axis)
        return Scale(tp.sum(scale.weight, axis=scale.axis) * bag.items["rate"], "result")

    weight = tp.asarray([[1.0, 2.0], [3.0, 4.0]])
    results = [
        f(Scale(weight, axis), Bag("t", rate=rate))
        for axis, rate in [(0, 2.0), (0, 3.0), (1, 2.0)]
    ]
    assert [result.weight.tolist() for result in results] == [[8, 12], [12, 18], [6, 14]]
    assert [result.axis for result in results] == ["result"] * 3
    assert traced == [0, 1]
    f(Scale(weight, 0), Bag("other", rate=2.0))
    f(Scale(weight, 0), Bag("t", rate=2.0, unused=tp.ones((2,))))
    assert len(traced) == 4


def test_compile_says_what_is_not_static(on_the_cpu):
    f = tp.compile(lambda scale: scale.weight)
    with pytest.raises(CompileError, match=r"static data of Scale contains Tensor.*a child"):
        f(Scale(tp.ones((2,)), tp.ones((2,))))
    with pytest.raises(CompileError, match="static data of Scale contains ndarray"):
        f(Scale(tp.ones((2,)), np.ones((2,))))


def test_transformations(on_the_cpu):
    scale = Scale(tp.asarray([[1.0, 2.0], [3.0, 4.0]]), "rows")

    def total(s):
        return Queue(tp.sum(s.weight**2), s.axis)

    each = tp.vmap(lambda s: Scale(s.weight * 2, s.axis))(scale)
    assert (each.weight.tolist(), each.axis) == ([[2, 4], [6, 8]], "rows")
    shared = tp.vmap(lambda s, q: s.weight * q.items[0], in_axes=(Scale(0, "rows"), None))
    assert shared(scale, Queue(3.0)).tolist() == [[3, 6], [9, 12]]
    along = Scale(tp.ones((2, 2)), "rows")
    value, slope = tp.jvp(lambda s: tp.sum(s.weight**2), (scale,), (along,))
    assert (value.item(), slope.item()) == (30, 20)
    gradient = tp.grad(tp.checkpoint(lambda s: total(s).items[0]))(scale)
    assert (gradient.weight.tolist(), gradient.axis) == ([[2, 4], [6, 8]], "rows")

    def step(carry, row):
        return Scale(carry.weight + row.items[0], carry.axis), Queue(carry.weight)

    for scan in (tp.scan, tp.compile(lambda init, rows: tp.scan(step, init, rows))):
        given = (Scale(tp.zeros((2,)), "sum"), Queue(scale.weight))
        last, sums = scan(step, *given) if scan is tp.scan else scan(*given)
        assert (last.weight.tolist(), last.axis) == ([4, 6], "sum")
        assert sums.items[0].tolist() == [[0, 0], [1, 2]]


def test_files(on_the_cpu, tmp_path):
    saved = {"s": Scale(tp.asarray([1.0, 2.0]), 0), "q": Queue(tp.asarray([3.0]), 4.0)}
    tp.save(saved, tmp_path / "a")
    assert sorted(tp.load(tmp_path / "a", nested=False)) == ["q.0", "q.1", "s.weight"]
    like = {"s": Scale(tp.zeros((2,)), 7), "q": Queue(tp.zeros((1,)), 0.0)}
    loaded = tp.load(tmp_path / "a", like=like)
    assert (loaded["s"].weight.tolist(), loaded["s"].axis) == ([1, 2], 7)
    assert (loaded["q"].items[0].tolist(), loaded["q"].items[1]) == ([3], 4)


def test_memory_scopes(on_the_cpu):
    result = tp.tidy(lambda: Scale(tp.ones((2,)) + 1, 0))
    assert result.weight.tolist() == [2, 2]
    tp.dispose(result)
    assert result.weight.is_disposed


MISMATCHES = [
    ((Scale(1, 0), Scale([1], 0)), "tree.weight is int in the first tree, but list of [0]"),
    ((Scale(1, 0), Queue(1)), "tree is Scale of ['weight'] in the first tree, but Queue of [0]"),
    ((Bag("", a=1), Bag("", b=1)), "tree is Bag of ['a'] in the first tree, but Bag of ['b']"),
]


@pytest.mark.parametrize(("trees", "message"), MISMATCHES)
def test_trees_that_differ(trees, message):
    with pytest.raises(ArgumentError) as caught:
        tp.tree_map(lambda a, b: a - b, *trees)
    assert message in str(caught.value)


# Errors ---------------------------------------------------------------------------------


class Derived(Scale):
    pass


class Keyed(UserDict[str, Any]):
    pass


REFUSED = [
    (3, {"children": ["a"]}, ArgumentError, "kind must be a class, got 3"),
    (Keyed, {}, ArgumentError, "Keyed needs either the functions flatten and unflatten, or"),
    (Keyed, {"flatten": len}, ArgumentError, "Keyed needs either"),
    (Keyed, {"flatten": len, "unflatten": len, "children": ["a"]}, ArgumentError, "needs either"),
    (Keyed, {"children": "data"}, ArgumentError, "children must be names of attributes, got 'd"),
    (Scale, {"children": ["axis"]}, RegistrationError, "Scale is registered already"),
    (dict, {"children": []}, RegistrationError, "dict cannot be registered"),
    (float, {"children": []}, RegistrationError, "float cannot be registered"),
    (tp.Tensor, {"children": []}, RegistrationError, "Tensor cannot be registered"),
    (tp.Variable, {"children": []}, RegistrationError, "Variable cannot be registered"),
]


@pytest.mark.parametrize(("kind", "options", "error", "message"), REFUSED)
def test_what_is_refused(kind, options, error, message):
    with pytest.raises(error) as caught:
        tp.register_tree(kind, **options)
    assert message in str(caught.value)


def test_derived_classes_are_no_leaves_by_mistake():
    with pytest.raises(ArgumentError, match="Derived is derived from Scale, a registered tree"):
        tree.flatten([Derived(1, 0)])
    tp.register_tree(Derived, children=["weight", "axis"])
    assert tree.flatten([Derived(1, 0)])[0] == [1, 0]
    tp.unregister_tree(Derived)


@pytest.mark.parametrize("returned", [5, ([1],), ("ab", None), (1, None)])
def test_flatten_must_return_children(returned):
    tp.register_tree(Keyed, lambda _: returned, lambda *_: Keyed())
    with pytest.raises(ArgumentError, match="flatten of Keyed must return a mapping or a seq"):
        tree.flatten(Keyed())
    tp.unregister_tree(Keyed)


def test_unregister():
    with pytest.raises(RegistrationError, match=r"unregister_tree: .*Keyed.* is not registered"):
        tp.unregister_tree(Keyed)
    keyed = Keyed(a=1)
    assert tree.flatten(keyed)[0] == [keyed]
    tp.register_tree(Keyed, lambda k: (k.data, None), lambda _, new: Keyed(new))
    assert tree.flatten(keyed)[0] == [1]
    assert tp.tree_map(lambda leaf: leaf + 1, keyed) == Keyed(a=2)
    tp.unregister_tree(Keyed)
    assert tree.flatten(keyed)[0] == [keyed]


def test_registration_takes_precedence_over_a_dataclass():
    @dataclass
    class Pair:
        a: Any
        b: Any

    assert tree.flatten(Pair(1, 2))[0] == [1, 2]
    tp.register_tree(Pair, children=["b"])
    assert tree.flatten(Pair(1, 2))[0] == [2]
    assert tree.flatten(Pair(1, 2))[1]([3]) == Pair(1, 3)
    tp.unregister_tree(Pair)


def test_classes_that_were_seen_are_not_kept():
    @dataclass
    class Passing:
        a: Any

    assert tree.flatten(Passing(1))[0] == [1]
    kept = weakref.ref(Passing)
    del Passing
    gc.collect()
    assert kept() is None


# Static fields ----------------------------------------------------------------------------


@dataclass
class Layer:
    weight: Any
    activation: str = tp.static_field(default="relu", metadata={"unit": "none"})
    sizes: list[int] = tp.static_field(default_factory=list, kw_only=True, repr=False)  # a field


def test_static_fields():
    layer = Layer(1, "tanh", sizes=[1])
    assert tree.flatten(layer)[0] == [1]
    assert tree.flatten(layer)[1]([2]) == Layer(2, "tanh", sizes=[1])
    assert tree.fixed(layer) == ["tanh", [1]]
    assert (Layer(1).activation, Layer(1).sizes) == ("relu", [])
    assert dataclasses.fields(Layer)[1].metadata == {"unit": "none", "static": True}
    assert copy.deepcopy(layer) == layer


def test_a_prefix_of_a_tree():
    def values(prefix, whole):
        return tree.broadcast(prefix, whole, lambda part: isinstance(part, int))

    whole = {"a": [1, (2, None)], "b": Scale(3, 0), "c": []}
    assert values(7, whole) == [7, 7, 7]
    assert values({"c": 9, "a": [5, 6], "b": Scale(8, 1)}, whole) == [5, 6, 8]
    with pytest.raises(ArgumentError, match=r"^\['a'\]: list of \[0\] for list of \[0, 1\]$"):
        values({"a": [5], "b": 6, "c": 7}, whole)
    with pytest.raises(ArgumentError, match=r"^\['b'\]\.weight: str for int$"):
        values({"a": 5, "b": Scale("x", 0), "c": 7}, whole)
