"""tidy, keep, dispose and memory(): tensors that stay, are freed, and are counted."""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DisposedError


def held(name="memory"):
    gc.collect()
    result = tp.memory()[name]
    return result.tensors, result.buffers, result.bytes


@dataclass
class Layer:
    weights: Any
    label: str = "dense"
    extra: Any = field(default=None)


@dataclass(frozen=True)
class Frozen:
    made: Any
    derived: Any = field(init=False, default=None)


class Pair(NamedTuple):
    left: Any
    right: Any


class Settings(OrderedDict):
    pass


def cycle(a, b):
    inner = {"b": b}
    tree = [a, inner]
    inner["up"] = tree
    return tree


RESULTS = [
    ("tensor", lambda a, _b: a),
    ("dict", lambda a, b: {"a": a, "b": [b]}),
    ("tuple", lambda a, b: (a, (b, 1))),
    ("named tuple", Pair),
    ("dataclass", lambda a, b: Layer(a, extra={"b": b})),
    ("frozen dataclass", lambda a, b: Frozen([a, b])),
    ("dict subclass", lambda a, b: Settings(a=a, rest=defaultdict(list, b=[b]))),
    ("keys of many kinds", lambda a, b: {1: a, None: b, (2, "x"): "text"}),
    ("with what is no tensor", lambda a, b: (a, None, "text", 5, [{"b": b}, []])),
    ("a tree that holds itself", cycle),
    ("the same twice", lambda a, _b: [a, a]),
    ("none", lambda _a, _b: None),
]


def leaves(tree):
    """Return the tensors in a tree, found in another way than ``tidy`` finds them."""
    result = {}
    seen = set()

    def visit(node):
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, tp.Tensor):
            result[id(node)] = node
        for part in gc.get_referents(node) if isinstance(node, dict | list | tuple) else ():
            visit(part)
        if hasattr(node, "__dict__") and not isinstance(node, type):
            visit(vars(node))

    visit(tree)
    return list(result.values())


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(("what", "build"), RESULTS)
def test_tidy_keeps_what_is_returned(what, build):
    made = []

    def work(x):
        a, b, c = (tp.add(x, value) for value in (1.0, 2.0, 3.0))
        made.extend([a, b, c])
        return build(a, b)

    x = tp.asarray([1.0])
    result = tp.tidy(work, x)
    kept = leaves(result)
    assert {id(tensor) for tensor in made if not tensor.is_disposed} == {
        id(tensor) for tensor in kept
    }
    assert made[2].is_disposed
    assert not x.is_disposed
    assert {tensor.item() for tensor in kept} <= {2.0, 3.0}
    assert len(kept) == {"tensor": 1, "the same twice": 1, "none": 0}.get(what, 2)


@pytest.mark.usefixtures("engine")
def test_counts_return_to_the_start():
    x = tp.asarray([1.0, 2.0])
    before = held()
    result = tp.tidy(lambda: tp.add(tp.multiply(x, x), x))
    assert held() == (before[0] + 1, before[1] + 1, before[2] + 8)
    tp.dispose(result)
    assert held() == before
    with tp.tidy():
        y = tp.add(x, x)
        assert not y.is_disposed
    assert y.is_disposed
    assert held() == before
    gradient = tp.grad(lambda x: tp.sum(x * x))(x)
    del gradient, y, result
    assert held() == before


@pytest.mark.usefixtures("engine")
def test_nested_tidies_hand_over():
    x = tp.asarray([1.0])
    with tp.tidy():
        inner = tp.tidy(lambda: tp.add(x, 1.0))
        assert inner.item() == 2
        kept = tp.keep(tp.add(inner, 1.0))
        outer = tp.add(x, 2.0)
        with tp.tidy():
            deep = tp.keep(tp.keep(tp.add(x, 5.0)))
            tp.keep(outer)  # of the scope around this one
            lost = tp.add(x, 6.0)
        assert lost.is_disposed
    assert inner.is_disposed
    assert (kept.item(), deep.item(), outer.item(), x.item()) == (3, 6, 3, 1)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_frees_everything(error):
    made = []

    def work():
        made.append(tp.asarray([1.0]))
        made.append(tp.add(made[0], 1.0))
        raise error

    with pytest.raises(error):
        tp.tidy(work)
    assert [tensor.is_disposed for tensor in made] == [True, True]


