"""What single layers do besides: noise, running statistics, contexts, masks, states, tables."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

import numpy as np
import pytest

import tensorplug as tp

layers = tp.train.layers
KEY = tp.random.key(0)


def normals(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_dropout_drops_in_training_alone():
    layer, x = layers.Dropout(0.25), tp.ones((200, 200))
    assert layer(x).tolist() == layers.apply(layer, x, key=KEY)[0].tolist() == x.tolist()
    y, _ = layers.apply(layer, x, key=KEY, training=True)
    other, _ = layers.apply(layer, x, key=tp.random.key(1), training=True)
    assert set(np.unique(y.numpy())) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs(float(tp.mean(y == 0)) - 0.25) < 0.01  # 4.6 standard deviations
    assert bool(tp.any(y != other))


BATCHES = [normals(size, 4, 3, seed=size) * size + 1 for size in (6, 2, 5)]


@pytest.mark.parametrize("decay", [0.9, 0.5, None])
def test_running_statistics_are_those_of_pytorch_or_of_all_elements(decay):
    norm = layers.BatchNorm.init(3, decay=decay, dtype="float64")
    state = norm.initial_state()
    mean, variance = np.zeros(3), np.ones(3)
    for batch in BATCHES:
        _, state = layers.apply(norm, tp.asarray(batch), state, training=True)
        if decay is not None:
            mean = decay * mean + (1 - decay) * batch.mean((0, 1))
            variance = decay * variance + (1 - decay) * batch.var((0, 1), ddof=1)
    if decay is None:
        seen = np.concatenate(BATCHES).reshape(-1, 3)
        mean, variance = seen.mean(0), seen.var(0, ddof=1)
        assert float(state["count"]) == len(seen)
    np.testing.assert_allclose(state["mean"].numpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(state["variance"].numpy(), variance, rtol=1e-12)
    y, after = layers.apply(norm, tp.asarray(BATCHES[0]), state)
    wanted = (BATCHES[0] - mean) / np.sqrt(variance + norm.epsilon)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12, atol=1e-12)
    assert after is state


def test_running_statistics_of_float16_are_float32():
    norm = layers.BatchNorm.init(2, dtype="float16")
    y, state = layers.apply(
        norm, tp.ones((4, 2), dtype="float16"), norm.initial_state(), training=True
    )
    assert y.dtype is tp.float16
    assert {value.dtype for value in state.values()} == {tp.float32}


def test_attention_collects_from_a_context_that_a_mask_hides():
    layer = layers.MultiHeadAttention.init(KEY, 8, heads=2, context_features=6)
    x, context = (
        tp.asarray(normals(2, 5, 8), dtype="float32"),
        tp.asarray(normals(2, 7, 6), dtype="float32"),
    )
    lengths = tp.asarray([7, 3])
    mask = (tp.arange(7) < lengths[:, None])[:, None, None]
    y = layer(x, context, mask=mask)
    assert y.shape == (2, 5, 8)
    for at, length in enumerate((7, 3)):
        alone = layer(x[at], context[at, :length])
        np.testing.assert_allclose(y[at].numpy(), alone.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(layers.LayerError, match=r"^MultiHeadAttention\.key: Linear of 6 inputs"):
        layer(x)


def test_attention_drops_weights_in_training_alone():
    layer = layers.MultiHeadAttention.init(KEY, 8, heads=2, dropout=0.5)
    x = tp.asarray(normals(2, 5, 8), dtype="float32")
    calm, _ = layers.apply(layer, x)
    noisy, _ = layers.apply(layer, x, key=KEY, training=True)
    assert calm.tolist() == layer(x).tolist() != noisy.tolist()


@pytest.mark.parametrize("kind", [layers.LSTM, layers.GRU])
def test_recurrent_layers_go_on_from_a_state_and_ignore_padding(kind):
    layer = kind.init(KEY, 3, 4, depth=2)
    x = tp.asarray(normals(2, 6, 3), dtype="float32")
    whole, last = layer.run(x)
    first, state = layer.run(x[:, :2])
    rest, end = layer.run(x[:, 2:], state)
    joined = tp.concat([first, rest], axis=1)
    np.testing.assert_allclose(joined.numpy(), whole.numpy(), rtol=1e-5, atol=1e-6)
    tp.tree_map(
        lambda a, b: np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6), end, last
    )
    short = layer(x, lengths=[6, 2])
    np.testing.assert_allclose(short[1, :2].numpy(), whole[1, :2].numpy(), rtol=1e-5, atol=1e-6)
    assert not short[1, 2:].numpy().any()


@dataclass(frozen=True)
class Classifier:
    """A model as a user writes it, with noise and state."""

    body: layers.Sequential
    head: layers.Linear

    def apply(self, x, state, *, key, training):
        x, body = layers.apply(self.body, x, state["body"], key=key, training=training)
        return self.head(tp.mean(x, axis=(1, 2))), {"body": body}


def classifier(key):
    keys = tp.random.split(key, 2)
    body = layers.Sequential.of(
        layers.Conv.init(keys[0], 1, 4, (3, 3), padding="same"),
        layers.BatchNorm.init(4),
        tp.nn.relu,
        layers.Dropout(0.1),
    )
    return Classifier(body, layers.Linear.init(keys[1], 4, 2))


def test_a_model_trains_in_one_compiled_step():
    model, optimizer = classifier(KEY), tp.train.adam(0.05)
    state, moments = layers.initial_state(model), optimizer.init(model)
    x = tp.asarray(normals(32, 6, 6, 1), dtype="float32")
    labels = tp.astype(tp.mean(x * x, axis=(1, 2, 3)) > 1, "int32")

    def loss(model, state, key):
        logits, state = layers.apply(model, x, state, key=key, training=True)
        return tp.losses.sparse_softmax_cross_entropy(labels, logits), state

    @tp.compile
    def step(model, state, moments, key):
        value, gradients = tp.value_and_grad(lambda model: loss(model, state, key)[0])(model)
        model, moments = optimizer.step(gradients, moments, model)
        return model, loss(model, state, key)[1], moments, value

    values = []
    for number in range(60):
        key = tp.random.fold_in(KEY, number)
        model, state, moments, value = step(model, state, moments, key)
        values.append(float(value))
    assert values[-1] < 0.5 * values[0]
    assert list(state) == ["body"]
    assert list(state["body"]) == ["1"]
    logits, after = layers.apply(model, x, state)
    assert float(tp.mean(tp.argmax(logits, axis=-1) == labels)) > 0.9
    assert after["body"]["1"] is state["body"]["1"]


def test_a_summary_counts_parameters_and_products():
    found = layers.summary(classifier(KEY), tp.zeros((2, 6, 6, 1)))
    conv, head = 2 * 2 * 6 * 6 * 4 * 9, 2 * 2 * 4 * 2
    out = 4 * 2 * 6 * 6 * 4
    image = "float32[2,6,6,4]"
    assert [tuple(row) for row in found.rows] == [
        ("Classifier", "Classifier", "float32[2,2]", 58, conv + head, 232, 16),
        ("Classifier.body", "Sequential", image, 48, conv, 192, out),
        ("Classifier.body[0]", "Conv", image, 40, conv, 160, out),
        ("Classifier.body[1]", "BatchNorm", image, 8, 0, 32, out),
        ("Classifier.body[2]", "relu", image, 0, 0, 0, out),
        ("Classifier.body[3]", "Dropout", image, 0, 0, 0, out),
        ("Classifier.head", "Linear", "float32[2,2]", 10, head, 40, 16),
    ]
    assert found.total is found.rows[0]
    lines = str(found).splitlines()
    assert (len(lines), lines[2].split()[0]) == (9, "Classifier")
    assert f"{conv + head:,}" in lines[2]


# Two for each multiplication with an addition, by hand: of a batch of 2.
FLOPS = {
    "grouped": (layers.Conv.init(KEY, 4, 6, (3,), groups=2), (2, 8, 4), 2 * 2 * 6 * 6 * 3 * 2),
    "depthwise": (layers.Conv.init(KEY, 4, 4, (3, 3), groups=4), (2, 5, 5, 4), 2 * 2 * 9 * 4 * 9),
    "transposed": (
        layers.ConvTranspose.init(KEY, 3, 5, (2, 2), stride=2),
        (2, 4, 4, 3),
        2 * 2 * 16 * 3 * 4 * 5,
    ),
    "transposed, grouped": (
        layers.ConvTranspose.init(KEY, 4, 2, (3,), groups=2),
        (2, 5, 4),
        2 * 2 * 5 * 4 * 3,
    ),
    "volume": (layers.Conv.init(KEY, 2, 3, (2, 2, 2)), (2, 3, 3, 3, 2), 2 * 2 * 8 * 3 * 8 * 2),
    "attention": (
        layers.MultiHeadAttention.init(KEY, 8, heads=2),
        (2, 5, 8),
        2 * 2 * (4 * 5 * 8 * 8 + 2 * 5 * 5 * 8),
    ),
    "einsum": (
        layers.Sequential.of(lambda x: tp.einsum("...ij,kj->...ik", x, tp.ones((4, 1)))),
        (2, 3, 5),
        2 * 2 * 3 * 5 * 4,
    ),
    "diagonal": (layers.Sequential.of(lambda x: tp.einsum("bii->bi", x)), (2, 3, 3), 0),
    "lstm": (layers.LSTM.init(KEY, 3, 4), (2, 5, 3), 2 * 2 * 5 * (3 * 16 + 4 * 16)),
    "gru": (layers.GRU.init(KEY, 3, 4), (2, 5, 3), 2 * 2 * 5 * (3 * 12 + 4 * 12)),
}


@pytest.mark.parametrize("name", FLOPS)
@pytest.mark.parametrize("backend", ["cpu", "opencl", "minimal"])
def test_flops_do_not_depend_on_how_a_backend_runs_the_kernels(name, backend, active):
    layer, shape, flops = FLOPS[name]
    active(backend)
    total = layers.summary(layer, tp.zeros(shape)).total
    assert (total.flops, total.kind) == (flops, type(layer).__name__)


def test_a_layer_that_is_called_twice_counts_its_work_twice_and_its_parameters_once():
    linear = layers.Linear.init(KEY, 3, 3)
    found = layers.summary(layers.Sequential.of(linear, linear), tp.zeros((2, 3)))
    assert [(row.path, row.parameters, row.flops) for row in found.rows] == [
        ("Sequential", 12, 72),
        ("Sequential[0]", 12, 36),
        ("Sequential[1]", 12, 36),
    ]


def test_rich_draws_a_summary():
    rich = pytest.importorskip("rich.console")
    console = rich.Console(width=120, record=True, file=StringIO())
    console.print(layers.summary(classifier(KEY), tp.zeros((2, 6, 6, 1))))
    assert "Classifier.body[1]" in console.export_text()
