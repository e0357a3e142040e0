"""Normalization: old versions, statistics in training, what stays 0; dropout."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug_onnx import NodeError
from tensorplug_onnx.rules import lookup

from .one_operator import WAYS, assert_same, model_of, outputs_of

RNG = np.random.default_rng(2)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def normalized(x, axes, epsilon=1e-5):
    """Return x with mean 0 and variance 1 along the axes, in float64."""
    x = x.astype(np.float64)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def assert_close(found, expected, rtol=2e-5):
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-5)


X, SCALE, B = normal(3, 4, 2, 5) * 3 + 2, normal(4), normal(4)
MEAN, VAR = normal(4), np.abs(normal(4)) + 0.5


def by_channel(values):
    return values.reshape(-1, 1, 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("opset", [6, 7, 9, 14, 15])
def test_batch_normalization_with_given_statistics(opset, way):
    given = [X, SCALE, B, MEAN, VAR]
    attributes = {"epsilon": 0.25, **({"is_test": 1} if opset == 6 else {})}
    (found,) = outputs_of(way, "BatchNormalization", given, attributes, opset=opset)
    deviation = np.sqrt(by_channel(VAR) + 0.25)
    expected = (X - by_channel(MEAN)) / deviation * by_channel(SCALE) + by_channel(B)
    assert_close(found, expected)


@pytest.mark.parametrize(
    ("opset", "outputs", "attributes"),
    [
        (6, 5, {}),
        (7, 5, {}),
        (9, 5, {}),
        (14, 3, {"training_mode": 1}),
        (15, 3, {"training_mode": 1}),
    ],
)
def test_batch_normalization_in_training(opset, outputs, attributes):
    attributes = {"momentum": 0.75, **attributes}
    y, *running = outputs_of(
        "compiled",
        "BatchNormalization",
        [X, SCALE, B, MEAN, VAR],
        attributes,
        opset=opset,
        outputs=outputs,
    )
    assert_close(y, normalized(X, (0, 2, 3)) * by_channel(SCALE) + by_channel(B))
    mean = 0.75 * MEAN + 0.25 * X.mean((0, 2, 3))
    variance = 0.75 * VAR + 0.25 * X.var((0, 2, 3))
    for found, expected in zip(running, [mean, variance] * (outputs // 2), strict=True):
        assert_close(found, expected)


def test_batch_normalization_7_of_elements():
    given = [normal(3, 4, 2), normal(4, 2), normal(4, 2), normal(4, 2), np.abs(normal(4, 2)) + 1]
    (found,) = outputs_of("called", "BatchNormalization", given, {"spatial": 0}, opset=7)
    x, scale, b, mean, var = given
    assert_close(found, (x - mean) / np.sqrt(var + 1e-5) * scale + b)


def grouped(scale, b):
    plain = normalized(X.reshape(3, 2, -1), 2).reshape(X.shape)
    return plain * by_channel(scale) + by_channel(b)


def test_batch_normalization_7_of_elements_in_training():
    x = normal(3, 4, 2)
    scale, b, mean, var = normal(4, 2), normal(4, 2), normal(4, 2), np.abs(normal(4, 2))
    attributes = {"spatial": 0, "momentum": 0.5}
    y, *running = outputs_of(
        "called", "BatchNormalization", [x, scale, b, mean, var], attributes, opset=7, outputs=5
    )
    assert_close(y, normalized(x, 0) * scale + b, rtol=1e-4)
    assert_close(running[0], (mean + x.mean(0)) / 2)
    assert_close(running[1], (var + x.var(0)) / 2)


@pytest.mark.parametrize("way", WAYS)
def test_group_normalization(way):
    attributes = {"num_groups": 2}
    (found,) = outputs_of(way, "GroupNormalization", [X, SCALE, B], attributes, opset=21)
    assert_close(found, grouped(SCALE, B))


def test_group_normalization_18_has_one_scale_for_each_group():
    rule = lookup("GroupNormalization", "", 18)  # ONNX's checker refuses a model of it
    assert rule is not None
    given = (tp.asarray(one) for one in (X, SCALE[:2], B[:2]))
    found = rule.function(*given, num_groups=2).numpy()
    assert_close(found, grouped(SCALE[:2].repeat(2), B[:2].repeat(2)))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layer_normalization(dtype, axis):
    x, shape = X.astype(dtype), X.shape[axis:]
    scale, b = normal(*shape).astype(dtype), normal(*shape).astype(dtype)
    y, mean, inverse = outputs_of(
        "compiled", "LayerNormalization", [x, scale, b], {"axis": axis}, opset=17, outputs=3
    )
    (alone,) = outputs_of(
        "compiled", "LayerNormalization", [x, scale, b], {"axis": axis}, opset=17
    )
    axes = tuple(range(axis % 4, 4))
    expected = normalized(x, axes) * scale + b
    rtol, atol = (1e-5, 1e-5) if dtype == "float32" else (4e-3, 4e-3)
    for found in (y, alone):
        assert str(found.dtype) == dtype
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    wide = x.astype(np.float64)
    assert_close(mean, wide.mean(axes, keepdims=True))  # float32, whatever x is
    assert_close(inverse, 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rms_normalization_does_not_overflow(dtype):
    x = (X * 100).astype(dtype)  # whose squares are too large for float16
    scale = normal(5).astype(dtype)
    (found,) = outputs_of("compiled", "RMSNormalization", [x, scale], opset=23)
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * scale
    assert str(found.dtype) == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 3e-3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 20])
def test_neighbouring_channels(size):
    x = normal(2, 6, 3)
    attributes = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 1.5}
    (found,) = outputs_of("compiled", "LRN", [x], attributes, opset=13)
    expected = np.empty_like(x)
    for c in range(6):
        near = x[:, max(c - (size - 1) // 2, 0) : c + size // 2 + 1]
        expected[:, c] = x[:, c] / (1.5 + 0.5 / size * (near**2).sum(1)) ** 0.6
    assert_close(found, expected)


@pytest.mark.parametrize("p", [1, 2])
def test_zeros_have_no_direction(p):
    x = np.array([[3, -4], [0, 0]], np.float32)
    (found,) = outputs_of("compiled", "LpNormalization", [x], {"p": p}, opset=7)
    assert_same(found, x / np.array([[7 if p == 1 else 5], [1]], np.float32))


@pytest.mark.parametrize(
    ("opset", "attributes", "mask"),
    [(6, {"is_test": 1}, "float32"), (7, {}, "float32"), (10, {}, "bool"), (13, {}, "bool")],
)
def test_dropout_keeps_all_outside_of_training(opset, attributes, mask):
    found = outputs_of("compiled", "Dropout", [X], attributes, opset=opset, outputs=2)
    assert_same(found[0], X)
    assert_same(found[1], np.ones(X.shape, mask))


def dropped(seed=None):
    attributes = {} if seed is None else {"seed": seed}
    given = [np.ones((100, 100), np.float32), np.array(0.25, np.float32), np.array(True)]
    return outputs_of("called", "Dropout", given, attributes, opset=13, outputs=2)


def test_dropout_in_training_keeps_the_expectation():
    y, mask = dropped()
    assert mask.dtype == np.bool_
    assert_same(y, np.where(mask, np.float32(4 / 3), np.float32(0)))
    assert abs(mask.mean() - 0.75) < 0.03  # seven standard deviations


def test_dropout_6_trains():
    x = np.ones((100, 100), np.float32)
    y, mask = outputs_of("called", "Dropout", [x], {"ratio": 0.25}, opset=6, outputs=2)
    assert_same(y, np.where(mask > 0, np.float32(4 / 3), np.float32(0)))
    assert mask.dtype == np.float32
    assert abs(mask.mean() - 0.75) < 0.03


def test_a_seed_repeats_a_draw():
    assert (dropped(-5)[1] == dropped(-5)[1]).all()
    assert (dropped(5)[1] != dropped(-5)[1]).any()
    assert (dropped()[1] != dropped()[1]).any()


RATIO = np.array(1, np.float32)

# Operator, inputs, attributes, opset, and what the message says.
REFUSED = {
    "channels": (
        "BatchNormalization",
        [X, *[SCALE[:3]] * 4],
        {},
        15,
        "3 numbers for the channels",
    ),
    "groups": ("GroupNormalization", [X, SCALE, B], {"num_groups": 3}, 21, "3"),
    "axis": ("LayerNormalization", [X, SCALE], {"axis": 4}, 17, "axis 4 is out of range"),
    "size": ("LRN", [X], {"size": 0}, 13, "size is 0"),
    "p": ("LpNormalization", [X], {"p": 3}, 22, "p must be 1 or 2, is 3"),
    "ratio": ("Dropout", [X, RATIO, RATIO.astype(bool)], {}, 13, r"ratio must be in \[0, 1\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    op_type, inputs, attributes, opset, message = REFUSED[name]
    with pytest.raises(NodeError, match=message):
        outputs_of("called", op_type, inputs, attributes, opset=opset)


def test_running_statistics_need_training():
    given = [X, SCALE, B, MEAN, VAR]
    with pytest.raises(NodeError, match="only there in training"):
        outputs_of("called", "BatchNormalization", given, opset=15, outputs=3)


def test_batch_normalization_6_trains_with_statistics_as_outputs():
    with pytest.raises(NodeError, match="mean and variance must be outputs"):
        outputs_of("called", "BatchNormalization", [X, SCALE, B, MEAN, VAR], opset=6)


def test_the_mask_is_left_out_if_nobody_asks():
    assert len(model_of("Dropout", [X], opset=13)(X)) == 1
