"""The generator: a new key for every draw, for every thread, after every copy."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from tests.core.support.engines import together

import tensorplug as tp
from tensorplug.errors import ArgumentError
from tensorplug.introspection import families

pytestmark = pytest.mark.usefixtures("on_the_cpu")

random = tp.random
FUNCTIONS = sorted(families.public("random").keys() - {"fold_in", "key", "split"})
GIVEN = {  # what a call needs besides its key
    "categorical": {"logits": [0.0, 1.0]},
    "choice": {"a": 5},
    "gamma": {"concentration": 2.0},
    "integers": {"high": 100},
    "permutation": {"x": 7},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_methods_are_the_functions_without_their_key(name: str) -> None:
    function, method = getattr(random, name), getattr(random.Generator, name)
    without = list(inspect.signature(function).parameters.values())[1:]
    assert list(inspect.signature(method).parameters.values())[1:] == without
    rng = random.Generator(3)
    for number in range(2):
        key = random.fold_in(random.key(3), number)
        expected = function(key, **GIVEN.get(name, {})).numpy()
        found = getattr(rng, name)(**GIVEN.get(name, {})).numpy()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_order_is_key_shape_dtype_and_names(name: str) -> None:
    """Functions of a tensor take it after the key."""
    first, *rest = inspect.signature(getattr(random, name)).parameters.values()
    by_position = [item.name for item in rest if item.kind is not item.KEYWORD_ONLY]
    tensor = {"categorical": "logits", "choice": "a", "permutation": "x"}.get(name)
    order = [*([tensor] if tensor else []), "shape", "dtype", "axis"]
    assert first.name == "key"
    assert by_position == [item for item in order if item in by_position]
    assert tensor is None or by_position[0] == tensor


def test_every_draw_has_a_key_of_its_own() -> None:
    rng = random.Generator(2**64 - 1)
    keys = {rng.key().numpy().tobytes() for _ in range(300)}
    assert len(keys) == 300
    assert rng.state == {"key": [2**32 - 1, 2**32 - 1, 0, 0], "count": 300}
    assert not np.array_equal(rng.normal((4,)).numpy(), rng.normal((4,)).numpy())


def test_without_a_seed_the_system_chooses() -> None:
    one, two = random.Generator(), random.Generator()
    assert one.state["key"] != two.state["key"]


def test_state_goes_back_and_through_json() -> None:
    rng = random.Generator(5)
    rng.normal((3,))
    kept = json.loads(json.dumps(rng.state))
    first = rng.uniform((5,)).tolist()
    rng.state = kept
    assert rng.uniform((5,)).tolist() == first
    other = random.Generator(0)
    other.state = kept
    assert other.uniform((5,)).tolist() == first
    assert repr(other) == f"<Generator {other.state}>"


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"key": [1, 2, 3], "count": 0},
        {"key": [1, 2, 3, 4]},
        {"key": [1, 2, 3, 4], "count": -1},
        {"key": [1, 2, 3, 2**32], "count": 0},
        {"key": [1, 2, 3, 0.5], "count": 0},
        {"key": [1, 2, 3, 4], "count": "0"},
    ],
)
def test_no_state(state: Any) -> None:
    rng = random.Generator(5)
    before = rng.state
    with pytest.raises(ArgumentError, match="a generator's state"):
        rng.state = state
    assert rng.state == before


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_go_on_alike_and_apart(again: Any) -> None:
    rng = random.Generator(5)
    rng.normal()
    twin = again(rng)
    assert twin.normal((3,)).tolist() == rng.normal((3,)).tolist()
    rng.normal()
    assert twin.state["count"] == 2
    assert rng.state["count"] == 3


def test_spawned_generators_share_nothing() -> None:
    rng = random.Generator(5)
    children = [*rng.spawn(3), *rng.spawn(2), *rng.spawn(0)]
    assert rng.state["count"] == 3
    made = [generator.key().numpy().tobytes() for generator in (rng, *children)]
    assert len(set(made)) == 6
    again = random.Generator(5)
    assert [generator.state for generator in again.spawn(3)] == [
        {**generator.state, "count": 0} for generator in children[:3]
    ]
    parent = random.fold_in(random.key(5), 0)
    assert [generator.state["key"] for generator in children[:3]] == random.split(
        parent, 3
    ).tolist()


def test_threads_never_get_the_same_key() -> None:
    rng = random.Generator(5)
    found: list[list[bytes]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        with tp.use_backend("cpu"):
            found[number] = [rng.key().numpy().tobytes() for _ in range(200)]

    together(8, work)
    assert len({item for some in found for item in some}) == 1600
    assert rng.state["count"] == 1600


def test_a_draw_waits_for_the_one_before_it() -> None:
    """Between reading and raising the count no other thread comes in, on no interpreter."""
    rng = random.Generator(5)
    drawing = threading.Thread(target=rng.spawn, args=(1,))
    with rng._lock:
        drawing.start()
        drawing.join(timeout=0.2)
        assert drawing.is_alive()
        assert rng._count == 0
    drawing.join()
    assert rng.state["count"] == 1


def test_a_generator_keeps_no_tensor() -> None:
    rng = random.Generator(5)
    with tp.tidy():
        inside = rng.normal((2,))
    assert inside.is_disposed
    assert rng.normal((2,)).shape == (2,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random.Generator(-1), r"Generator: seed must be in \[0, 2\*\*64\), got -1"),
        (lambda: random.Generator(1.0), "Generator: seed must be an integer, got 1.0"),
        (lambda: random.Generator("1"), "Generator: seed must be an integer, got '1'"),
        (lambda: random.Generator(0).spawn(-1), "spawn: n must not be negative, got -1"),
        (lambda: random.Generator(0).spawn(1.5), "spawn: n must be an integer, got 1.5"),
    ],
)
def test_bad_calls(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("standard_normal", "; here it is Generator.normal"),
        ("random", "; here it is Generator.uniform"),
        ("randint", "; here it is Generator.integers"),
        ("shuffle", "; here it is Generator.permutation"),
        ("unifrom", "; did you mean Generator.uniform?"),
        ("lognormal", ""),
        ("sin", ""),
        ("_count_", ""),
    ],
)
def test_names_that_other_generators_have(name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(random.Generator(0), name)
    assert str(caught.value) == f"'Generator' object has no attribute {name!r}{hint}"
    assert caught.value.name == name
