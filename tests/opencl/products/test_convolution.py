"""Convolution against loops over positions and taps, in float64, and the memory it takes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tensorplug.ops.nn.convolution import convolution as conv
from tensorplug.ops.nn.convolution import correlation
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
