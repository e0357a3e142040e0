"""grid_sample against the definition: one place, one element at a time."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

METHODS = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")
INF, NAN = np.inf, np.nan


def reflect(at, length, align_corners):
    """Walk back from edge to edge."""
    low, high = (0, length - 1) if align_corners else (-0.5, length - 0.5)
    if low == high:
        return 0
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def element(at, length, padding, align_corners):
    """Return the number of the element at a whole number, None for none."""
    if padding == "zeros":
        return at if 0 <= at < length else None
    if padding == "reflection":
        at = reflect(at, length, align_corners)
    return int(min(max(at, 0), length - 1))


def keys(d):
    a, d = -0.75, abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def weights(g, length, method, padding, align_corners):
    """Return (element, weight) of one axis."""
    at = (g + 1) / 2 * (length - 1) if align_corners else ((g + 1) * length - 1) / 2
    if method != "cubic":
        if padding == "reflection":
            at = reflect(at, length, align_corners)
        if padding != "zeros":
            at = min(max(at, 0), length - 1)
    if method == "nearest":
        return [(element(int(np.rint(at)), length, padding, align_corners), 1.0)]
    kernel = keys if method == "cubic" else lambda d: max(0.0, 1 - abs(d))
    around = range(math.floor(at) - 1, math.floor(at) + 3)
    return [(element(i, length, padding, align_corners), kernel(i - at)) for i in around]


def reference(x, grid, method, padding, align_corners):
    places = grid.shape[1:-1]
    out = np.zeros((len(x), *places, x.shape[-1]))
    for batch, *place in np.ndindex(len(x), *places):
        listed = [
            weights(float(g), length, method, padding, align_corners)
            for g, length in zip(grid[batch][tuple(place)][::-1], x.shape[1:-1], strict=True)
        ]
        for chosen in product(*listed):
            if all(number is not None for number, _ in chosen):
                value = x[(batch, *(number for number, _ in chosen))]
                out[(batch, *place)] += value * math.prod(weight for _, weight in chosen)
    return out


def near(actual, expected, dtype):
    assert (actual.dtype.name, actual.shape) == (dtype, expected.shape)
    allowed = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(actual.numpy(), expected, rtol=allowed, atol=allowed)


# sizes, places
SHAPES = {
    "images": ((4, 5), (3, 2)),
    "one place": ((3, 4), ()),
    "one row": ((1, 6), (7,)),
    "one pixel": ((1, 1), (4, 3)),
    "sequences": ((6,), (9,)),
    "volumes": ((2, 3, 4), (2, 2, 2)),
}


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("what", SHAPES)
def test_places(what, method, padding, align_corners):
    sizes, places = SHAPES[what]
    rng = np.random.default_rng(len(what))
    x = rng.uniform(-3, 3, (2, *sizes, 2))
    inside = rng.uniform(-1, 1, (2, *places, len(sizes)))
    wide = rng.uniform(-4, 4, (2, *places, len(sizes)))
    whole = rng.integers(-2, 3, (2, *places, len(sizes))).astype(np.float64)
    for grid in (inside, wide, whole):
        wanted = reference(x, grid, method, padding, align_corners)
        found = tp.image.grid_sample(x, grid, method, padding, align_corners=align_corners)
        near(found, wanted, "float64")
    if method != "nearest":  # which rounds in another place
        found = tp.image.grid_sample(
            x.astype(np.float32),
            inside.astype(np.float32),
            method,
            padding,
            align_corners=align_corners,
        )
        wanted = reference(x, inside, method, padding, align_corners)
        near(found, wanted.astype(np.float32), "float32")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("place", "padding", "wanted"),
    [
        (NAN, "zeros", NAN),
        (NAN, "border", NAN),
        (NAN, "reflection", NAN),
        (INF, "zeros", 0),
        (-INF, "zeros", 0),
        (INF, "border", 3),
        (-INF, "border", 1),
        (1e30, "zeros", 0),
        (1e30, "border", 3),
    ],
)
def test_places_that_are_not_finite(method, place, padding, wanted):
    x = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1)
    found = tp.image.grid_sample(x, [[[place]]], method, padding)
    np.testing.assert_array_equal(found.numpy(), [[[wanted]]])
    whole = tp.image.grid_sample(x.astype(np.int32), [[[place]]], "nearest", padding)
    assert whole.shape == (1, 1, 1)


X, GRID = np.ones((2, 3, 4, 1), np.float32), np.zeros((2, 5, 2), np.float32)
BAD = [
    (lambda f: f(X[0, 0], GRID), ShapeError, "images are float32[4,1], but must have shape"),
    (lambda f: f(X, GRID[:1]), ShapeError, "grid is float32[1,5,2], but must have shape [2, *pl"),
    (lambda f: f(X, GRID[..., :1]), ShapeError, "grid is float32[2,5,1], but must have shape [2"),
    (lambda f: f(X[:, :0], GRID), ShapeError, "images are float32[2,0,4,1]: there is nothing"),
    (lambda f: f(X, GRID, "bilinear"), ArgumentError, "method must be one of 'nearest', 'linear'"),
    (lambda f: f(X, GRID, padding="wrap"), ArgumentError, "padding must be one of 'zeros', 'bor"),
    (lambda f: f(X, GRID, align_corners=1), ArgumentError, "align_corners must be True or False"),
    (lambda f: f(X, GRID * 1j), DTypeError, "grid_sample: grid must hold real numbers"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call(tp.image.grid_sample)
