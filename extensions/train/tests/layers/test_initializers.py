"""Initializers: dtypes, bounds, and variances by formulas."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ShapeError

initializers = tp.train.initializers
SHAPE = (3, 5, 60, 40)  # a convolution: 900 inputs and 600 outputs of a unit
FAN_IN, FAN_OUT = 900, 600
N = math.prod(SHAPE)

VARIANCES = {
    "he_normal": 2 / FAN_IN,
    "he_uniform": 2 / FAN_IN,
    "glorot_normal": 2 / (FAN_IN + FAN_OUT),
    "glorot_uniform": 2 / (FAN_IN + FAN_OUT),
    "lecun_normal": 1 / FAN_IN,
    "lecun_uniform": 1 / FAN_IN,
    "normal": 0.05**2,
    "uniform": 0.05**2 / 3,
    "truncated_normal": 0.05**2,
}


@pytest.mark.parametrize("name", VARIANCES)
@pytest.mark.parametrize("dtype", [None, "float64", "bfloat16"])
def test_variances_are_those_of_the_formulas(name, dtype):
    drawn = getattr(initializers, name)(tp.random.key(2), SHAPE, dtype)
    assert (drawn.shape, drawn.dtype.name) == (SHAPE, dtype or "float32")
    x, variance = drawn.numpy().astype(np.float64), VARIANCES[name]
    # Five standard deviations of the mean and of the variance of N numbers, of normal ones, which
    # vary the most; bfloat16 rounds by up to 1/256, and by a quarter of that in the mean square.
    assert abs(x.mean()) < 5 * math.sqrt(variance / N)
    assert x.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / N))


@pytest.mark.parametrize("bound", [0.5, 1.0, 2.0, 3.0])
def test_a_truncated_normal_ends_where_its_parent_is_cut(bound):
    x = initializers.truncated_normal(
        tp.random.key(0), (400, 400), "float64", scale=0.3, bound=bound
    ).numpy()
    # The variance of what is left of a standard normal distribution, by numerical integration.
    z = np.linspace(-bound, bound, 100_001)
    density = np.exp(-z * z / 2)
    variance = np.trapezoid(z * z * density, z) / np.trapezoid(density, z)
    parent = 0.3 / math.sqrt(variance)
    assert x.std() == pytest.approx(0.3, rel=5 / math.sqrt(x.size))
    assert 0.99 * bound * parent < abs(x).max() <= bound * parent * (1 + 1e-12)
    inside = abs(x) < parent * bound / 2
    near = abs(z) < bound / 2
    share = np.trapezoid(density * near, z) / np.trapezoid(density, z)
    assert inside.mean() == pytest.approx(share, abs=5 * math.sqrt(0.25 / x.size) + 1e-4)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (2, 3, 4), (2, 2, 9)])
@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-13), (None, 2e-6), ("float16", 5e-3)])
def test_orthogonal_matrices(shape, dtype, error):
    drawn = initializers.orthogonal(tp.random.key(1), shape, dtype, scale=2.0)
    assert (drawn.shape, drawn.dtype.name) == (shape, dtype or "float32")
    x = drawn.numpy().astype(np.float64).reshape(-1, shape[-1])
    product = x.T @ x if x.shape[0] >= x.shape[1] else x @ x.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=4 * error)


def test_orthogonal_matrices_are_uniformly_distributed():
    keys = tp.random.split(tp.random.key(3), 4000)
    x = tp.vmap(lambda key: initializers.orthogonal(key, (2, 2), "float64"))(keys).numpy()
    # The angle of the first column of a rotation or reflection is uniform on the circle.
    turns = np.arctan2(x[:, 1, 0], x[:, 0, 0]) / (2 * np.pi) % 1
    counts = np.histogram(turns, bins=8, range=(0, 1))[0]
    assert (np.abs(counts - 500) < 5 * math.sqrt(500)).all()
    assert abs((np.linalg.det(x) > 0).mean() - 0.5) < 5 * math.sqrt(0.25 / 4000)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (initializers.zeros, 0),
        (initializers.ones, 1),
        (partial(initializers.constant, value=0.25), 0.25),
    ],
)
@pytest.mark.parametrize("dtype", [None, "float16"])
def test_constants(make, value, dtype):
    x = make(tp.random.key(0), (2, 3), dtype)
    assert (x.dtype.name, x.tolist()) == (dtype or "float32", [[value] * 3] * 2)


def test_fans_need_two_axes():
    with pytest.raises(
        ShapeError, match=r"he_normal: the shape must have two axes .*, got \(3,\)"
    ):
        initializers.he_normal(tp.random.key(0), (3,))
