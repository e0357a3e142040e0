"""Small programs with known results; the conformance suite tests the kernels one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp


def draw(*shape):
    return np.random.default_rng(len(shape)).uniform(-1.5, 1.5, shape).astype(np.float32)


def softmax(x):
    powers = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


X, W = draw(3, 4), draw(4)

# A program of tensorplug, and the same computation by NumPy in float64.
CASES = {
    "product": (lambda: tp.matmul(X, X.T), lambda: np.einsum("ij,kj", X.astype(np.float64), X)),
    "softmax": (lambda: tp.nn.softmax(tp.asarray(X)), lambda: softmax(X)),
    "variance": (lambda: tp.var(X, axis=0), lambda: np.var(X.astype(np.float64), axis=0)),
    "sorted": (lambda: tp.sort(W), lambda: np.array(sorted(W.tolist()))),
    "gathered": (lambda: tp.take(X, [2, 0], axis=1), lambda: np.stack([X[:, 2], X[:, 0]], 1)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_program(name, compiled):
    function, formula = CASES[name]
    computed, expected = (tp.compile(function) if compiled else function)(), formula()
    assert (computed.device, computed.dtype.name) == ("webgpu", "float32")
    assert computed.shape == expected.shape
    np.testing.assert_allclose(computed.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_gradient_descent_finds_the_least_squares_solution():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(50, 3)).astype(np.float32)
    targets = random.normal(size=(50, 2)).astype(np.float32)
    x, y, w = tp.asarray(inputs), tp.asarray(targets), tp.zeros((3, 2))
    slope = tp.grad(lambda w: tp.mean(tp.squared_difference(x @ w, y)))
    for _ in range(150):
        w = w - 0.5 * slope(w)
    solution, *_ = np.linalg.lstsq(inputs.astype(np.float64), targets)
    assert (w.dtype, w.shape) == (tp.float32, (3, 2))
    np.testing.assert_allclose(w.numpy(), solution, rtol=1e-4, atol=1e-4)


# Whether four elements are taken at once depends on shapes. Arrays, and a computation of them.
LONG, ROWS, ODD = draw(1003), draw(37, 48), draw(37, 50, 1)[..., 0]
STRIPS = {
    "any length": (lambda x: tp.tanh(x) * 3 + x, lambda x: np.tanh(x) * 3 + x, [LONG]),
    "rare branches": (tp.sin, np.sin, [LONG * 1e5]),
    "remainders": (tp.remainder, np.remainder, [LONG, np.roll(LONG, 1)]),
    "bools": (lambda x: (x > 0) ^ (x < 1), lambda x: (x > 0) ^ (x < 1), [LONG]),
    "shifts": (lambda x: x << 3, lambda x: x << 3, [np.arange(-70, 71, dtype=np.int32)]),
    "indices": (tp.tril, np.tril, [ROWS]),
    "a bias": (tp.add, np.add, [ROWS, draw(48)]),
    "an odd bias": (tp.add, np.add, [ODD, draw(50)]),
    "rows": (lambda x: tp.sum(x, axis=1), lambda x: x.sum(1), [draw(3, 70_000)]),
    "a short last part": (tp.sum, np.sum, [draw(257, 4)]),
    "fewer strips than work-items": (
        lambda x: tp.sum(x, axis=1),
        lambda x: x.sum(1),
        [draw(3, 20)],
    ),
    "columns": (lambda x: tp.sum(x, axis=0), lambda x: x.sum(0), [draw(700, 512)]),
    "one number": (tp.mean, np.mean, [draw(8, 50_000)]),
    "few rows": (tp.nn.softmax, softmax, [draw(3, 4096)]),
    "odd rows": (tp.nn.softmax, softmax, [ODD]),
    "scans": (lambda x: tp.cumulative_sum(x, axis=0), lambda x: x.cumsum(0), [ROWS]),
    "gathered rows": (lambda x, i: tp.take(x, i, axis=0), lambda x, i: x[i], [ROWS, np.arange(9)]),
}


@pytest.mark.parametrize("name", STRIPS)
def test_strips(name):
    function, formula, arrays = STRIPS[name]
    arrays = [each.astype(np.int32) if each.dtype == np.int64 else each for each in arrays]
    wide = [each.astype(np.float64) if each.dtype == np.float32 else each for each in arrays]
    computed, expected = tp.compile(function)(*map(tp.asarray, arrays)), formula(*wide)
    assert (computed.device, computed.shape) == ("webgpu", np.shape(expected))
    assert computed.numpy().dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(computed.numpy(), expected, rtol=2e-6, atol=1e-5)


# Shapes of products whose edges fall into tiles, a few, many and very many inner elements.
PRODUCTS = [(37, 70, 65), (5, 300, 33), (70, 5, 2100), (64, 64, 3), (2, 2, 7000), (3, 9, 1030)]


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(("rows", "columns", "inner"), PRODUCTS)
def test_products_of_whole_numbers_are_exact(rows, columns, inner, dtype):
    random = np.random.default_rng(rows)
    a, b = (random.integers(-4, 5, shape) for shape in ((2, rows, inner), (inner, columns)))
    computed = tp.matmul(a.astype(dtype), b.astype(dtype)).numpy()
    np.testing.assert_array_equal(computed, np.einsum("bij,jk", a, b).astype(dtype))


@pytest.mark.parametrize(("stride", "pad"), [(1, "same"), (2, "valid")])
def test_windows_are_counted_along_three_axes(stride, pad):
    """Places in a window follow one another: along its rows, its columns and its channels."""
    random = np.random.default_rng(stride)
    image = random.integers(-4, 5, (2, 9, 11, 3)).astype(np.float32)
    taps = random.integers(-4, 5, (3, 2, 3, 20)).astype(np.float32)
    computed = tp.nn.conv2d(image, taps, strides=stride, pad=pad).numpy()
    if pad == "same":
        image = np.pad(image, ((0, 0), (1, 1), (0, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 2), axis=(1, 2))
    expected = np.einsum("bijcyx,yxco", windows[:, ::stride, ::stride], taps)
    np.testing.assert_array_equal(computed, expected)


def test_crops_lie_between_pixels():
    """Places between pixels are floats, and become indices on a device without 64 bits."""
    image = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    boxes = np.float32([[0.25, 0.0, 0.75, 1.0]])
    crop = tp.run_kernel(
        "CropAndResize", [image, boxes, np.int32([0])], {"crop_size": (2, 3), "method": "bilinear"}
    )
    np.testing.assert_allclose(crop.numpy().ravel(), [2, 3.5, 5, 6, 7.5, 9], rtol=1e-6)


def test_products_of_half_floats_are_rounded_once(backend):
    if tp.float16 not in backend.dtypes:
        pytest.skip("the adapter has no float16")
    a, b = draw(9, 300).astype(np.float16), draw(300, 5).astype(np.float16)
    exact = np.einsum("ij,jk->ik", a.astype(np.float64), b)
    np.testing.assert_allclose(tp.einsum("ij,jk->ik", a, b).numpy(), exact, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("reduction", "expected"), [("max", [5, np.nan, 1]), ("min", [-7, np.nan, 1])]
)
def test_extremes_meet_in_memory(reduction, expected):
    """Many work-items at once combine with each element."""
    updates = np.tile(np.float32([5, np.nan, -7, 3]), 500)
    indices = np.tile(np.int32([[0], [1], [0], [1]]), (500, 1))
    found = tp.run_kernel(
        "TensorScatterReduce",
        [np.ones(3, np.float32), indices, updates],
        {"reduction": reduction, "include_self": True},
    )
    np.testing.assert_array_equal(found.numpy(), np.float32(expected))


def test_places_without_an_end_are_not_finite():
    """A difference of equal numbers is 0, but that of infinities is NaN."""
    horizon = np.float32([[1, 0, 0, 0, 1, 0, -1, 0]])  # the second column lies there
    image = np.arange(1, 7, dtype=np.float32).reshape(1, 2, 3, 1)
    attributes = {"interpolation": "nearest", "fill_mode": "constant", "fill_value": 9.0}
    found = tp.run_kernel("Transform", [image, horizon], attributes | {"output_shape": (2, 3)})
    assert found.numpy()[0, :, 1, 0].tolist() == [9, 9]


@pytest.mark.parametrize("length", [1, 3, 4, 5, 30, 31, 32, 33, 67, 515, 4099])
def test_every_element_of_a_row_is_added_once(length):
    """Loops take several elements at a time, and the rest one by one."""
    x = np.arange(5 * length, dtype=np.int32).reshape(5, length)
    np.testing.assert_array_equal(tp.sum(x, axis=1).numpy(), x.sum(axis=1))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.float32])
def test_products_meet_in_memory(dtype):
    found = tp.run_kernel(
        "TensorScatterReduce",
        [np.ones(2, dtype), np.int32([[0], [1], [0], [0]]), np.array([2, 3, 5, 7], dtype)],
        {"reduction": "multiply", "include_self": True},
    )
    assert found.numpy().tolist() == [70, 3]
