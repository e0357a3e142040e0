"""Random numbers: seeds, distributions, dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tensorplug_onnx import NodeError

from .one_operator import as_host, model_of

SIZE = 20_000
LIKE = np.zeros((SIZE,), np.float32)
ODDS = np.linspace(0.0, 1.0, SIZE, dtype=np.float32)
LOGITS = np.log(np.array([[1, 2, 5], [6, 1, 1]], np.float32))

# Operator, inputs, attributes, and dtype, shape, mean and deviation of the draws.
DRAWS = {
    "normal": ("RandomNormal", [], {"shape": [SIZE], "mean": 3.0, "scale": 2.0}, "float32", 3, 2),
    "normal, wide": (
        "RandomNormal", [], {"shape": [SIZE], "dtype": TensorProto.DOUBLE}, "float64", 0, 1),
    "normal like": ("RandomNormalLike", [LIKE], {"scale": 0.5}, "float32", 0, 0.5),
    "normal like integers": (
        "RandomNormalLike", [LIKE.astype(np.int8)], {"dtype": TensorProto.FLOAT16},
        "float16", 0, 1),
    "uniform": (
        "RandomUniform", [], {"shape": [SIZE], "low": -1.0, "high": 3.0},
        "float32", 1, 4 / 12**0.5),
    "uniform like": ("RandomUniformLike", [LIKE], {}, "float32", 0.5, 12**-0.5),
    "Bernoulli": ("Bernoulli", [ODDS], {}, "float32", 0.5, 0.5),
    "Bernoulli of booleans": (
        "Bernoulli", [np.full(SIZE, 0.25)], {"dtype": TensorProto.BOOL},
        "bool", 0.25, 0.1875**0.5),
}  # fmt: skip
MODES = ["called", "compiled"]


def draw_twice(mode, operator, inputs, attributes):
    model = model_of(operator, inputs, attributes, opset=22)
    model = model.compile() if mode == "compiled" else model
    return [as_host(model(*inputs)["y0"]) for _ in range(2)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DRAWS)
def test_distributions(name, mode):
    operator, inputs, attributes, dtype, mean, deviation = DRAWS[name]
    first, second = draw_twice(mode, operator, inputs, {**attributes, "seed": 11.5})
    assert first.dtype == dtype
    assert first.shape == (SIZE,)
    np.testing.assert_array_equal(first, second)
    numbers = first.astype(np.float64)
    error = 5 * deviation / SIZE**0.5
    assert abs(numbers.mean() - mean) < error
    assert abs(numbers.std() - deviation) < error


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", DRAWS)
def test_without_a_seed_each_call_draws_anew(name, mode):
    operator, inputs, attributes, *_ = DRAWS[name]
    first, second = draw_twice(mode, operator, inputs, attributes)
    assert (first != second).any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("elem_type", "dtype"), [(6, "int32"), (7, "int64")])
def test_multinomial(elem_type, dtype, mode):
    attributes = {"sample_size": SIZE, "dtype": elem_type, "seed": 1.0}
    found, again = draw_twice(mode, "Multinomial", [LOGITS], attributes)
    assert found.dtype == dtype
    assert found.shape == (2, SIZE)
    np.testing.assert_array_equal(found, again)
    shares = np.stack([np.bincount(row, minlength=3) for row in found]) / SIZE
    np.testing.assert_allclose(shares, [[1 / 8, 2 / 8, 5 / 8], [6 / 8, 1 / 8, 1 / 8]], atol=0.02)


def test_seeds_differ():
    first, second = (
        draw_twice("called", "RandomNormal", [], {"shape": [9], "seed": seed})[0]
        for seed in (1.0, 1.5)
    )
    assert (first != second).all()


def test_multinomial_needs_a_matrix():
    with pytest.raises(NodeError, match=r"Multinomial.*rank 1"):
        draw_twice("called", "Multinomial", [LOGITS[0]], {})