@pytest.mark.usefixtures("engine")
def test_tensors_from_outside_a_tidy_stay():
    x = tp.asarray([1.0])
    assert tp.tidy(lambda: x) is x
    with tp.tidy():
        y = tp.identity(x)
    assert y.is_disposed
    assert x.item() == 1  # another handle of the same buffer
    with pytest.raises(DisposedError):
        tp.add(y, 1)


@pytest.mark.usefixtures("engine")
def test_a_view_of_a_freed_tensor_stays_readable():
    x = tp.asarray([1.0, 2.0, 3.0, 4.0])

    def work():
        y = tp.add(x, 1.0)
        views = [tp.reshape(y, (2, 2)), tp.identity(y)]
        del y
        return views[0]

    result = tp.tidy(work)
    for number in range(20):  # whoever gets freed memory would write into it
        tp.add(x, float(number))
    assert result.tolist() == [[2, 3], [4, 5]]
    x.dispose()
    assert result.tolist() == [[2, 3], [4, 5]]


@pytest.mark.usefixtures("engine")
def test_gradients_and_tidies_within_one_another():
    x = tp.asarray([3.0])
    before = held()

    def f(x):
        return tp.tidy(lambda: tp.sum(tp.multiply(tp.tidy(lambda: tp.multiply(x, x)), x)))

    assert tp.tidy(tp.grad(f), x).tolist() == [27]
    assert tp.grad(f)(x).tolist() == [27]
    assert tp.tidy(tp.grad(lambda x: tp.sum(tp.grad(f)(x))), x).tolist() == [18]
    value, vjp = tp.tidy(lambda: tp.vjp(f, x))
    assert (value.item(), vjp(1.0)[0].tolist()) == (27, [27])
    del value, vjp
    assert held() == before


@pytest.mark.usefixtures("engine")
def test_no_tidy_frees_a_variable():
    with tp.tidy():
        value = tp.asarray([1.0])
        v = tp.Variable(value)
        read = v.read()
        v.assign(tp.add(v, 1.0))
    assert (value.is_disposed, read.is_disposed, v.is_disposed) == (True, True, False)
    assert v.numpy().tolist() == [2]
    assert tp.tidy(lambda: {"v": v})["v"] is v
    assert tp.keep(v) is v
    v.dispose()


@pytest.mark.usefixtures("engine")
def test_dispose_of_a_tree():
    tree = Layer(tp.asarray([1.0]), extra=[{"a": tp.asarray(1.0)}, (tp.asarray(2.0), None)])
    tensors = leaves(tree)
    assert len(tensors) == 3
    tp.dispose(tree)
    tp.dispose(tree)
    assert all(tensor.is_disposed for tensor in tensors)
    cyclic = cycle(tp.asarray(1.0), tp.asarray(2.0))
    tensors = leaves(cyclic)
    tp.dispose(cyclic)
    assert [tensor.is_disposed for tensor in tensors] == [True, True]
    tp.dispose(["no", {"tensor": None}, np.zeros(3)])


@pytest.mark.usefixtures("engine")
def test_a_disposed_handle_does_not_free_what_others_share():
    """Also when it is disposed of twice (TensorFlow.js frees the other's data then)."""
    x = tp.asarray([1.0, 2.0])
    others = [tp.identity(x), tp.reshape(x, (2, 1)), tp.Variable(x)]
    for _ in range(2):
        x.dispose()
    others[2].dispose()
    others[2].dispose()
    assert others[0].tolist() == [1, 2]
    assert others[1].tolist() == [[1], [2]]


def gone():
    tensor = tp.asarray(1.0)
    tensor.dispose()
    return tensor


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tp.keep([1]), ArgumentError, "keep: tensor must be a Tensor, got list"),
        (lambda: tp.keep(gone()), DisposedError, r"keep: this tensor \(float32\[\]\) was"),
        (lambda: tp.tidy(5), ArgumentError, "tidy: function must be callable, got int"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
