"""grid_sample against the definition: one place, one element at a time."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

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


def test_the_identity():
    x = np.random.default_rng(2).uniform(-1, 1, (2, 3, 4, 2))
    rows, columns = (np.arange(n) * 2 / n + 1 / n - 1 for n in (3, 4))
    grid = np.stack(np.meshgrid(columns, rows), axis=-1)
    for method, padding in product(METHODS, PADDINGS):
        found = tp.image.grid_sample(x, np.stack([grid, grid]), method, padding)
        near(found, x, "float64")


@pytest.mark.parametrize("method", METHODS)
def test_dtypes(method):
    x = (np.arange(24) % 7).reshape(1, 3, 4, 2)
    grid = np.random.default_rng(3).uniform(-1, 1, (1, 5, 2))
    for dtype in ("bool", "uint8", "int32", "float16", "float32", "complex64"):
        given = x.astype(dtype)
        found = tp.image.grid_sample(given, grid, method)
        keeps = method == "nearest" or dtype in ("float16", "float32", "complex64")
        assert found.dtype.name == (dtype if keeps else "float32")
        wanted = reference(given.real.astype(float), grid, method, "zeros", align_corners=False)
        tolerance = 2e-3 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(found.numpy().real, wanted, rtol=tolerance, atol=1e-5)
    whole = np.array([[[0, 1], [-1, 0]]])
    found = tp.image.grid_sample(x, whole, method, "border", align_corners=True)
    wanted = reference(x.astype(float), whole, method, "border", align_corners=True)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    half = tp.image.grid_sample(x.astype(np.float32), grid.astype(np.float16), method)
    wanted = reference(x, grid.astype(np.float16), method, "zeros", align_corners=False)
    np.testing.assert_allclose(half.numpy(), wanted, rtol=1e-5, atol=1e-5)


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


def test_nothing():
    x = np.zeros((2, 3, 4, 1), np.float32)
    assert tp.image.grid_sample(x, np.zeros((2, 0, 5, 2))).shape == (2, 0, 5, 1)
    assert tp.image.grid_sample(x[:0], np.zeros((0, 6, 2))).shape == (0, 6, 1)
    assert tp.image.grid_sample(x[..., :0], np.zeros((2, 6, 2)), "cubic").shape == (2, 6, 0)
    assert tp.image.grid_sample(x[:, :0], np.zeros((2, 0, 2)), "nearest").shape == (2, 0, 1)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("method", METHODS)
def test_gradients(method, padding, align_corners):
    rng = np.random.default_rng(6)
    for sizes, places in (((3, 4), (3, 3)), ((5,), (4,))):
        x = rng.uniform(-1, 1, (2, *sizes, 2))
        grid = rng.uniform(-1.7, 1.7, (2, *places, len(sizes)))
        check_grads(
            lambda x, g: (
                tp.image.grid_sample(x, g, method, padding, align_corners=align_corners) ** 2
            ),
            [x, grid],
            order=2,
        )


def test_the_slope_at_a_centre_is_that_towards_the_next_element():
    x = np.array([1.0, 2.0, 5.0]).reshape(1, 3, 1)
    slopes = tp.grad(lambda g: tp.sum(tp.image.grid_sample(x, g, align_corners=True)))
    assert slopes(tp.asarray([[[0.0]]])).tolist() == [[[3.0]]]


@pytest.mark.parametrize("method", METHODS)
def test_compiled(method):
    rng = np.random.default_rng(7)
    x, grid = rng.uniform(-1, 1, (2, 4, 3, 2)), rng.uniform(-1.5, 1.5, (2, 5, 2))
    program = tp.compile(lambda x, g: tp.image.grid_sample(x, g, method, "reflection") + 1)
    wanted = reference(x, grid, method, "reflection", align_corners=False) + 1
    for _ in range(2):
        near(program(tp.asarray(x), tp.asarray(grid)), wanted, "float64")


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
