"""tp.save and tp.load of trees: lists, tuples, named tuples, dataclasses, Python numbers."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, FileFormatError, ShapeError
from tensorplug.tensors import tree

safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")
pytest.importorskip("safetensors.numpy")

pytestmark = pytest.mark.usefixtures("on_the_cpu")


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Layer:
    w: Any
    rate: float
    name: str = field(default="", metadata={"static": True})


def _tree():
    w = tp.asarray([[1.0, 2.0]])
    return {
        "layers": [Layer(w, 0.1, "a"), Layer(w * 2, 1e-300, "b")],
        "pair": Pair(tp.asarray(3), (tp.asarray(True), w[0])),
        "counts": {"step": 7, "big": 2**40, "done": False, "rate": 0.1, "top": float("inf")},
        "numbers": [1, 2],
    }


NAMES = {
    "layers.0.w": "float32[1,2]",
    "layers.0.rate": "float32[]",
    "layers.1.w": "float32[1,2]",
    "layers.1.rate": "float32[]",
    "pair.left": "int32[]",
    "pair.right.0": "bool[]",
    "pair.right.1": "float32[2]",
    "counts.step": "int32[]",
    "counts.big": "int64[]",
    "counts.done": "bool[]",
    "counts.rate": "float32[]",
    "counts.top": "float32[]",
    "numbers": "int32[2]",
}


def _ordered(given):
    """Return a tree with the keys of dicts in order, as a file has them."""
    if isinstance(given, dict):
        return {key: _ordered(given[key]) for key in sorted(given)}
    if isinstance(given, list):
        return [_ordered(child) for child in given]
    return given


def _same(actual, expected):
    actual, expected = _ordered(actual), _ordered(expected)
    assert tree.paths(actual) == tree.paths(expected)
    for ours, theirs in zip(tree.flatten(actual)[0], tree.flatten(expected)[0], strict=True):
        assert type(ours) is type(theirs)
        if isinstance(theirs, tp.Tensor):
            assert ours.type == theirs.type
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        else:
            assert repr(ours) == repr(theirs)


def test_names_that_others_read(path):
    tp.save(_tree(), path, metadata={"author": "me"})
    found = safetensors.numpy.load_file(path)
    assert {name: str(x.type) for name, x in tp.load(path, nested=False).items()} == NAMES
    assert set(found) == set(NAMES)
    np.testing.assert_array_equal(found["layers.1.w"], [[2, 4]])
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata()["author"] == "me"


def test_a_tree_like_the_saved_one(path):
    given = _tree()
    tp.save(given, path)
    like = tp.tree_map(
        lambda leaf: tp.zeros_like(leaf) if isinstance(leaf, tp.Tensor) else leaf, given
    )
    like["numbers"] = tp.zeros((2,), dtype=tp.int32)
    loaded = tp.load(path, like=like)
    _same(loaded, {**given, "numbers": tp.asarray([1, 2])})
    assert loaded["layers"][1].name == "b"
    assert isinstance(loaded["pair"], Pair)


def test_a_tree_without_an_example(path):
    given = _tree()
    tp.save(given, path)
    _same(
        tp.load(path),
        {
            "layers": [{"w": layer.w, "rate": layer.rate} for layer in given["layers"]],
            "pair": given["pair"]._asdict(),
            "counts": given["counts"],
            "numbers": tp.asarray([1, 2]),
        },
    )
    part = tp.load(path, nested=True, names=["pair.right.1"])
    _same(part, {"pair": {"right": {"1": tp.asarray([1.0, 2.0])}}})


@pytest.mark.parametrize(
    "given",
    [
        lambda x: [x, x * 2],
        lambda x: (x, {"a": x}),
        lambda x: {"a": x},
        lambda x: {"a": ((x,), [x, [x]])},
        lambda x: {"a": x, "n": -0.0},
        lambda x: [x * at for at in range(12)],  # "10" comes before "2" in the file
    ],
)
def test_lists_and_tuples_return(path, given):
    given = given(tp.asarray([1.0, 2.0]))
    tp.save(given, path)
    _same(tp.load(path, nested=True), given)


AS_SAVED = {
    "a tree": (lambda x: {"params": {"w": x}, "b": x}, {}, True),
    "a list": (lambda x: [x, x], {}, True),
    "a tree, by names": (lambda x: {"a": {"b": x}}, {"names": ["a.b"]}, False),
    "one dict": (lambda x: {"a.b": x, "a": x}, {}, False),
    "one dict with a number": (lambda x: {"a.b": x, "a": 3}, {}, False),
}


@pytest.mark.parametrize("name", AS_SAVED)
def test_a_saved_tree_returns_and_one_dict_stays_one(path, name):
    make, options, nested = AS_SAVED[name]
    given = make(tp.asarray([1.0, 2.0]))
    tp.save(given, path)
    loaded = tp.load(path, **options)
    if nested:
        _same(loaded, given)
    else:
        assert {type(x) for x in loaded.values()} == {tp.Tensor}
        assert set(loaded) == set(options.get("names", given))


def test_numbers_among_tensors(path):
    x = tp.asarray([1.0, 2.0])
    tp.save({"list": [x, 3, 2.5, [1, 2]]}, path)
    _same(tp.load(path), {"list": [x, 3, 2.5, tp.asarray([1, 2])]})


REFUSED = {
    "another shape": (
        lambda x: {"a": [x], "n": 3},
        {"like": lambda x: {"a": [x[:1]], "n": 0}},
        ShapeError,
        r"load: 'a\.0' is float32\[2\] in .*, but float32\[1\] in like",
    ),
    "another dtype": (
        lambda x: {"a": [x]},
        {"like": lambda x: {"a": [x.astype("int32")]}},
        DTypeError,
        r"load: 'a\.0' is float32\[2\] in .*, but int32\[2\] in like",
    ),
    "too few": (
        lambda x: {"a": [x, x, x]},
        {"like": lambda x: {"a": [x]}},
        ArgumentError,
        r"has 'a\.1' and 1 more, which like does not have",
    ),
    "too many": (
        lambda x: {"a": [x]},
        {"like": lambda x: {"a": [x], "b": x}},
        ArgumentError,
        "has no 'b'; it has 'a.0'",
    ),
    "nested, too": (
        lambda x: {"a": x},
        {"like": lambda x: {"a": x}, "nested": lambda _: True},
        ArgumentError,
        "with like, neither names nor nested can be passed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_the_example_is_refused(path, name):
    given, options, error, message = REFUSED[name]
    x = tp.asarray([1.0, 2.0])
    tp.save(given(x), path)
    with pytest.raises(error, match=message):
        tp.load(path, **{key: make(x) for key, make in options.items()})


DAMAGED = [
    "",
    "[]",
    "{}",
    '{"containers": {"a": "set"}, "numbers": {}, "nested": true}',
    '{"containers": {}, "numbers": {}, "nested": "yes"}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", DAMAGED, ids=lambda text: text[:40])
def test_a_damaged_record_is_refused(path, text):
    given = {"a": np.ones(2, np.float32)}
    safetensors.numpy.save_file(given, path, metadata={"tensorplug.tree": text})
    with pytest.raises(FileFormatError, match=r"'tensorplug\.tree' is damaged"):
        tp.load(path)


@pytest.mark.parametrize("depth", [5_000, 400_000])
def test_names_of_many_levels_are_refused_at_once(path, depth):
    safetensors.numpy.save_file({".".join("a" * depth): np.ones(2, np.float32)}, path)
    with pytest.raises(ArgumentError, match=rf"is nested {depth - 1} levels deep") as caught:
        tp.load(path, nested=True)
    assert len(str(caught.value)) < 400


def test_names_of_as_many_levels_as_python_allows_are_refused(path):
    name = ".".join("a" * (sys.getrecursionlimit() - 1))
    safetensors.numpy.save_file({name: np.ones(2, np.float32)}, path)
    with pytest.raises(ArgumentError, match="levels deep, which is too deep for Python"):
        tp.load(path, nested=True)


def test_the_record_is_not_for_users(path):
    with pytest.raises(ArgumentError, match=r"'tensorplug\.tree' is written by save"):
        tp.save({"a": tp.ones(2)}, path, metadata={"tensorplug.tree": "{}"})


def _inside_itself():
    found = []
    found.append(found)
    return found


def test_parts_that_cannot_return_are_refused(path):
    x = tp.ones(2)
    for given, message in (
        ({"a": [x, {}]}, r"name '1' in 'a': an empty dict cannot be saved"),
        ({"a": [x, {"b.c": x}]}, r"name 'b\.c' in 'a\.1': the names of nested dicts must not"),
        ([1, 2], "must be a dict of tensors by name, got list"),
        ({"a": _inside_itself()}, "a list contains itself"),
    ):
        with pytest.raises(ArgumentError, match=message):
            tp.save(given, path)


def test_a_dataclass_without_tensors_and_a_field_of_none_need_no_name(path):
    given = {"a": Layer(tp.ones(2), None), "b": [Layer(Layer(None, None), tp.zeros(1))]}
    given["c"] = Layer(None, None)
    tp.save(given, path)
    assert list(tp.load(path, nested=False)) == ["a.w", "b.0.rate"]
    loaded = tp.load(path, like=given)
    assert (loaded["a"].rate, loaded["b"][0].w) == (None, Layer(None, None))
    assert loaded["c"] == Layer(None, None)
    assert (loaded["a"].w.tolist(), loaded["b"][0].rate.tolist()) == ([1, 1], [0])
    with pytest.raises(DTypeError, match="'b': NoneType None"):
        tp.save({"b": None}, path)
