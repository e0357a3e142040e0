"""Convolution and pooling against loops over positions and taps, in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tensorplug.ops.nn import fused
from tensorplug.ops.nn.convolution import argmax_pooling, correlation, depthwise, pooling, volumes
from tensorplug.ops.nn.convolution import convolution as conv
from tensorplug_opencl.machine.description import describe_loops

CASES = [  # x (NHWC), filter, strides, dilations, pad (NHWC)
    ((2, 8, 8, 1), (3, 3, 1, 16), (1, 1), (1, 1), "same"),
    ((3, 7, 9, 5), (3, 2, 5, 4), (2, 1), (1, 2), "valid"),
    ((5, 6, 6, 3), (3, 3, 3, 10), (2, 2), (1, 1), ((0, 0), (1, 2), (0, 1), (0, 0))),
    ((1, 5, 5, 2), (1, 1, 2, 9), (1, 1), (1, 1), 0),
    ((2, 6, 5, 3), (3, 3, 3, 17), (1, 1), (2, 2), 2),
    ((2, 5, 5, 2), (2, 2, 2, 3), (3, 3), (1, 1), "same"),
    ((2, 9, 11, 2), (3, 4, 2, 3), (4, 3), (3, 2), 2),  # pixels without taps, taps in turns
    ((7, 16, 18, 3), (3, 3, 3, 16), (1, 1), (1, 1), "same"),  # few sums of many products
    # Channels fill vectors.
    ((2, 8, 13, 16), (3, 3, 16, 32), (1, 1), (1, 1), "same"),
    ((1, 7, 70, 40), (2, 15, 40, 8), (1, 1), (1, 1), "valid"),  # strips, blocks of products
    ((2, 9, 11, 8), (3, 4, 8, 16), (1, 1), (2, 2), ((0, 0), (5, 0), (7, 1), (0, 0))),
    ((1, 9, 13, 3), (3, 4, 3, 48), (4, 2), (1, 2), 2),
    ((1, 3, 6, 16), (1, 2, 16, 16), (1, 1), (1, 1), 0),
]
FORMATS = ["NHWC", "NCHW"]


def arranged(x, data_format):
    return x if data_format == "NHWC" else np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def options_of(strides, dilations, pad, data_format):
    if isinstance(pad, tuple) and data_format == "NCHW":
        pad = (pad[0], pad[3], pad[1], pad[2])
    return {"strides": strides, "dilations": dilations, "pad": pad, "data_format": data_format}


def taps(x, filter, strides, dilations, pad):
    """Yield (output row, output column, tap row, tap column, row, column) that lie inside x."""
    options = options_of(strides, dilations, pad, "NHWC")
    high, wide = correlation.geometry(x, filter, dim_rounding_mode=None, **options)
    places = itertools.product(
        range(high.out), range(wide.out), range(filter[0]), range(filter[1])
    )
    for i, j, kh, kw in places:
        row = i * strides[0] + kh * dilations[0] - high.before
        column = j * strides[1] + kw * dilations[1] - wide.before
        if 0 <= row < x[1] and 0 <= column < x[2]:
            yield i, j, kh, kw, row, column


def describe(runtime, monkeypatch, *, is_cpu):
    """Let kernels be those for a CPU, or those for a GPU."""
    monkeypatch.setattr(runtime, "is_cpu", is_cpu)
    own = {"is_cpu": is_cpu, "atomics64": runtime.has_atomics64}
    machine = describe_loops(runtime.device, runtime.limits, **own)
    monkeypatch.setattr(runtime, "description", machine)


@pytest.fixture(params=["vectors", "elements"])
def walking(request, monkeypatch, core_context):
    """Compute in vectors of channels, as on a CPU, or element by element, as on a GPU."""
    describe(core_context.device.backend.runtime, monkeypatch, is_cpu=request.param == "vectors")
    core_context.device.forget_plans()
    yield
    core_context.device.forget_plans()


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize(("shape", "filter_shape", "strides", "dilations", "pad"), CASES)
def test_convolution_and_its_transposes(
    call, near, shape, filter_shape, strides, dilations, pad, data_format
):
    rng = np.random.default_rng(9)
    x, filter = (rng.integers(-9, 9, sizes).astype(float) for sizes in (shape, filter_shape))
    options = options_of(strides, dilations, pad, data_format)
    images = arranged(x, data_format)
    high, wide = correlation.geometry(
        images.shape, filter_shape, dim_rounding_mode=None, **options
    )
    dy = rng.integers(-9, 9, (shape[0], high.out, wide.out, filter_shape[3])).astype(float)
    y, dx, dfilter = np.zeros_like(dy), np.zeros_like(x), np.zeros_like(filter)
    for i, j, kh, kw, row, column in taps(shape, filter_shape, strides, dilations, pad):
        y[:, i, j] += x[:, row, column] @ filter[kh, kw]
        dx[:, row, column] += dy[:, i, j] @ filter[kh, kw].T
        dfilter[kh, kw] += x[:, row, column].T @ dy[:, i, j]
    image_dy = arranged(dy, data_format)
    actual = call(
        conv.CONV2D_BACKPROP_INPUT, image_dy, filter, input_shape=images.shape, **options
    )
    near(actual, arranged(dx, data_format), "float64")
    near(call(conv.CONV2D, images, filter, **options), arranged(y, data_format), "float64")
    actual = call(
        conv.CONV2D_BACKPROP_FILTER, images, image_dy, filter_shape=filter_shape, **options
    )
    near(actual, dfilter, "float64")


@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize("spec", conv.FAMILY[:3], ids=lambda spec: spec.name)
def test_no_patches_are_written(call, monkeypatch, core_context, spec):
    """The memory in use stays below that of the patches alone, which are 9 times x."""
    x, filter = np.ones((1, 32, 32, 16), np.float32), np.ones((3, 3, 16, 16), np.float32)
    inputs, attributes = {
        conv.CONV2D: ((x, filter), {}),
        conv.CONV2D_BACKPROP_INPUT: ((x, filter), {"input_shape": x.shape}),
        conv.CONV2D_BACKPROP_FILTER: ((x, x), {"filter_shape": filter.shape}),
    }[spec]
    backend = core_context.device.backend
    allocate, held = backend.runtime.allocate, [backend.memory()["active_bytes"]]

    def noted(nbytes):
        piece = allocate(nbytes)
        held.append(backend.memory()["active_bytes"])
        return piece

    monkeypatch.setattr(backend.runtime, "allocate", noted)
    call(spec, *inputs, strides=1, pad="same", **attributes)
    assert len(held) > 4  # both inputs, and twice the result
    assert max(held) - held[0] < 5 * x.nbytes


POOLS = [
    ((2, 2), (2, 2), "valid"),
    ((3, 3), (2, 2), "same"),
    ((3, 2), (1, 1), "same"),
    ((2, 3), (3, 1), 1),
    ((2, 2), (1, 1), 3),
    ((2, 2), (3, 3), "same"),
]


def pooled(x, dy, filter_size, strides, pad):
    """Return the maximum and its gradient, window by window."""
    high, wide = pooling.geometry(
        x.shape, filter_size=filter_size, strides=strides, pad=pad, dim_rounding_mode=None
    )
    y, dx = np.full((x.shape[0], high.out, wide.out, x.shape[3]), -np.inf), np.zeros(x.shape)
    for n, i, j, c in np.ndindex(y.shape):
        top, left = i * strides[0] - high.before, j * strides[1] - wide.before
        inside = [
            (row, column)
            for row in range(max(top, 0), min(top + filter_size[0], x.shape[1]))
            for column in range(max(left, 0), min(left + filter_size[1], x.shape[2]))
        ]
        values = [x[n, row, column, c] for row, column in inside]
        if values:
            first = int(np.argmax(values))  # NumPy's argmax too takes a NaN for the largest
            y[n, i, j, c] = values[first]
            if dy is not None:
                dx[n, *inside[first], c] += dy[n, i, j, c]
    return y, dx


def skip_if_missing(core_context, dtype):
    if dtype not in map(str, core_context.device.backend.dtypes):
        pytest.skip(f"the device has no {dtype}")


@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize(("channels", "odd"), [(3, None), (7, np.nan), (24, -np.inf)])
@pytest.mark.parametrize(("filter_size", "strides", "pad"), POOLS)
def test_max_pool(call, near, filter_size, strides, pad, channels, odd):
    rng = np.random.default_rng(10)
    x = rng.integers(0, 5, (2, 6, 7, channels)).astype(np.float32)
    if odd is not None:
        x[rng.integers(0, 3, x.shape) == 0] = odd
    options = {"filter_size": filter_size, "strides": strides, "pad": pad}
    y, _ = pooled(x, None, **options)
    dy = rng.integers(-9, 9, y.shape).astype(np.float32)
    near(call(pooling.MAX_POOL, x, **options), y, "float32")
    _, dx = pooled(x, dy, **options)
    near(call(pooling.MAX_POOL_GRAD, dy, x, y.astype(np.float32), **options), dx, "float32")


def test_a_row_of_several_strips(call, near):
    x = np.random.default_rng(14).integers(0, 5, (1, 2, 150, 5)).astype(np.float32)
    options = {"filter_size": (1, 3), "strides": (1, 2), "pad": 1}
    y, _ = pooled(x, None, **options)
    dy = np.arange(y.size, dtype=np.float32).reshape(y.shape)
    _, dx = pooled(x, dy, **options)
    near(call(pooling.MAX_POOL, x, **options), y, "float32")
    near(call(pooling.MAX_POOL_GRAD, dy, x, y.astype(np.float32), **options), dx, "float32")


@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint32", "int64"])
def test_the_place_of_the_largest(call, near, core_context, dtype):
    skip_if_missing(core_context, dtype)
    x = np.random.default_rng(15).integers(0, 9, (2, 5, 6, 11)).astype(dtype)
    result = call(
        argmax_pooling.MAX_POOL_WITH_ARGMAX,
        x,
        filter_size=2,
        strides=(2, 1),
        pad="valid",
        include_batch_in_index=True,
    )
    numbers = np.arange(x.size, dtype=np.int32).reshape(x.shape)
    both = [
        np.stack([of[:, i : i + 3 : 2, j : j + 5] for i in (0, 1) for j in (0, 1)])
        for of in (x, numbers)
    ]
    first = np.argmax(both[0], axis=0)[None]
    for actual, expected in zip(result, both, strict=True):
        near(actual, np.take_along_axis(expected, first, 0)[0], expected.dtype)


@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_average_pool_and_back(call, near, core_context, dtype):
    """Windows of 3 with padding: each element counts once for each window that it is in."""
    skip_if_missing(core_context, dtype)
    x = np.random.default_rng(16).integers(-9, 9, (2, 1, 7, 13)).astype(dtype)
    options = {"filter_size": (1, 3), "strides": (1, 2), "pad": ((0, 0), (0, 0), (1, 1), (0, 0))}
    inside = np.zeros((4, 7))
    for window, (first, last) in enumerate([(0, 1), (1, 3), (3, 5), (5, 6)]):
        inside[window, first : last + 1] = 1
    counts = inside.sum(1)[:, None]
    y = np.einsum("wp,nhpc->nhwc", inside, x.astype(float)) / counts
    near(call(pooling.AVG_POOL, x, **options), y, dtype)
    dy = np.random.default_rng(17).integers(-9, 9, y.shape).astype(dtype)
    dx = np.einsum("wp,nhwc->nhpc", inside, dy.astype(float) / counts)
    eps = float(np.finfo(dtype).eps)
    near(call(pooling.AVG_POOL_GRAD, dy, x, **options), dx, dtype, bound=9 * eps)


DEPTHWISE = [  # x (NHWC), filter, strides, dilations, pad
    ((2, 7, 8, 3), (3, 3, 3, 1), (1, 1), (1, 1), "same"),
    ((2, 6, 9, 18), (3, 2, 18, 1), (2, 1), (1, 2), "valid"),
    ((3, 6, 6, 5), (2, 3, 5, 4), (2, 2), (1, 1), ((0, 0), (1, 2), (0, 1), (0, 0))),
    ((2, 9, 11, 9), (3, 4, 9, 1), (4, 3), (3, 2), 2),  # pixels without taps, taps in turns
    ((1, 8, 9, 6), (3, 2, 6, 1), (2, 2), (2, 4), 1),
    ((1, 11, 12, 6), (3, 3, 6, 1), (2, 2), (3, 3), "valid"),  # a pixel's first tap is late
    ((1, 2, 150, 4), (1, 3, 4, 1), (1, 1), (1, 1), 3),  # rows of several strips
]


@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize(("shape", "filter_shape", "strides", "dilations", "pad"), DEPTHWISE)
def test_depthwise_convolution_and_its_transposes(
    call, near, shape, filter_shape, strides, dilations, pad, data_format
):
    rng = np.random.default_rng(11)
    x, filter = (rng.integers(-9, 9, sizes).astype(np.float32) for sizes in (shape, filter_shape))
    options = options_of(strides, dilations, pad, data_format)
    images = arranged(x, data_format)
    high, wide = correlation.geometry(
        images.shape, filter_shape, dim_rounding_mode=None, **options
    )
    outputs = filter_shape[2:]
    dy = rng.integers(-9, 9, (shape[0], high.out, wide.out, *outputs)).astype(np.float32)
    y, dx, dfilter = np.zeros_like(dy), np.zeros_like(x), np.zeros_like(filter)
    for i, j, kh, kw, row, column in taps(shape, filter_shape, strides, dilations, pad):
        y[:, i, j] += x[:, row, column, :, None] * filter[kh, kw]
        dx[:, row, column] += (dy[:, i, j] * filter[kh, kw]).sum(-1)
        dfilter[kh, kw] += (x[:, row, column, :, None] * dy[:, i, j]).sum(0)
    flat = (*y.shape[:3], -1)
    image_dy = arranged(dy.reshape(flat), data_format)
    actual = call(depthwise.DEPTHWISE_CONV2D, images, filter, **options)
    near(actual, arranged(y.reshape(flat), data_format), "float32")
    spec = depthwise.DEPTHWISE_CONV2D_BACKPROP_INPUT
    actual = call(spec, image_dy, filter, input_shape=images.shape, **options)
    near(actual, arranged(dx, data_format), "float32")
    spec = depthwise.DEPTHWISE_CONV2D_BACKPROP_FILTER
    near(call(spec, images, image_dy, filter_shape=filter_shape, **options), dfilter, "float32")


@pytest.mark.parametrize("data_format", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize(("channels", "outputs", "strides"), [(3, 4, (2, 1, 1)), (16, 32, 1)])
def test_convolution_of_volumes(call, near, data_format, channels, outputs, strides):
    rng = np.random.default_rng(12)
    x = rng.integers(-9, 9, (2, 5, 4, 7, channels)).astype(np.float32)
    filter = rng.integers(-9, 9, (2, 3, 2, channels, outputs)).astype(np.float32)
    steps = np.broadcast_to(strides, 3)
    places = [(n - k) // by + 1 for n, k, by in zip((5, 4, 7), (2, 3, 2), steps, strict=True)]
    y = np.zeros((2, *places, outputs), np.float32)  # no padding
    dy = rng.integers(-9, 9, y.shape).astype(np.float32)
    dx, dfilter = np.zeros_like(x), np.zeros_like(filter)
    for place in np.ndindex(y.shape[1:4]):
        for tap in np.ndindex(filter.shape[:3]):
            at = tuple(p * s + t for p, s, t in zip(place, steps, tap, strict=True))
            y[:, *place] += x[:, *at] @ filter[tap]
            dx[:, *at] += dy[:, *place] @ filter[tap].T
            dfilter[tap] += x[:, *at].T @ dy[:, *place]

    def turned(array):
        return array if data_format == "NDHWC" else np.moveaxis(array, -1, 1).copy()

    options = {"strides": strides, "pad": "valid", "data_format": data_format}
    near(call(volumes.CONV3D, turned(x), filter, **options), turned(y), "float32")
    spec = volumes.CONV3D_BACKPROP_INPUT
    actual = call(spec, turned(dy), filter, input_shape=turned(x).shape, **options)
    near(actual, turned(dx), "float32")
    spec = volumes.CONV3D_BACKPROP_FILTER
    actual = call(spec, turned(x), turned(dy), filter_shape=filter.shape, **options)
    near(actual, dfilter, "float32")


@pytest.mark.usefixtures("walking")
@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("spec", [fused.FUSED_CONV2D, fused.FUSED_DEPTHWISE_CONV2D])
def test_fused_convolution(call, near, spec, data_format):
    rng = np.random.default_rng(13)
    x = rng.integers(-9, 9, (2, 5, 4, 3)).astype(np.float32)
    filter = rng.integers(-9, 9, (1, 1, 3, 2)).astype(np.float32)
    if spec is fused.FUSED_CONV2D:
        product = x @ filter[0, 0]
    else:
        product = (x[..., None] * filter[0, 0]).reshape(2, 5, 4, 6)
    bias, slope = (rng.integers(-9, 9, product.shape[-1]).astype(np.float32) for _ in range(2))
    total = product + bias
    expected = np.where(total < 0, total * slope, total)
    options = {"strides": 1, "pad": "valid", "activation": "prelu", "data_format": data_format}
    actual = call(spec, arranged(x, data_format), filter, bias, slope, **options)
    near(actual, arranged(expected, data_format), "float32")
