"""Models of layers: how layers are called, states, keys, and errors that name the layer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError

layers = tp.train.layers
KEY = tp.random.key(0)


@dataclass(frozen=True)
class Counting:
    """A layer with state: it counts its training steps."""

    scale: tp.Tensor

    def initial_state(self):
        return tp.asarray(0)

    def apply(self, x, state, *, key, training):  # noqa: ARG002  # the protocol's arguments
        return x * self.scale, state + int(training)


@dataclass(frozen=True)
class Noise:
    """A layer with noise: the number that its key gives."""

    def __call__(self, x):
        return x

    def apply(self, x, state, *, key, training):
        return (x + tp.random.uniform(key, ()) if training else x), state


@dataclass(frozen=True)
class Pair:
    first: object
    second: object

    def __call__(self, x):
        return self.second(self.first(x))


def linear(inputs, outputs):
    return layers.Linear.init(KEY, inputs, outputs)


def test_a_layer_without_apply_is_called_and_leaves_the_state():
    y, state = layers.apply(lambda x: x + 1, tp.asarray(1.0), "a state", training=True)
    assert (float(y), state) == (2.0, "a state")


def test_states_lie_by_position_and_are_returned():
    model = layers.Sequential.of(tp.nn.relu, Counting(tp.asarray(2.0)), Counting(tp.ones(())))
    state = layers.initial_state({"model": model, "plain": linear(1, 1)})
    assert {key: int(value) for key, value in state["model"].items()} == {"1": 0, "2": 0}
    assert list(state) == ["model"]
    before = state["model"]
    y, after = layers.apply(model, tp.asarray(3.0), before, training=True)
    assert (float(y), [int(value) for value in after.values()]) == (6.0, [1, 1])
    assert [int(value) for value in before.values()] == [0, 0]
    assert layers.apply(model, tp.asarray(3.0), after)[1]["1"].item() == 1


def test_each_layer_gets_a_key_of_its_own():
    model = layers.Sequential.of(Noise(), tp.nn.relu, Noise())
    y, state = layers.apply(model, tp.asarray(0.0), key=KEY, training=True)
    expected = sum(float(tp.random.uniform(tp.random.fold_in(KEY, at), ())) for at in (0, 2))
    assert (float(y), state) == (pytest.approx(expected), None)
    assert float(model(tp.asarray(0.0))) == 0.0


NESTED = layers.Sequential.of(linear(3, 4), layers.Sequential.of(tp.nn.relu, linear(5, 2)))


@pytest.mark.parametrize(
    ("model", "x", "message"),
    [
        (linear(3, 2), (5, 4), r"^Linear of 3 inputs got x of shape \(5, 4\)$"),
        (linear(3, 2), (), r"^Linear of 3 inputs got x of shape \(\)$"),
        (NESTED, (5, 3), r"^Sequential\[1\]\[1\]: Linear of 5 inputs got x of shape \(5, 4\)$"),
        (Pair(linear(3, 4), linear(3, 4)), (5, 3), r"^Pair\.second: Linear of 3 inputs got"),
        (Pair(linear(3, 3), NESTED), (5, 3), r"^Pair\.second\[1\]\[1\]: Linear of 5 inputs got"),
    ],
)
def test_a_wrong_width_names_the_layer_and_its_path(model, x, message):
    for called in (layers.apply, tp.compile(layers.apply)):
        with pytest.raises(layers.LayerError, match=message):
            called(model, tp.zeros(x))


def test_what_is_no_layer_is_refused():
    with pytest.raises(ArgumentError, match=r"Sequential\[1\] must be a layer or .*, got 3"):
        layers.Sequential.of(tp.nn.relu, 3)


@pytest.mark.parametrize("model", [Pair(tp.nn.relu, Noise()), Pair(NESTED, [Counting(KEY)])])
def test_in_training_a_model_without_apply_must_not_hide_noise_or_state(model):
    with pytest.raises(ArgumentError, match=r"apply: Pair\.second.* is a (Noise|Counting), which"):
        layers.apply(model, tp.zeros((5, 3)), training=True)
    layers.apply(Pair(NESTED.layers[0], tp.nn.relu), tp.zeros((5, 3)), training=True)


def test_a_saved_model_returns_with_what_is_static(tmp_path):
    path = tmp_path / "model.safetensors"
    without_bias = layers.Linear.init(KEY, 4, 2, bias=False)
    model = layers.Sequential.of(linear(3, 4), tp.nn.relu, without_bias, Noise())
    tp.save(model, path)
    assert set(tp.load(path, nested=False)) == {"0.weight", "0.bias", "2.weight"}
    loaded = tp.load(path, like=tp.tree_map(tp.zeros_like, model))
    x = tp.ones((5, 3))
    assert loaded(x).tolist() == model(x).tolist() != tp.zeros((5, 2)).tolist()
    assert (loaded.layers[1], loaded.layers[2].bias) == (tp.nn.relu, None)
