"""Convolutions in groups of channels: those of a filter that is 0 between groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.core.ops.nn.test_convolution import numbers

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def dense(taps: np.ndarray, groups: int) -> np.ndarray:
    """Return the filter of all channels."""
    own, out = taps.shape[-2], taps.shape[-1] // groups
    full = np.zeros((*taps.shape[:-2], own * groups, out * groups), taps.dtype)
    for group in range(groups):
        columns = slice(group * out, (group + 1) * out)
        full[..., group * own : (group + 1) * own, columns] = taps[..., columns]
    return full


def test_groups_of_one_channel_are_one_kernel() -> None:
    x, weights = numbers(2, 5, 5, 4), numbers(3, 3, 1, 8, salt=1)
    with tp.profile() as profile:
        tp.nn.conv2d(x, weights, groups=4)
    names = [kernel.name for kernel in profile.kernels]
    assert "DepthwiseConv2dNative" in names
    assert "Conv2D" not in names


MIXES: list[dict[str, Any]] = [
    {},
    {"pad": "same"},
    {"pad": 0, "dilations": (1, 1)},
    {"strides": (1, 1), "pad": [(0, 0)] * 4},
]
WINDOWS: list[dict[str, Any]] = [
    {"strides": 2},
    {"pad": 1},
    {"pad": ((0, 0), (0, 1), (0, 0), (0, 0))},
    {"pad": 0, "dim_rounding_mode": "ceil"},
]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("options", MIXES + WINDOWS, ids=str)
def test_one_tap_is_one_product(options: dict[str, Any], data_format: str) -> None:
    x, weights = numbers(2, 4, 5, 6), numbers(1, 1, 2, 9, salt=1)
    given = {**options, "data_format": data_format}
    if data_format == "NCHW":
        x = np.moveaxis(x, -1, 1)
        if isinstance(given.get("pad"), list | tuple):
            given["pad"] = [given["pad"][axis] for axis in (0, 3, 1, 2)]
    with tp.profile() as profile:
        found = tp.nn.conv2d(x, weights, groups=3, **given)
    names = [kernel.name for kernel in profile.kernels]
    assert names.count("BatchMatMul") == (options in MIXES)
    assert ("Conv2D" in names) == (options in WINDOWS)
    expected = tp.nn.conv2d(x, dense(weights, 3), **given)
    assert found.type == expected.type
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [{"strides": 0}, {"pad": -1}, {"pad": "all"}, {"dilations": 0}, {"data_format": "HWC"},
     {"dim_rounding_mode": "up"}, {"strides": (1, 1, 1)}],
    ids=str,
)  # fmt: skip
def test_one_tap_with_wrong_attributes(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        tp.nn.conv2d(X, np.ones((1, 1, 2, 6), np.float32), groups=3, **wrong)


def test_one_tap_of_integers_is_refused() -> None:
    with pytest.raises(DTypeError):
        tp.nn.conv2d(X.astype(np.int32), np.ones((1, 1, 2, 6), np.int32), groups=3)


@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize(
    ("axes", "groups", "inputs", "outputs"), [(2, 2, 4, 6), (2, 3, 6, 3), (3, 2, 4, 2)]
)  # (2, 3, 6, 3) has a group for each channel of the result
def test_the_transpose_is_that_of_the_filter_that_is_0_between_groups(
    axes: int, groups: int, inputs: int, outputs: int, *, channels_first: bool
) -> None:
    x, options = numbers(2, *(4, 3, 2)[:axes], inputs), {"strides": 2, "dilations": 1, "pad": 1}
    taps = numbers(*(3, 2, 2)[:axes], outputs // groups, inputs, salt=1)
    shape = (2, *(7, 4, 2)[:axes], outputs)
    transpose, data_format = (
        (tp.nn.conv2d_transpose, "NCHW"),
        (tp.nn.conv3d_transpose, "NCDHW"),
    )[axes - 2]
    expected = transpose(x, dense(taps, groups), shape, **options)
    if channels_first:
        x, options = np.moveaxis(x, -1, 1), {**options, "data_format": data_format}
        shape = (2, outputs, *shape[1:-1])
        expected = tp.moveaxis(expected, -1, 1)
    with tp.profile() as profile:
        found = transpose(x, taps, shape, groups=groups, **options)
    names = [kernel.name for kernel in profile.kernels]
    assert ("DepthwiseConv2dNativeBackpropInput" in names) == (axes == 2 and groups == outputs)
    assert found.type == expected.type
    np.testing.assert_array_equal(found.numpy(), expected.numpy())
    one = transpose(x[0], taps, shape[1:], groups=groups, **options)
    np.testing.assert_array_equal(one.numpy(), expected[0].numpy())


X = np.ones((1, 5, 5, 6), np.float32)


@pytest.mark.parametrize(
    ("shape", "groups", "error", "message"),
    [
        ((3, 3, 3, 4), 0, ArgumentError, "conv2d: groups must be at least 1, got 0"),
        ((3, 3, 3, 4), 2.0, ArgumentError, "conv2d: groups must be an integer, got 2.0"),
        ((3, 3, 3, 4), True, ArgumentError, "conv2d: groups must be an integer, got True"),
        ((3, 3, 2, 4), 4, ShapeError, r"for 4 groups of the 6 channels of x, the filter must be"),
        ((3, 3, 6, 4), 2, ShapeError, r"a multiple of 2\], got float32\[3,3,6,4\]"),
        ((3, 3, 3, 5), 2, ShapeError, r"a multiple of 2\], got float32\[3,3,3,5\]"),
        ((3, 3, 3), 2, ShapeError, "rank 4"),
        ((3, 3, 2, 9), 1, ShapeError, "the filter has 2; x is in NHWC order; .* with groups=3"),
        ((3, 3, 4, 4), 1, ShapeError, "but the filter has 4; x is in NHWC order$"),
        ((3, 3, 2, 4), 1, ShapeError, "order$"),  # 3 does not divide 4
    ],
)
def test_refused(
    shape: tuple[int, ...], groups: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tp.nn.conv2d(X, np.ones(shape, np.float32), groups=groups)


@pytest.mark.parametrize(
    ("shape", "result", "groups", "error", "message"),
    [
        ((3, 3, 2, 6), (1, 7, 7, 4), 0, ArgumentError, "transpose: groups must be at least 1"),
        ((3, 3, 2, 6), (1, 7, 7, 6), 2, ShapeError, r"of the 6 channels of x and the 6 of the"),
        ((3, 3, 1, 6), (1, 7, 7, 4), 4, ShapeError, r"both multiples of 4, the filter must be"),
        ((3, 3, 2, 4), (1, 7, 7, 4), 2, ShapeError, r"must be \[..., 4 / 2, 6\], got float32"),
        ((3, 2, 6), (1, 7, 7, 4), 2, ShapeError, "must have rank 4"),
        ((3, 3, 2, 6), (7, 7, 7, 1, 4), 2, ShapeError, "must have rank 4"),
    ],
)
def test_transposes_that_are_refused(
    shape: tuple[int, ...],
    result: tuple[int, ...],
    groups: int,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        tp.nn.conv2d_transpose(X, np.ones(shape, np.float32), result, groups=groups)
