"""Grayscale dilation and where its gradient goes, against loops."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.random.default_rng(0).permutation(2 * 5 * 6 * 2).reshape(2, 5, 6, 2).astype("f4")
TAPS = np.float32([[[0.5, 0], [0, 0.25]], [[-40, 30], [20, -10]], [[3, -2], [1, 0]]])


def dilated(x: np.ndarray, taps: np.ndarray, before: Any, outs: Any, **options: Any) -> Any:
    """Return the result, and for each of its elements (element, tap) of the first largest."""
    strides, dilations = options.get("strides", (1, 1)), options.get("dilations", (1, 1))
    result = np.full((len(x), *outs, x.shape[3]), -np.inf, x.dtype)
    winners: dict[tuple[int, ...], Any] = {}
    for n, p, q, c in np.ndindex(*result.shape):
        for i, j in np.ndindex(*taps.shape[:2]):
            row = p * strides[0] + i * dilations[0] - before[0]
            column = q * strides[1] + j * dilations[1] - before[1]
            if not (0 <= row < x.shape[1] and 0 <= column < x.shape[2]):
                continue
            total = x[n, row, column, c] + taps[i, j, c]
            if (n, p, q, c) not in winners or total > result[n, p, q, c]:
                result[n, p, q, c] = total
                winners[n, p, q, c] = ((n, row, column, c), (i, j, c))
    return result, winners


WINDOWS: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {  # pad, padding before, positions
    "valid": ("valid", (0, 0), (3, 5), {}),
    "same": ("same", (1, 0), (5, 6), {}),
    "strides": ("same", (1, 0), (3, 2), {"strides": (2, 3)}),
    "dilations": ("valid", (0, 0), (1, 3), {"dilations": (2, 3)}),
    "both": ("same", (1, 0), (3, 2), {"strides": (2, 3), "dilations": (1, 2)}),
    "numeric": (1, (1, 1), (5, 7), {}),
    "pairs": ([(0, 0), (2, 0), (0, 1), (0, 0)], (2, 0), (5, 6), {}),
}


@pytest.mark.parametrize("what", WINDOWS)
def test_dilation(what: str) -> None:
    pad, before, outs, options = WINDOWS[what]
    expected, winners = dilated(X, TAPS, before, outs, **options)
    found = tp.nn.dilation2d(X, TAPS, pad=pad, **options)
    assert (found.dtype, found.shape) == (tp.float32, expected.shape)
    np.testing.assert_array_equal(found.numpy(), expected)
    first = tp.nn.dilation2d(X.transpose(0, 3, 1, 2), TAPS, pad=pad, data_format="NCHW", **options)
    np.testing.assert_array_equal(first.numpy(), expected.transpose(0, 3, 1, 2))
    one = tp.nn.dilation2d(X[1], TAPS, pad=pad, **options)
    np.testing.assert_array_equal(one.numpy(), expected[1])

    dy = np.arange(expected.size, dtype="f4").reshape(expected.shape) % 7 + 1
    dx, dtaps = np.zeros_like(X), np.zeros_like(TAPS)
    for place, (element, tap) in winners.items():
        dx[element] += dy[place]
        dtaps[tap] += dy[place]
    _, pull = tp.vjp(
        lambda x, f: tp.nn.dilation2d(x, f, pad=pad, **options), tp.asarray(X), tp.asarray(TAPS)
    )
    for gradient, wanted in zip(pull(tp.asarray(dy)), (dx, dtaps), strict=True):
        assert (gradient.dtype, gradient.shape) == (tp.float32, wanted.shape)
        np.testing.assert_array_equal(gradient.numpy(), wanted)


def test_a_flat_filter_is_max_pooling() -> None:
    flat = np.zeros((2, 3, 2), "f4")
    found = tp.nn.dilation2d(X, flat, 2, "same")
    np.testing.assert_array_equal(found.numpy(), tp.nn.max_pool(X, (2, 3), 2, "same").numpy())


def test_of_equals_the_first_gets_the_gradient() -> None:
    ones, flat = tp.ones((1, 2, 2, 1)), tp.zeros((2, 2, 1))
    dx, df = tp.grad(lambda x, f: tp.sum(tp.nn.dilation2d(x, f)), argnums=(0, 1))(ones, flat)
    assert dx.tolist() == [[[[1], [0]], [[0], [0]]]]
    assert df.tolist() == [[[1], [0]], [[0], [0]]]


def test_of_nothing_but_minus_infinity_the_first_gets_the_gradient() -> None:
    low = tp.asarray(np.full((1, 1, 2, 1), -np.inf, "f4"))
    dx = tp.grad(lambda x: tp.nn.dilation2d(x, tp.zeros((1, 2, 1))))(low)
    assert dx.tolist() == [[[[1], [0]]]]


def test_what_is_not_finite() -> None:
    """TensorFlow.js passes a NaN over, and gives -2**53 for -inf."""
    x = np.float32([[1, np.nan, -np.inf, -np.inf]]).reshape(1, 1, 4, 1)
    found = tp.nn.dilation2d(x, np.zeros((1, 2, 1), "f4"))
    np.testing.assert_array_equal(found.numpy().ravel(), [np.nan, np.nan, -np.inf])
    nothing = tp.nn.dilation2d(np.ones((1, 1, 1, 1), "f4"), np.zeros((1, 1, 1), "f4"), 1, 1)
    np.testing.assert_array_equal(nothing.numpy()[0, :, 1, 0], [-np.inf, 1, -np.inf])


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "float16", "float64"])
def test_dtypes(dtype: str) -> None:
    x, taps = (X % 50).astype(dtype), np.abs(TAPS).astype(dtype)
    found = tp.nn.dilation2d(x, taps).numpy()
    expected, _ = dilated(x.astype("f8"), taps.astype("f8"), (0, 0), (3, 5))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.astype(dtype))


def test_kernels_as_tensorflow_js_calls_them() -> None:
    x, taps = tp.asarray(X), tp.asarray(TAPS)
    attributes = {"strides": [2, 3], "pad": "same", "dilations": 1}
    expected, winners = dilated(X, TAPS, (1, 0), (3, 2), strides=(2, 3))
    found = tp.run_kernel("Dilation2D", {"x": x, "filter": taps}, attributes)
    np.testing.assert_array_equal(found.numpy(), expected)
    inputs = {"x": x, "filter": taps, "dy": tp.ones(found.shape)}
    dx = tp.run_kernel("Dilation2DBackpropInput", inputs, attributes)
    df = tp.run_kernel("Dilation2DBackpropFilter", inputs, attributes)
    assert (dx.shape, df.shape) == (X.shape, TAPS.shape)
    assert float(tp.sum(dx)) == float(tp.sum(df)) == len(winners)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tp.nn.dilation2d(X, TAPS, data_format="HWC"), ArgumentError, "got 'HWC'"),
        (lambda: tp.nn.dilation2d(X, TAPS[..., 0]), ShapeError, "filter rank 3, got [2, 5, 6, 2]"),
        (lambda: tp.nn.dilation2d(X, TAPS[..., :1]), ShapeError, "the filter takes 1"),
        (lambda: tp.nn.dilation2d(X, TAPS, 0), ArgumentError, "'strides': must be a positive int"),
        (
            lambda: tp.nn.dilation2d(X[:, :2], TAPS),
            ShapeError,
            "a window of 3 taps with dilation 1",
        ),
    ],
)
def test_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()
