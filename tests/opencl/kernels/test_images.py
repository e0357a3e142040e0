"""Images and pooling: behaviour that depends on the device."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.ops.image import cropping, resizing, warping
from tensorplug.ops.nn.convolution import argmax_pooling, pooling
from tensorplug_opencl.kernels import images
from tensorplug_opencl.kernels import resizing as resizing_kernels


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run(backend, prepare, shape, *arrays, **attributes):
    """Prepare a kernel and run it on arrays."""
    types = [TensorType(dt.of(array.dtype), array.shape) for array in arrays]
    out = TensorType(types[0].dtype, shape)
    call = prepare(*types, backend=backend, out=out, **attributes)
    return backend.to_host(call(*map(backend.from_host, arrays)))


@pytest.fixture(params=["double", "single"])
def any_backend(backend, request):
    """Return a backend of a device with double precision, or without."""
    if request.param == "single":
        backend.dtypes -= {dt.float64}
    elif dt.float64 not in backend.dtypes:
        pytest.skip("the device has no double precision")
    return backend


def test_crops_in_either_precision(any_backend):
    image = numbers(2, 9, 7, 3)
    boxes = np.array([[0, 0, 1, 1], [1, 0, 0, 1], [0.25, 0.5, 0.25, 2]], np.float32)
    which = np.array([0, 1, 1], np.int32)
    actual = run(
        any_backend,
        images.crop_and_resize,
        (3, 9, 7, 3),
        image,
        boxes,
        which,
        method="bilinear",
        extrapolation_value=5.0,
    )
    np.testing.assert_allclose(actual[0], image[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(actual[1], image[1, ::-1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(actual[2, :, 0], np.broadcast_to(image[1, 2, 3], (9, 3)), rtol=1e-5)
    np.testing.assert_array_equal(actual[2, :, 3:], 5)


@pytest.mark.parametrize("mode", ["constant", "wrap"])
def test_projections_in_either_precision(any_backend, mode):
    image = numbers(1, 6, 5, 2)
    shift = np.array([[1, 0, 2, 0, 1, 0, 0, 0]], np.float32)
    actual = run(
        any_backend,
        images.transform,
        image.shape,
        image,
        shift,
        interpolation="nearest",
        fill_mode=mode,
        fill_value=7,
    )
    expected = np.full_like(image, 7)
    expected[:, :, :3] = image[:, :, 2:]
    if mode == "wrap":
        expected[:, :, 3:] = image[:, :, :2]
    np.testing.assert_array_equal(actual, expected)


def test_tables_of_plans_are_no_tensors(backend):
    images_type = TensorType(dt.float32, (1, 8, 8, 1))
    before = backend.live_buffers()
    call = resizing_kernels.resize_bilinear(
        images_type,
        attributes={"align_corners": False, "half_pixel_centers": True},
        backend=backend,
        out=TensorType(dt.float32, (1, 4, 4, 1)),
    )
    assert backend.live_buffers() == before
    actual = backend.to_host(call(backend.from_host(numbers(1, 8, 8, 1))))
    blocks = numbers(1, 8, 8, 1).reshape(4, 2, 4, 2).mean((1, 3))
    np.testing.assert_allclose(actual[0, :, :, 0], blocks, rtol=1e-5, atol=1e-6)


def test_an_axis_that_keeps_its_size_keeps_infinite_pixels(call):
    x = numbers(1, 3, 4, 1)
    x[0, 1, 2] = np.inf
    actual = call(resizing.RESIZE_BILINEAR, x, size=(3, 4))
    np.testing.assert_array_equal(actual, x)


def test_a_rotated_image_is_filled_by_channel(call):
    x = numbers(1, 4, 4, 2)
    actual = call(warping.ROTATE_WITH_OFFSET, x, radians=0.0, fill_value=(1, 2), center=0.5)
    np.testing.assert_array_equal(actual, x)
    turned = call(warping.ROTATE_WITH_OFFSET, x, radians=np.pi, fill_value=(1, 2), center=0.0)
    np.testing.assert_array_equal(turned[:, 1:, 1:], np.broadcast_to([1, 2], (1, 3, 3, 2)))
    np.testing.assert_array_equal(turned[0, 0, 0], x[0, 0, 0])


def test_a_crop_of_no_image_is_zeros(call):
    boxes = np.array([[0, 0, 1, 1]] * 3, np.float32)
    which = np.array([-1, 2, 2**40])
    actual = call(cropping.CROP_AND_RESIZE, numbers(2, 3, 3, 1), boxes, which, crop_size=(2, 2))
    assert not actual.any()


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_places_of_the_largest(call, dtype):
    """Ties go to the first, NaN wins, and a window of padding alone has no place."""
    x = np.zeros((2, 4, 4, 1), dtype)
    x[0, 1, 1] = x[0, 3, 2] = 9
    if dtype == "float32":
        x[1, 2, 3] = np.nan
    options = {"filter_size": 2, "strides": 2, "pad": ((0, 0), (2, 0), (0, 0), (0, 0))}
    largest, places = call(argmax_pooling.MAX_POOL_WITH_ARGMAX, x, **options)
    assert places[0, :, :, 0].tolist() == [[-1, -1], [5, 2], [8, 14]]
    lowest = -np.inf if dtype == "float32" else 0
    np.testing.assert_array_equal(largest[0, :, :, 0], [[lowest] * 2, [9, 0], [0, 9]])
    options["include_batch_in_index"] = True
    _, places = call(argmax_pooling.MAX_POOL_WITH_ARGMAX, x, **options)
    last = 16 + (11 if dtype == "float32" else 10)
    assert places[1, :, :, 0].tolist() == [[-1, -1], [16, 18], [24, last]]


def test_channels_first_and_last_pool_alike(call):
    x = numbers(2, 4, 5, 6, 3)
    options = {"filter_size": (2, 3, 2), "strides": (1, 2, 2), "pad": "same"}
    first = np.ascontiguousarray(x.transpose(0, 4, 1, 2, 3))
    for spec in (pooling.MAX_POOL_3D, pooling.AVG_POOL_3D):
        last = call(spec, x, **options)
        actual = call(spec, first, **options, data_format="NCDHW")
        np.testing.assert_array_equal(actual.transpose(0, 2, 3, 4, 1), last)
