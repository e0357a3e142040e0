"""Rotary position embeddings, beside rotations as complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

rng = np.random.default_rng(17)


def rotated(x, positions, frequencies, *, interleaved):
    half = x.shape[-1] // 2
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = (first + 1j * second) * np.exp(1j * np.asarray(positions)[..., None] * frequencies)
    result = np.empty_like(x)
    whole = (slice(0, None, 2), slice(1, None, 2))
    places = whole if interleaved else (slice(half), slice(half, None))
    for place, part in zip(places, (turned.real, turned.imag), strict=True):
        result[..., place] = part
    return result


CALLS = {  # the shape of x, positions, options
    "from 0": ((5, 6), None, {}),
    "at positions": ((2, 3, 4, 8), [3, 0, 1000, 7], {}),
    "of each text": ((2, 3, 4, 8), [[[0, 1, 2, 3]], [[9, 10, 11, 12]]], {}),
    "a base": ((3, 4), None, {"base": 500.0}),
    "frequencies": ((3, 6), [0.5, 2, 4], {"frequencies": [1.0, 0.25, 0.0]}),
    "two features": ((2, 3, 2), None, {}),
    "nothing": ((0, 4), None, {}),
}


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_values(name, dtype, interleaved):
    shape, positions, options = CALLS[name]
    x = rng.normal(size=shape).astype(dtype)
    half = shape[-1] // 2
    speed = options.get("base", 1e4) ** (-np.arange(half) / half)
    speed = options.get("frequencies", speed)
    at = np.arange(shape[-2]) if positions is None else positions
    expected = rotated(x.astype(np.float64), at, speed, interleaved=interleaved)
    y = tp.nn.rotary(x, positions, interleaved=interleaved, **options)
    assert (y.shape, y.dtype.name) == (shape, dtype)
    error = {"float16": 4e-3, "float32": 2e-4, "float64": 1e-11}[dtype]  # angles up to 1000
    np.testing.assert_allclose(y.numpy(), expected, rtol=error, atol=error)


@pytest.mark.parametrize("interleaved", [False, True])
def test_products_depend_on_distances(interleaved):
    q, k = (tp.asarray(rng.normal(size=(1, 8))) for _ in "qk")

    def product(p, s):
        turned = [tp.nn.rotary(x, [at], interleaved=interleaved) for x, at in ((q, p), (k, s))]
        return float(tp.sum(turned[0] * turned[1]))

    np.testing.assert_allclose(product(3, 1), product(103, 101), rtol=1e-9)
    assert abs(product(3, 1) - product(3, 2)) > 1e-3


def test_traced_positions():
    x = tp.asarray(rng.normal(size=(2, 1, 4)))
    turn = tp.compile(tp.nn.rotary)
    for at in (3, 11):
        expected = tp.nn.rotary(x, [at]).numpy()
        np.testing.assert_allclose(turn(x, tp.asarray([at])).numpy(), expected, rtol=1e-12)


ONES = np.ones((3, 4), np.float32)
REFUSED = {
    "odd": ((ONES[:, :3],), {}, ShapeError, "even d, got"),
    "rank": ((ONES[0],), {}, ShapeError, "even d, got"),
    "complex": ((ONES * 1j,), {}, DTypeError, "x must be integers or floats"),
    "positions": ((ONES, [1, 2]), {}, ShapeError, "do not broadcast to"),
    "dtype of positions": ((ONES, [True] * 3), {}, DTypeError, "positions must be"),
    "frequencies": ((ONES,), {"frequencies": [1.0]}, ShapeError, r"shape \[2\], got"),
    "flag": ((ONES,), {"interleaved": 1}, ArgumentError, "interleaved must be True or False"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    inputs, options, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        tp.nn.rotary(*inputs, **options)
