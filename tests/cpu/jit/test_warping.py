"""Large images are projected by a loop: the same bits as by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.plugin import TensorType, dtypes, specs
from tensorplug_cpu.execution import parallel
from tensorplug_cpu.jit.codegen.settings import JIT
from tensorplug_cpu.jit.families import warping
from tensorplug_cpu.kernels.image import warping as kernels

pytestmark = pytest.mark.usefixtures("loops")

SHAPES = [  # images, size: of one channel, a few, and more than vectors have elements
    ((2, 131, 137, 1), (141, 127)),
    ((3, 70, 90, 3), (65, 181)),
    ((2, 90, 70, 4), (101, 60)),
    ((2, 60, 60, 5), (81, 70)),
    ((1, 50, 40, 37), (40, 50)),
]
TRANSFORMS = np.float32(
    [
        [0.9, 0.3, 5, -0.2, 1.1, 7, 0, 0],
        [1.5, 0, -40, 0, 2.5, -60, 1e-3, -2e-3],
        [1, 0, 0.5, 0, 1, -0.5, 0, 0],  # between two pixels
        [1, 0, 0.5, 0, 1, -0.5, -1 / 32, 0],  # divides by 0 in one column
    ]
)
FILL_MODES = ["constant", "nearest", "reflect", "wrap"]


def transform(call, image, transforms, size, interpolation, fill_mode, fill_value=0.25):
    return call(
        specs.TRANSFORM,
        image,
        transforms,
        interpolation=interpolation,
        fill_mode=fill_mode,
        fill_value=fill_value,
        output_shape=size,
    )


def prepared(image, transforms, size, interpolation, fill_mode):
    """Return what a call prepares at this moment."""
    types = [TensorType(dtypes.of(of.dtype), of.shape) for of in (image, transforms)]
    return kernels.transform(
        *types,
        interpolation=interpolation,
        fill_mode=fill_mode,
        fill_value=0.25,
        out=TensorType(types[0].dtype, (image.shape[0], *size, image.shape[3])),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fill_mode", FILL_MODES)
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_same_bits_as_numpy(monkeypatch, shape, size, interpolation, fill_mode, dtype):
    """With infinities and NaN, by one transform and by several, on one thread and on several."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    x.reshape(-1)[rng.integers(0, x.size, 9)] = np.inf, -np.inf, np.nan, *[-0.0] * 6
    for given in (TRANSFORMS[: shape[0]], TRANSFORMS[2:3], TRANSFORMS[3:]):
        results = []
        for jit, limit in (("0", 0), ("1", 0), ("1", 1 << 60)):
            monkeypatch.setenv(JIT, jit)
            monkeypatch.setattr(warping, "_SHARED", limit)
            run = prepared(x, given, size, interpolation, fill_mode)
            results.append(run(x, given))
        expected, *found = results
        assert (expected.dtype, expected.shape) == (x.dtype, (shape[0], *size, shape[3]))
        for one in found:
            assert (one.dtype, one.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(one, expected)
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(expected)[numbers])


def test_threads_share_rows(call, monkeypatch):
    seen, run = [], parallel.in_parts

    def counted(work, count, *, shared):
        seen.append((count, shared))
        run(work, count, shared=shared)

    monkeypatch.setattr(parallel, "in_parts", counted)
    x = np.ones((2, 200, 200, 3), np.float32)
    transform(call, x, TRANSFORMS[:1], (300, 200), "bilinear", "constant")
    assert set(seen) == {(2 * 300, True)}


@pytest.mark.parametrize(
    ("shape", "dtype", "fill_mode"),
    [
        ((1, 200, 200, 1), "float16", "constant"),
        ((1, 1, 200, 1), "float32", "reflect"),
        ((1, 200, 1, 1), "float32", "wrap"),
        ((1, 0, 200, 1), "float32", "constant"),
    ],
)
def test_where_there_is_no_loop(monkeypatch, shape, dtype, fill_mode):
    """NumPy does it, as without LLVM."""
    image, out = (TensorType(dtypes.of(dtype), of) for of in (shape, (1, 250, 200, 1)))
    assert warping.warper(image, out, "bilinear", fill_mode) is None
    usual = TensorType(dtypes.float32, (1, 200, 200, 1))
    assert warping.warper(usual, usual, "bilinear", fill_mode) is not None
    monkeypatch.setenv(JIT, "0")
    assert warping.warper(usual, usual, "bilinear", fill_mode) is None
