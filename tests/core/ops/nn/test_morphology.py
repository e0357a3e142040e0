"""Grayscale dilation: one image, data formats, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.random.default_rng(0).permutation(2 * 5 * 6 * 2).reshape(2, 5, 6, 2).astype("f4")
TAPS = np.float32([[[0.5, 0], [0, 0.25]], [[-40, 30], [20, -10]], [[3, -2], [1, 0]]])


def test_one_image_and_channels_first() -> None:
    options = {"strides": (2, 3), "pad": "same", "dilations": (1, 2)}
    expected = tp.nn.dilation2d(X, TAPS, **options).numpy()
    np.testing.assert_array_equal(tp.nn.dilation2d(X[1], TAPS, **options).numpy(), expected[1])
    first = tp.nn.dilation2d(X.transpose(0, 3, 1, 2), TAPS, data_format="NCHW", **options)
    np.testing.assert_array_equal(first.numpy(), expected.transpose(0, 3, 1, 2))


REFUSED = {  # error: call, what the message says
    ArgumentError: [
        (lambda: tp.nn.dilation2d(X, TAPS, data_format="HWC"), "got 'HWC'"),
        (lambda: tp.nn.dilation2d(X, TAPS, 0), "'strides': must be a positive int"),
    ],
    ShapeError: [
        (lambda: tp.nn.dilation2d(X, TAPS[..., 0]), "filter rank 3, got [2, 5, 6, 2]"),
        (lambda: tp.nn.dilation2d(X, TAPS[..., :1]), "the filter has 1"),
        (lambda: tp.nn.dilation2d(X[:, :2], TAPS), "a window of 3 taps with dilation 1"),
    ],
}

test_refused = refused(REFUSED)
