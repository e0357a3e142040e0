"""Products with bias and activation: equal to their parts, gradients too."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def numbers(*shape: int, salt: int = 0) -> np.ndarray:
    return np.random.default_rng([salt, *shape]).uniform(-1, 1, shape).astype("f4")


ACTIVATIONS: dict[str, Any] = {  # the formula, of x and the slopes below 0
    "linear": lambda x, _: x,
    "relu": lambda x, _: np.maximum(x, 0),
    "relu6": lambda x, _: np.clip(x, 0, 6),
    "elu": lambda x, _: np.where(x > 0, x, np.expm1(x)),
    "prelu": lambda x, slopes: np.where(x > 0, x, x * slopes),
    "leakyrelu": lambda x, _: np.where(x > 0, x, x * 0.2),
    "sigmoid": lambda x, _: 1 / (1 + np.exp(-x)),
}
X, FILTER, BIAS = numbers(2, 4, 5, 2), numbers(2, 3, 2, 3, salt=1), numbers(3, salt=2)
MANY, SLOPES = numbers(6, salt=3), numbers(3, salt=4)


def same(actual: tp.Tensor, expected: np.ndarray) -> None:
    found = actual.numpy()
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    formula = ACTIVATIONS[name]
    options = {"activation": name, "prelu_activation_weights": SLOPES if name == "prelu" else None}
    product = tp.nn.conv2d(X, FILTER, 1, "same").numpy()
    expected = formula(product + BIAS, SLOPES)
    same(tp.nn.fused_conv2d(X, FILTER, 1, "same", bias=BIAS, **options), expected)
    same(tp.nn.fused_conv2d(X[1], FILTER, 1, "same", bias=BIAS, **options), expected[1])
    first = tp.nn.fused_conv2d(
        X.transpose(0, 3, 1, 2), FILTER, 1, "same", bias=BIAS, data_format="NCHW", **options
    )
    same(first, expected.transpose(0, 3, 1, 2))
    same(
        tp.nn.fused_conv2d(X, FILTER, 1, "same", **options),
        formula(product, SLOPES),
    )
    matrix = X.reshape(20, 4)[:, :2] @ FILTER[0, 0]
    found = tp.nn.fused_matmul(X.reshape(20, 4)[:, :2], FILTER[0, 0], bias=BIAS, **options)
    same(found, formula(matrix + BIAS, SLOPES))


@pytest.mark.parametrize(
    "name", [activation for activation in ACTIVATIONS if activation != "prelu"]
)
def test_depthwise(name: str) -> None:
    product = tp.nn.depthwise_conv2d(X, FILTER, 2, 1, dilations=(1, 2)).numpy()
    found = tp.nn.fused_depthwise_conv2d(
        X, FILTER, 2, 1, dilations=(1, 2), bias=MANY, activation=name
    )
    same(found, ACTIVATIONS[name](product + MANY, None))
    slopes = np.float32(0.5) * MANY
    found = tp.nn.fused_depthwise_conv2d(
        X, FILTER, 2, 1, dilations=(1, 2), activation="prelu", prelu_activation_weights=slopes
    )
    same(found, ACTIVATIONS["prelu"](product, slopes))


def test_slopes_of_leaky_relu() -> None:
    product = tp.nn.conv2d(X, FILTER).numpy()
    for alpha in (0.0, 0.5, 2.0, -0.5):
        found = tp.nn.fused_conv2d(X, FILTER, activation="leakyrelu", leakyrelu_alpha=alpha)
        same(found, np.where(product > 0, product, product * np.float32(alpha)))


def test_flags_and_batches_of_a_matrix_product() -> None:
    a, b = numbers(2, 1, 4, 3), numbers(5, 4)
    found = tp.nn.fused_matmul(a, b, transpose_a=True, transpose_b=True, bias=BIAS[:, None])
    same(found, a.swapaxes(-1, -2) @ b.T + BIAS[:, None])


def test_integers_and_complex_numbers_of_a_matrix_product() -> None:
    a = np.int32([[1, -2], [3, 4]])
    found = tp.nn.fused_matmul(a, a, bias=np.int32([1, 0]), activation="relu6")
    assert (found.dtype, found.tolist()) == (tp.int32, [[0, 0], [6, 6]])
    product = tp.nn.fused_matmul(a * 1j, a, bias=1j)
    np.testing.assert_array_equal(product.numpy(), a @ a * 1j + 1j)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("name", [*ACTIVATIONS, "falling"])
def test_gradients_equal_those_of_the_parts(name: str, data_format: str) -> None:
    """TensorFlow.js has them for linear and relu only, in NHWC and without dilations."""
    x = X if data_format == "NHWC" else X.transpose(0, 3, 1, 2)
    options: dict[str, Any] = {"dilations": (1, 2), "data_format": data_format}
    alpha = -0.5 if name == "falling" else 0.2
    activation = "leakyrelu" if name == "falling" else name
    column = (slice(None), None, None) if data_format == "NCHW" else (slice(None),)

    def fused(x: Any, taps: Any, bias: Any, slopes: Any) -> Any:
        return tp.nn.fused_conv2d(
            x,
            taps,
            1,
            "same",
            bias=bias,
            activation=activation,
            prelu_activation_weights=slopes,
            leakyrelu_alpha=alpha,
            **options,
        )

    def parts(x: Any, taps: Any, bias: Any, slopes: Any) -> Any:
        total = tp.nn.conv2d(x, taps, 1, "same", **options) + bias[column]
        if activation == "prelu":
            return tp.nn.prelu(total, slopes[column])
        if activation == "leakyrelu":
            return tp.nn.leaky_relu(total, alpha) + 0 * tp.sum(slopes)
        return (getattr(tp.nn, name)(total) if name != "linear" else total) + 0 * tp.sum(slopes)

    given = [tp.asarray(item) for item in (x, FILTER, BIAS, SLOPES)]
    value, pull = tp.vjp(fused, *given)
    dy = tp.asarray(numbers(*value.shape, salt=9))
    _, pull_parts = tp.vjp(parts, *given)
    for found, wanted in zip(pull(dy), pull_parts(dy), strict=True):
        same(found, wanted.numpy())


def test_gradients_without_a_bias() -> None:
    x, taps = tp.asarray(X, dtype="float64"), tp.asarray(FILTER, dtype="float64")
    for convolve in (tp.nn.fused_conv2d, tp.nn.fused_depthwise_conv2d):
        check_grads(lambda x, f, c=convolve: c(x, f, activation="elu"), (x, taps), order=2)
    check_grads(
        lambda a, b: tp.nn.fused_matmul(a, b, activation="sigmoid"),
        (x[0, :, 0], taps[0, 0]),
        order=2,
    )


def test_kernels_as_tensorflow_js_calls_them() -> None:
    x, taps, bias = tp.asarray(X), tp.asarray(FILTER), tp.asarray(BIAS)
    attributes = {
        "strides": [1, 1],
        "pad": "valid",
        "data_format": "NHWC",
        "dilations": [1, 1],
        "dim_rounding_mode": None,
        "activation": "leakyrelu",
        "leakyrelu_alpha": None,
    }
    found = tp.run_kernel("FusedConv2D", {"x": x, "filter": taps, "bias": bias}, attributes)
    total = tp.nn.conv2d(x, taps).numpy() + BIAS
    same(found, np.where(total > 0, total, total * np.float32(0.2)))
    a, b = tp.asarray(X[0, 0]), tp.asarray(FILTER[0, 0])
    flags = {"transpose_a": False, "transpose_b": False}
    same(tp.run_kernel("_FusedMatMul", {"a": a, "b": b}, flags), X[0, 0] @ FILTER[0, 0])


REFUSED = {
    "activation": (
        lambda: tp.nn.fused_conv2d(X, FILTER, activation="tanh"),
        ArgumentError,
        "attribute 'activation': must be one of 'linear', 'relu', 'relu6', 'elu', 'prelu',",
    ),
    "no slopes": (
        lambda: tp.nn.fused_matmul(X, X[0, 0].T, activation="prelu"),
        ArgumentError,
        "activation 'prelu' needs prelu_activation_weights",
    ),
    "bias": (
        lambda: tp.nn.fused_conv2d(X, FILTER, bias=MANY),
        ShapeError,
        "bias does not broadcast to the result, [2, 3, 3, 3]",
    ),
    "a bias that widens": (
        lambda: tp.nn.fused_matmul(X[0, 0], X[0, 0].T, bias=np.ones((2, 5, 5), "f4")),
        ShapeError,
        "bias does not broadcast to the result, [5, 5]",
    ),
    "slope": (
        lambda: tp.nn.fused_conv2d(X, FILTER, leakyrelu_alpha="much"),
        ArgumentError,
        "attribute 'leakyrelu_alpha': must be a number, got 'much'",
    ),
    "integers": (
        lambda: tp.nn.fused_matmul(np.ones((2, 2), int), np.ones((2, 2), int), activation="elu"),
        DTypeError,
        "activation 'elu' is not for int64",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=re.escape(message)):
        call()
