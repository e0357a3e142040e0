"""Every layer against NumPy, and under every transformation."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError

from . import references

layers = tp.train.layers
BACKENDS = ("opencl", "minimal", "webgpu")


class Case(NamedTuple):
    """A layer: a function of a key and a dtype, the shape of x, and the layer in NumPy."""

    make: Any
    shape: tuple[int, ...]
    reference: Any
    integers: int = 0  # x is of integers below

    def x(self, dtype="float64"):
        rng = np.random.default_rng(3)
        if self.integers:
            return tp.asarray(rng.integers(0, self.integers, self.shape), dtype="int32")
        return tp.asarray(rng.normal(size=self.shape), dtype=dtype)

    def layer(self, dtype="float64", seed=0):
        """Return the layer, with random numbers in the place of zeros and ones, too."""
        made = self.make(tp.random.key(seed), dtype)
        rng = np.random.default_rng(seed)
        return tp.tree_map(
            lambda leaf: leaf + tp.asarray(rng.normal(size=leaf.shape) * 0.1, dtype=dtype), made
        )


def drawn(kind, *sizes, **options):
    return lambda key, dtype: kind.init(key, *sizes, dtype=dtype, **options)


def norm(kind, *sizes, **options):
    return lambda key, dtype: kind.init(*sizes, dtype=dtype, **options)  # noqa: ARG005  # nothing is drawn


conv, transpose = (partial(drawn, kind) for kind in (layers.Conv, layers.ConvTranspose))
attention = partial(drawn, layers.MultiHeadAttention, 8)
convolved = (references.convolution, references.transposed_convolution)
lstm = partial(references.recurrent, references.lstm_step, 2)
gru = partial(references.recurrent, references.gru_step, 1)
per_channel = lambda axes: lambda layer, x: references.normalized(x, axes, layer)  # noqa: E731  # a row each
both = {"bidirectional": True, "depth": 2}
odd = {"padding": ((1, 2), (0, 1)), "stride": (2, 1), "dilation": (1, 2), "groups": 2}
LAYERS = {
    "linear": Case(drawn(layers.Linear, 6, 6), (3, 6), references.linear),
    "linear, no bias": Case(drawn(layers.Linear, 6, 2, bias=False), (2, 3, 6), references.linear),
    "embedding": Case(
        drawn(layers.Embedding, 9, 4), (3, 5), lambda layer, x: layer.table[x], integers=9
    ),
    "conv, 1 axis": Case(conv(2, 3, (3,), stride=2, padding=1), (2, 8, 2), convolved[0]),
    "conv, 2 axes": Case(conv(4, 6, (3, 2), **odd), (2, 6, 5, 4), convolved[0]),
    "conv, same": Case(conv(2, 2, (3, 3), padding="same"), (2, 5, 4, 2), convolved[0]),
    "conv, 3 axes": Case(conv(2, 3, (2, 2, 1), bias=False), (1, 3, 4, 2, 2), convolved[0]),
    "conv, 4 axes": Case(
        conv(2, 3, (2, 1, 2, 2), padding="same", stride=(2, 1, 1, 2)),
        (1, 3, 2, 3, 4, 2),
        convolved[0],
    ),
    "conv, 4 axes, padded": Case(
        conv(1, 2, (3, 1, 2, 1), padding=(1, 0, (1, 0), 0), dilation=(2, 1, 1, 1)),
        (1, 5, 2, 2, 2, 1),
        convolved[0],
    ),
    "transposed, 1 axis": Case(
        transpose(2, 3, (3,), stride=2, padding=1), (2, 4, 2), convolved[1]
    ),
    "transposed, 2 axes": Case(
        transpose(3, 2, (3, 2), stride=(2, 1), padding=((1, 0), 0), dilation=(1, 2)),
        (2, 3, 4, 3),
        convolved[1],
    ),
    "transposed, groups": Case(
        transpose(4, 6, (3, 2), stride=2, groups=2, bias=False), (2, 3, 2, 4), convolved[1]
    ),
    "transposed, a group each": Case(
        transpose(6, 3, (2,), padding=1, groups=3), (2, 4, 6), convolved[1]
    ),
    "transposed, same": Case(
        transpose(3, 2, (3, 3), stride=2, padding="same"), (2, 3, 4, 3), convolved[1]
    ),
    "transposed, 3 axes": Case(
        transpose(2, 3, (2, 2, 2), stride=2), (1, 2, 3, 2, 2), convolved[1]
    ),
    "layer norm": Case(norm(layers.LayerNorm, 6), (4, 6), per_channel((-1,))),
    "layer norm, no bias": Case(
        norm(layers.LayerNorm, 6, bias=False, epsilon=0.1), (2, 3, 6), per_channel((-1,))
    ),
    "rms norm": Case(norm(layers.RMSNorm, 6), (4, 6), references.rms_norm),
    "group norm": Case(norm(layers.GroupNorm, 6, groups=3), (4, 3, 6), references.group_norm),
    "instance norm": Case(norm(layers.InstanceNorm, 3), (2, 4, 5, 3), per_channel((1, 2))),
    "batch norm": Case(norm(layers.BatchNorm, 6), (5, 3, 6), per_channel((0, 1))),
    "dropout": Case(lambda key, dtype: layers.Dropout(0.0), (3, 4), lambda layer, x: x),  # noqa: ARG005
    "attention": Case(attention(heads=2), (2, 5, 8), references.attention),
    "attention, causal, grouped, rotary": Case(
        attention(heads=4, key_heads=2, head_size=4, causal=True, rotary=100.0, bias=False),
        (2, 5, 8),
        references.attention,
    ),
    "lstm": Case(drawn(layers.LSTM, 4, 4), (2, 5, 4), lstm),
    "lstm, 2 layers, both ways": Case(drawn(layers.LSTM, 3, 2, **both), (2, 4, 3), lstm),
    "gru": Case(drawn(layers.GRU, 4, 4), (2, 5, 4), gru),
    "gru, 2 layers, both ways": Case(drawn(layers.GRU, 3, 2, **both), (2, 4, 3), gru),
}
for_each = pytest.mark.parametrize("name", LAYERS)
# Layers of one kind differ in no transformation: the others are in the tests of values.
KINDS = [name for name in LAYERS if "," not in name or name == "conv, 2 axes"]
KINDS += ["transposed, 2 axes", "attention, causal, grouped, rotary", "lstm, 2 layers, both ways"]
of_each_kind = pytest.mark.parametrize("name", KINDS)


def run(layer, x):
    """Return what a layer returns in training, with the state of the first step."""
    key = tp.random.key(5)
    return layers.apply(layer, x, layers.initial_state(layer), key=key, training=True)[0]


def expected(case, layer, x):
    wide = tp.tree_map(lambda leaf: leaf.numpy().astype(np.float64), layer)
    return case.reference(wide, x.numpy() if case.integers else x.numpy().astype(np.float64))


def total(layer, x):
    return tp.sum(tp.square(run(layer, x).astype("float64")))


def same(actual, wanted, rtol=1e-12):
    assert actual.shape == wanted.shape
    assert actual.dtype == wanted.dtype
    np.testing.assert_allclose(actual.numpy(), wanted.numpy(), rtol=rtol, atol=rtol)


@for_each
@pytest.mark.parametrize(
    ("dtype", "error"), [("float64", 1e-12), ("float32", 2e-5), ("bfloat16", 0.06)]
)
def test_values_are_those_of_numpy(name, dtype, error):
    case = LAYERS[name]
    layer, x = case.layer(dtype), case.x(dtype)
    y, wanted = run(layer, x), expected(case, layer, x)
    assert y.shape == wanted.shape
    assert y.dtype.name == dtype
    np.testing.assert_allclose(y.numpy().astype(np.float64), wanted, rtol=error, atol=error)


@of_each_kind
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_runs_them(name, backend, active):
    case = LAYERS[name]
    layer, x = case.layer("float32"), case.x("float32")
    wanted = expected(case, layer, x)
    arrays = tp.tree_map(lambda leaf: leaf.numpy(), (layer, x))
    active(backend)
    y = run(*tp.tree_map(tp.asarray, arrays))
    assert (y.device.partition(":")[0], y.shape) == (backend, wanted.shape)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-4)


@of_each_kind
def test_gradients_are_slopes(name):
    case = LAYERS[name]
    layer, x = case.layer(), case.x()
    if not tp.plugin.tree.flatten(layer)[0]:
        pytest.skip("nothing to train")
    value, gradient = tp.value_and_grad(total)(layer, x)
    assert type(gradient) is type(layer)
    assert float(value) == pytest.approx(float(total(layer, x)))
    rng = np.random.default_rng(7)
    along = tp.tree_map(lambda leaf: tp.asarray(rng.normal(size=leaf.shape)), layer)
    ends = [
        float(total(tp.tree_map(lambda leaf, by: leaf + by * h, layer, along), x))  # noqa: B023
        for h in (1e-5, -1e-5)
    ]
    slopes = tp.tree_map(lambda g, by: float(tp.sum(g * by)), gradient, along)
    slope = sum(tp.plugin.tree.flatten(slopes)[0])
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-6)


@of_each_kind
def test_an_ensemble_is_a_map_over_models(name):
    case = LAYERS[name]
    keys, x = tp.random.split(tp.random.key(1), 3), case.x()
    if name == "dropout":
        pytest.skip("nothing differs between models")
    made = tp.vmap(lambda key: case.make(key, "float64"))(keys)
    mapped = tp.vmap(run, in_axes=(0, None))(made, x)
    for at in range(3):
        alone = case.make(keys[at], "float64")
        tp.tree_map(lambda one, all_: same(all_[at], one), alone, made)  # noqa: B023
        same(mapped[at], run(alone, x), rtol=1e-9)


@of_each_kind
def test_compiled_is_eager(name):
    case = LAYERS[name]
    layer, x = case.layer(), case.x()
    compiled = tp.compile(tp.value_and_grad(total))
    value, gradient = compiled(layer, x)
    eager = tp.value_and_grad(total)(layer, x)
    assert float(value) == pytest.approx(float(eager[0]))
    tp.tree_map(partial(same, rtol=1e-8), gradient, eager[1])
    compiled(case.layer(seed=1), x)
    assert repr(compiled).endswith("1 programs>")


@pytest.mark.parametrize(
    "name", ["linear", "conv, same", "layer norm", "group norm", "batch norm", "attention", "lstm"]
)
def test_a_stack_of_equal_layers_is_scanned(name):
    case = LAYERS[name]
    own, x = [case.layer(seed=seed) for seed in range(3)], case.x()
    stacked = tp.tree_map(lambda *leaves: tp.stack(leaves), *own)
    y, _ = tp.scan(lambda x, layer: (run(layer, x), None), x, stacked)
    same(y, run(own[2], run(own[1], run(own[0], x))), rtol=1e-9)


@of_each_kind
def test_autocast_computes_in_bfloat16(name):
    case = LAYERS[name]
    layer, x = case.layer("float32"), case.x("float32")
    with tp.autocast("bfloat16"):
        y = run(layer, x)
    assert y.dtype.name in ("bfloat16", "float32")
    wanted = expected(case, layer, x)
    np.testing.assert_allclose(y.numpy().astype(np.float64), wanted, rtol=0.1, atol=0.1)


@for_each
def test_a_saved_layer_returns(name, tmp_path):
    layer, path = LAYERS[name].layer(), tmp_path / "layer.safetensors"
    tp.save({"layer": layer, "step": 1}, path)
    blank = tp.tree_map(tp.zeros_like, layer)
    loaded = tp.load(path, like={"layer": blank, "step": 0})["layer"]
    tp.tree_map(same, loaded, layer)
    assert tp.plugin.tree.fixed(loaded) == tp.plugin.tree.fixed(layer)


CONV = layers.Conv(tp.ones((3, 3, 2, 4)), groups=3)
WRONG = {
    "conv": (CONV, (1, 8, 8, 5), r"^Conv of 6 channels got x of shape \(1, 8, 8, 5\)$"),
    "rank": (CONV, (8, 6), r"^Conv needs x of 3 or 4 axes, got shape \(8, 6\)$"),
    "norm": (layers.LayerNorm(tp.ones(4)), (2, 5), "LayerNorm of 4 features got"),
    "batch norm": (layers.BatchNorm(tp.ones(4)), (1, 4), "BatchNorm needs two elements"),
    "lstm": (
        layers.LSTM((tp.ones((3, 4)),), (tp.ones((1, 4)),)),
        (2, 3),
        "LSTM needs x of 3 axes",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes_name_the_layer(name):
    layer, shape, message = WRONG[name]
    with pytest.raises(layers.LayerError, match=message):
        run(layer, tp.zeros(shape))


KEY = tp.random.key(0)
REFUSED = {
    "groups": (lambda: layers.Conv.init(KEY, 4, 6, (3,), groups=4), "Conv: 4 groups do not"),
    "transposed groups": (
        lambda: layers.ConvTranspose.init(KEY, 4, 6, (3,), groups=3),
        "ConvTranspose: 3 groups do not divide 4 and 6",
    ),
    "window": (lambda: layers.Conv.init(KEY, 4, 6, 3), "window must have a number for each"),
    "axes": (lambda: layers.ConvTranspose.init(KEY, 1, 1, (1,) * 4), "at most 3 spatial axes"),
    "norm": (lambda: layers.GroupNorm.init(4, groups=3), "3 groups do not divide 4 channels"),
    "heads": (lambda: layers.MultiHeadAttention.init(KEY, 8, heads=3), "3 heads must divide 8"),
    "rate": (lambda: layers.Dropout(1.0), r"rate must be in \[0, 1\), got 1\.0"),
    "key": (lambda: layers.apply(layers.Dropout(0.5), KEY, training=True), "Dropout needs a key"),
    "state": (lambda: layers.apply(layers.BatchNorm(KEY), KEY), "BatchNorm needs its state"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_options_are_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ArgumentError, match=message):
        call()
