"""Pooling against loops over every window, and in TensorFlow.js's corners."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with tp.use_backend("cpu"):
        yield


def _starts(size, taps, stride, dilation, pad, rounding):
    """Return where the windows of one axis start."""
    reach = (taps - 1) * dilation + 1
    if pad == "same":
        count = math.ceil(size / stride)
        low = max((count - 1) * stride + reach - size, 0) // 2
    else:
        low, high = (0, 0) if pad == "valid" else pad
        free = (size + low + high - reach) / stride
        count = (math.ceil(free) if rounding == "ceil" else math.floor(free)) + 1
    return [at * stride - low for at in range(count)]


def pooled(x, reduce, taps, strides, pad, dilations=1, rounding=None):
    """Return ``reduce`` of what lies under each window, [elements, channels]."""
    axes = range(x.ndim - 2)
    taps, strides, apart = (np.broadcast_to(n, len(axes)) for n in (taps, strides, dilations))
    pads = [
        pad if isinstance(pad, str) else (pad, pad) if isinstance(pad, int) else pad[1 + axis]
        for axis in axes
    ]
    starts = [
        _starts(x.shape[1 + a], taps[a], strides[a], apart[a], pads[a], rounding) for a in axes
    ]
    out = np.empty((x.shape[0], *map(len, starts), x.shape[-1]))
    for image in range(x.shape[0]):
        for at in itertools.product(*(range(len(start)) for start in starts)):
            seen = [starts[a][at[a]] + apart[a] * np.arange(taps[a]) for a in axes]
            inside = [s[(s >= 0) & (s < x.shape[1 + a])] for a, s in zip(axes, seen, strict=True)]
            out[(image, *at)] = reduce(x[image][np.ix_(*inside)].reshape(-1, x.shape[-1]))
    return out


def largest(window):
    return window.max(axis=0)


def average(window):
    return window.mean(axis=0)


PAIRS = ((0, 0), (1, 0), (0, 1), (0, 0))
WINDOWS = {  # shape of x, window, strides, pad, rounding
    "2x2": ((2, 4, 6, 3), 2, 2, "valid", None),
    "list": ((1, 5, 6, 2), [2, 3], [1, 2], "same", None),
    "gaps": ((1, 7, 7, 1), 2, 3, "valid", None),
    "one number": ((1, 5, 4, 2), 3, 2, 1, None),
    "pairs": ((1, 4, 4, 1), 2, 1, PAIRS, None),
    "floor": ((1, 6, 5, 1), 3, 2, 0, "floor"),
    "ceil": ((1, 6, 5, 17), 3, 2, 0, "ceil"),
    "no batch": ((0, 4, 4, 2), 2, 2, "valid", None),
}


@pytest.mark.parametrize("what", WINDOWS)
@pytest.mark.parametrize(("op", "reduce"), [("max_pool", largest), ("avg_pool", average)])
def test_images(op, reduce, what):
    shape, taps, strides, pad, rounding = WINDOWS[what]
    x = RNG.normal(size=shape)
    y = getattr(tp.nn, op)(x, taps, strides, pad, dim_rounding_mode=rounding)
    wanted = pooled(x, reduce, taps, strides, pad, rounding=rounding)
    assert (y.shape, y.dtype) == (wanted.shape, tp.float64)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("form", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize("pad", ["valid", "same", 1])
@pytest.mark.parametrize(("op", "reduce"), [("max_pool3d", largest), ("avg_pool3d", average)])
def test_volumes(op, reduce, pad, form):
    x = RNG.normal(size=(2, 3, 4, 5, 2))
    wanted = pooled(x, reduce, (2, 3, 2), (1, 2, 2), pad)
    if form == "NCDHW":
        x, wanted = np.moveaxis(x, -1, 1), np.moveaxis(wanted, -1, 1)
    y = getattr(tp.nn, op)(x, (2, 3, 2), (1, 2, 2), pad, data_format=form)
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)


POOLS = {  # shape of input, window, options
    "image": ((1, 5, 6, 2), 2, {}),
    "dilated": ((1, 6, 7, 1), (2, 3), {"dilations": 2}),
    "dilated, same": ((1, 5, 5, 1), 2, {"dilations": (2, 3), "pad": "same"}),
    "strided": ((1, 6, 6, 1), 2, {"strides": (3, 2), "pad": 1}),
    "row": ((2, 7, 3), [3], {"pad": "same"}),
    "volume": ((1, 3, 4, 3, 1), 2, {"dilations": 2}),
}


@pytest.mark.parametrize("what", POOLS)
@pytest.mark.parametrize(("kind", "reduce"), [("max", largest), ("avg", average)])
def test_pool(kind, reduce, what):
    shape, taps, options = POOLS[what]
    x = RNG.normal(size=shape) - 5  # where padding with zeros would win
    y = tp.nn.pool(x, taps, kind, **options)
    given = {"strides": 1, "pad": "valid", **options}
    wanted = pooled(x, reduce, taps, given["strides"], given["pad"], given.get("dilations", 1))
    assert y.shape == wanted.shape
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-12)


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


@pytest.mark.parametrize("batch", [False, True])
def test_places_of_the_largest(batch):
    x = RNG.permutation(2 * 5 * 4 * 3).reshape(2, 5, 4, 3)
    y, at = tp.nn.max_pool_with_argmax(x, 2, 2, "same", include_batch_in_index=batch)
    assert (at.dtype, at.shape) == (tp.int32, y.shape)
    flat = x.ravel() if batch else x.reshape(2, -1)
    places = at.numpy()
    picked = flat[places] if batch else np.stack([flat[i][places[i]] for i in (0, 1)])
    np.testing.assert_array_equal(picked, y.numpy())


def test_the_first_of_equals_and_no_place_in_padding():
    ones = np.ones((1, 2, 2, 1), np.float32)
    _, at = tp.nn.max_pool_with_argmax(ones, 2, 1, ((0, 0), (2, 0), (0, 0), (0, 0)))
    assert at.numpy().ravel().tolist() == [-1, 0, 0]


def test_integers():
    x = np.array([[1, 2], [3, 5]], np.int16).reshape(1, 2, 2, 1)
    largest_, average_ = tp.nn.max_pool(x, 2, 1), tp.nn.avg_pool(x, 2, 1)
    assert (largest_.dtype, largest_.item()) == (tp.int16, 5)
    assert (average_.dtype, average_.item()) == (tp.float32, 2.75)
    assert tp.nn.pool(x, 2, "avg").dtype is tp.float32
    assert tp.nn.pool(x, 2, "max").dtype is tp.int16


def test_an_average_of_nothing_but_padding_is_nan():
    x = np.ones((1, 1, 1, 1), np.float32)
    y = tp.nn.avg_pool(x, 1, 1, 1).numpy()[0, :, :, 0]
    np.testing.assert_array_equal(y, np.where(np.eye(9)[4].reshape(3, 3) == 1, 1, np.nan))
    slope = tp.grad(lambda x: tp.nn.avg_pool(x, 1, 1, 1)[0, 1, 1, 0])(tp.asarray(x))
    assert slope.item() == 1


def test_averages_share_their_gradient_among_what_is_there():
    """TensorFlow.js divides by the whole window, and with rounding up loses windows."""
    x = tp.reshape(tp.asarray([[1.0, 2.0], [3.0, 4.0]]), (1, 2, 2, 1))
    slope = tp.grad(lambda x: tp.sum(tp.nn.avg_pool(x, 2, 1, "same")))(x)
    assert slope.numpy().ravel().tolist() == [0.25, 0.75, 0.75, 2.25]
    row = tp.ones((1, 1, 3, 1))
    up = {"dim_rounding_mode": "ceil"}
    slope = tp.grad(lambda x: tp.sum(tp.nn.avg_pool(x, (1, 2), 2, 0, **up)))(row)
    assert slope.numpy().ravel().tolist() == [0.5, 0.5, 1.0]


def test_kernels_take_tensorflow_js_attributes():
    x = RNG.normal(size=(1, 4, 4, 4, 1))
    given = {"filter_size": [2, 2, 2], "strides": 2, "pad": "valid"}
    y = tp.run_kernel("AvgPool3D", {"x": x}, given)  # data_format is "NDHWC"
    np.testing.assert_allclose(y.numpy(), pooled(x, average, 2, 2, "valid"), rtol=1e-12)
    y = tp.run_kernel(
        "Pool", {"input": x}, {"window_shape": 2, "pooling_type": "max", "pad": "same"}
    )
    np.testing.assert_array_equal(y.numpy(), pooled(x, largest, 2, 1, "same"))


IMAGE = np.ones((1, 5, 5, 2), np.float32)
REFUSED = {
    "rank": (lambda: tp.nn.avg_pool(IMAGE[0, 0], 2, 2), ShapeError, "x must have rank 4"),
    "rank of a volume": (
        lambda: tp.nn.max_pool3d(IMAGE[0], 2, 2),
        ShapeError,
        r"MaxPool3D\(x=float32\[5,5,2\]\): x must have rank 5",
    ),
    "window": (lambda: tp.nn.avg_pool(IMAGE, 6, 1), ShapeError, "6 taps with dilation 1 does not"),
    "three of two": (
        lambda: tp.nn.avg_pool(IMAGE, (1, 2, 3), 1),
        ArgumentError,
        "'filter_size': must be a positive int or two of them",
    ),
    "format": (
        lambda: tp.nn.max_pool3d(IMAGE[None], 2, 2, data_format="NHWC"),
        ArgumentError,
        "'data_format': must be one of 'NDHWC', 'NCDHW', got 'NHWC'",
    ),
    "rounding of nothing": (
        lambda: tp.nn.avg_pool(IMAGE, 2, 2, "same", dim_rounding_mode="ceil"),
        ArgumentError,
        "'pad': must be a number or pairs where dim_rounding_mode is 'ceil', got 'same'",
    ),
    "kind": (
        lambda: tp.nn.pool(IMAGE, 2, "min"),
        ArgumentError,
        "'pooling_type': must be one of 'avg', 'max', got 'min'",
    ),
    "rank of a pool": (
        lambda: tp.run_kernel(
            "Pool", {"input": [1.0]}, {"window_shape": 2, "pooling_type": "max", "pad": 0}
        ),
        ShapeError,
        r"input must be \[batch, one to three spatial axes, channels\], got \[1\]",
    ),
    "gradient": (
        lambda: tp.run_kernel(
            "AvgPoolGrad",
            {"dy": IMAGE, "input": IMAGE},
            {"filter_size": 2, "strides": 2, "pad": "valid"},
        ),
        ShapeError,
        r"dy must be float32\[1,2,2,2\]",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        call()
