"""Products with bias and activation: TensorFlow.js's calls, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def numbers(*shape: int, salt: int = 0) -> np.ndarray:
    return np.random.default_rng([salt, *shape]).uniform(-1, 1, shape).astype("f4")


X, FILTER, BIAS = numbers(2, 4, 5, 2), numbers(2, 3, 2, 3, salt=1), numbers(3, salt=2)
MANY, SLOPES = numbers(6, salt=3), numbers(3, salt=4)


def same(actual: tp.Tensor, expected: np.ndarray) -> None:
    found = actual.numpy()
    assert (found.dtype, found.shape) == (np.float32, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


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


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (
            lambda: tp.nn.fused_conv2d(X, FILTER, activation="tanh"),
            "attribute 'activation': must be one of 'linear', 'relu', 'relu6', 'elu', 'prelu',",
        ),
        (
            lambda: tp.nn.fused_matmul(X, X[0, 0].T, activation="prelu"),
            "activation 'prelu' requires prelu_activation_weights",
        ),
        (
            lambda: tp.nn.fused_conv2d(X, FILTER, leakyrelu_alpha="much"),
            "attribute 'leakyrelu_alpha': must be a number, got 'much'",
        ),
    ],
    ShapeError: [
        (
            lambda: tp.nn.fused_conv2d(X, FILTER, bias=MANY),
            "bias must broadcast to the result's shape, [2, 3, 3, 3]",
        ),
        (
            lambda: tp.nn.fused_matmul(X[0, 0], X[0, 0].T, bias=np.ones((2, 5, 5), "f4")),
            "bias must broadcast to the result's shape, [5, 5]",
        ),
    ],
    DTypeError: [
        (
            lambda: tp.nn.fused_matmul(
                np.ones((2, 2), int), np.ones((2, 2), int), activation="elu"
            ),
            "activation 'elu' does not support int64",
        ),
    ],
}


test_refused = refused(REFUSED)
