"""Pooling: arguments, one image, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support.refusals import refused

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(7)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


WITHOUT_BATCH = {
    "max_pool": (lambda x: tp.nn.max_pool(x, 2, 2), (4, 4, 3)),
    "avg_pool": (lambda x: tp.nn.avg_pool(x, 2, 2), (4, 4, 3)),
    "max_pool3d": (lambda x: tp.nn.max_pool3d(x, 2, 2), (2, 4, 4, 3)),
    "avg_pool3d": (lambda x: tp.nn.avg_pool3d(x, 2, 2), (2, 4, 4, 3)),
    "pool": (lambda x: tp.nn.pool(x, 2, "max"), (4, 4, 3)),
    "pool of a row": (lambda x: tp.nn.pool(x, [2], "avg"), (4, 3)),
}


@pytest.mark.parametrize("what", WITHOUT_BATCH)
def test_without_batch(what):
    f, shape = WITHOUT_BATCH[what]
    x = RNG.normal(size=shape)
    alone, among = f(x), f(x[None])
    assert (1, *alone.shape) == among.shape
    np.testing.assert_array_equal(alone.numpy(), among.numpy()[0])


def test_arguments():
    image, volume = np.ones((1, 6, 5, 2)), np.ones((1, 2, 6, 5, 4))
    up = {"dim_rounding_mode": "ceil"}
    assert tp.nn.max_pool(image, 3, 2, 0, **up).shape == (1, 3, 2, 2)
    assert tp.nn.avg_pool(image, [2, 3], [1, 2], "same").shape == (1, 6, 3, 2)
    first = tp.nn.avg_pool3d(volume, 2, (1, 2, 1), 1, data_format="NCDHW", **up)
    assert first.shape == (1, 2, 7, 4, 5)
    moves = {"pad": 1, "dilations": 2, "strides": (3, 1)}
    assert tp.nn.pool(image, (2, 3), "max", **moves).shape == (1, 2, 3, 2)
    _, places = tp.nn.max_pool_with_argmax(image, 2, 2, include_batch_in_index=True)
    assert (places.dtype, places.shape) == (tp.int32, (1, 3, 2, 2))


IMAGE = np.ones((1, 5, 5, 2), np.float32)
REFUSED = {  # error: call, what the message says
    ShapeError: [
        (lambda: tp.nn.avg_pool(IMAGE[0, 0], 2, 2), "x must have rank 4"),
        (
            lambda: tp.nn.max_pool3d(IMAGE[0], 2, 2),
            r"MaxPool3D\(x=float32\[5,5,2\]\): x must have rank 5",
        ),
        (lambda: tp.nn.avg_pool(IMAGE, 6, 1), "6 taps with dilation 1 does not"),
        (
            lambda: tp.run_kernel(
                "Pool", {"input": [1.0]}, {"window_shape": 2, "pooling_type": "max", "pad": 0}
            ),
            r"input must be \[batch, one to three spatial axes, channels\], got \[1\]",
        ),
        (
            lambda: tp.run_kernel(
                "AvgPoolGrad",
                {"dy": IMAGE, "input": IMAGE},
                {"filter_size": 2, "strides": 2, "pad": "valid"},
            ),
            r"dy must be float32\[1,2,2,2\]",
        ),
    ],
    ArgumentError: [
        (
            lambda: tp.nn.avg_pool(IMAGE, (1, 2, 3), 1),
            "'filter_size': must be a positive int or two of them",
        ),
        (
            lambda: tp.nn.max_pool3d(IMAGE[None], 2, 2, data_format="NHWC"),
            "'data_format': must be one of 'NDHWC', 'NCDHW', got 'NHWC'",
        ),
        (
            lambda: tp.nn.avg_pool(IMAGE, 2, 2, "same", dim_rounding_mode="ceil"),
            "'pad': must be a number or pairs where dim_rounding_mode is 'ceil', got 'same'",
        ),
        (
            lambda: tp.nn.pool(IMAGE, 2, "min"),
            "'pooling_type': must be one of 'avg', 'max', got 'min'",
        ),
    ],
}


test_refused = refused(REFUSED, regex=True)
