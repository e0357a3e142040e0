"""Group, instance and root-mean-square normalization against NumPy, group by group."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

RNG = np.random.default_rng(9)
TOLERANCES = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-13}


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def assert_close(found, expected, dtype):
    assert (found.shape, found.dtype.name) == (expected.shape, dtype)
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


def by_groups(x, groups, offset, scale, axis, epsilon):
    """Normalize one group of one example at a time, in float64."""
    moved = np.moveaxis(x.astype(np.float64), axis, 1)
    y = np.empty_like(moved)
    step = moved.shape[1] // groups
    for example in range(len(moved)):
        for first in range(0, moved.shape[1], step):
            at = example, slice(first, first + step)
            part = moved[at]
            y[at] = (part - part.mean()) / np.sqrt(part.var() + epsilon)
    shape = (-1,) + (1,) * (x.ndim - 2)
    return np.moveaxis(y * scale.reshape(shape) + offset.reshape(shape), 1, axis)


SHAPES = {
    "NHWC": ((2, 3, 4, 6), -1),
    "NCHW": ((2, 6, 3, 4), 1),
    "NWC": ((3, 5, 6), 2),
    "in between": ((2, 3, 6, 2), -2),
    "one example": ((1, 2, 2, 2, 6), -1),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("name", SHAPES)
def test_group_norm(name, groups, dtype):
    shape, axis = SHAPES[name]
    x = (RNG.normal(size=shape) * 3 + 1).astype(dtype)
    offset, scale = (RNG.normal(size=6).astype(dtype) for _ in range(2))
    expected = by_groups(x, groups, offset, scale, axis, 1e-3)
    options = {"channel_axis": axis, "epsilon": 1e-3}
    assert_close(tp.nn.group_norm(x, groups, offset, scale, **options), expected, dtype)
    if groups == 6:
        assert_close(tp.nn.instance_norm(x, offset, scale, **options), expected, dtype)
    plain = by_groups(x, groups, np.zeros(6), np.ones(6), axis, 1e-5)
    assert_close(tp.nn.group_norm(x, groups, channel_axis=axis), plain, dtype)


RMS = {
    "features last": ((3, 5), -1, (5,)),
    "first axis": ((3, 5), 0, (3, 1)),
    "two axes": ((2, 3, 4), (1, 2), (3, 4)),
    "all": ((2, 3), None, ()),
    "without a scale": ((2, 3), -1, None),
    "one number": ((), None, None),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", RMS)
def test_rms_norm(name, dtype):
    shape, axis, scaled = RMS[name]
    x = np.asarray(RNG.normal(size=shape) * 3).astype(dtype)
    scale = None if scaled is None else RNG.normal(size=scaled).astype(dtype)
    power = np.linalg.norm(x.astype(np.float64).reshape(-1)) ** 2 / x.size
    if axis is not None:
        power = np.einsum("...,...->...", x, x, dtype=np.float64).mean(axis, keepdims=True)
    expected = x / np.sqrt(power + 0.25) * (1 if scale is None else scale)
    assert_close(tp.nn.rms_norm(x, scale, axis=axis, epsilon=0.25), expected, dtype)


X = np.ones((2, 3, 4))
REFUSED = {
    "groups": (lambda: tp.nn.group_norm(X, 3), ArgumentError, r"the 4 channels of float64\["),
    "no groups": (lambda: tp.nn.group_norm(X, 0), ArgumentError, "got 0"),
    "groups are no integer": (
        lambda: tp.nn.group_norm(X, 2.0),
        ArgumentError,
        "groups must be an",
    ),
    "rank": (lambda: tp.nn.group_norm(X[0, 0], 2), ShapeError, "at least rank 2, got float64"),
    "rank 2": (lambda: tp.nn.instance_norm(X[0]), ShapeError, "at least rank 3, got float64"),
    "axis": (lambda: tp.nn.group_norm(X, 2, channel_axis=3), OutOfRangeError, "channel_axis"),
    "examples": (lambda: tp.nn.instance_norm(X, channel_axis=0), ShapeError, "must not be axis 0"),
    "offset": (lambda: tp.nn.instance_norm(X, X), ShapeError, "offset must have one number"),
    "scale": (lambda: tp.nn.group_norm(X, 2, None, [1.0]), ShapeError, "scale must .* 4 channels"),
    "complex": (lambda: tp.nn.group_norm(X * 1j, 2), DTypeError, "must hold real numbers"),
    "epsilon": (lambda: tp.nn.group_norm(X, 2, epsilon="a"), ArgumentError, "must be a number"),
    "rms scale": (lambda: tp.nn.rms_norm(X, np.ones(3)), ShapeError, "scale must broadcast to"),
    "rms large scale": (lambda: tp.nn.rms_norm(X[0], X), ShapeError, "scale must broadcast to"),
    "rms axis": (lambda: tp.nn.rms_norm(X, axis=3), OutOfRangeError, "axis 3"),
    "rms complex": (lambda: tp.nn.rms_norm(X * 1j), DTypeError, "rms_norm: x must hold real"),
    "rms epsilon": (lambda: tp.nn.rms_norm(X, epsilon=None), ArgumentError, "must be a number"),
    "rms complex epsilon": (lambda: tp.nn.rms_norm(X, epsilon=1j), DTypeError, "1j"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
