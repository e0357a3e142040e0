"""Images and pooling: behaviour that depends on the device."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug_opencl.catalogue import collect_tables


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def prepare(backend, name, shape, *arrays, **attributes):
    """Prepare the kernel of that name."""
    tables = collect_tables()
    (entry,) = [entry for table in tables for entry in table if entry.spec.name == name]
    types = [TensorType(dt.of(array.dtype), array.shape) for array in arrays]
    asked = {**attributes, "backend": backend, "out": TensorType(types[0].dtype, shape)}
    return entry.function(*types, **{key: asked[key] for key in entry.asks})


def run(backend, name, shape, *arrays, **attributes):
    """Prepare the kernel of that name and run it on arrays."""
    call = prepare(backend, name, shape, *arrays, **attributes)
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
        "CropAndResize",
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
        "Transform",
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


@pytest.mark.parametrize(
    ("name", "shape", "numbers", "attributes", "expected"),
    [
        (
            "Transform",
            (1, 1, 6, 1),
            [np.array([[0.7, 0, 0, 0, 1, 0, 0, 0]], np.float32)],
            {"interpolation": "nearest", "fill_mode": "constant", "fill_value": -1},
            [0, 1, 1, 2, 3, 3],
        ),
        (
            "CropAndResize",
            (1, 1, 2, 1),
            [np.array([[0, 0, 0, 0.7]], np.float32), np.array([0], np.int32)],
            {"method": "nearest", "extrapolation_value": -1.0},
            [0, 3],
        ),
    ],
)
def test_places_between_pixels_are_double(backend, name, shape, numbers, attributes, expected):
    # The float32 next to 0.7 is less: five times it is below 3.5, which it is in float32.
    if dt.float64 not in backend.dtypes:
        pytest.skip("the device has no double precision")
    image = np.arange(6, dtype=np.float32).reshape(1, 1, 6, 1)
    actual = run(backend, name, shape, image, *numbers, **attributes)
    np.testing.assert_array_equal(actual.ravel(), expected)


def test_tables_of_plans_are_no_tensors(backend):
    image = numbers(1, 8, 8, 1)
    before = backend.live_buffers()
    call = prepare(
        backend,
        "ResizeBilinear",
        (1, 4, 4, 1),
        image,
        attributes={"align_corners": False, "half_pixel_centers": True},
    )
    assert backend.live_buffers() == before
    actual = backend.to_host(call(backend.from_host(image)))
    blocks = image.reshape(4, 2, 4, 2).mean((1, 3))
    np.testing.assert_allclose(actual[0, :, :, 0], blocks, rtol=1e-5, atol=1e-6)
