"""Complex numbers on OpenCL: properties that the conformance suite does not cover."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.ops import extents, reduction
from tensorplug_opencl import catalogue, pairs
from tensorplug_opencl.codegen import complex_functions, ctypes

MANY = 70_001  # so many that products are cut into parts


def numbers(*shape, seed=0):
    real, imaginary = np.random.default_rng(seed).standard_normal((2, *shape))
    return (real + 1j * imaginary).astype(np.complex64)


def close(found, wanted, terms=1):
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-7 * terms * np.abs(wanted).max())


def test_products_of_many(call):
    x = np.exp(1j * np.random.default_rng(0).uniform(0, 6.28, (2, MANY))).astype(np.complex64)
    expected = np.prod(x.astype(np.complex128), axis=1)
    close(call(reduction.PROD, x, axis=(1,)), expected, terms=MANY**0.5)
    close(call(reduction.PROD, x.T.copy(), axis=(0,)), expected, terms=MANY**0.5)


def test_sums_run_as_pairs(call):
    x = numbers(3, MANY)
    close(call(reduction.SUM, x, axis=(1,)), x.astype(np.complex128).sum(axis=1))
    close(call(reduction.MEAN, x, axis=(0,)), x.astype(np.complex128).mean(axis=0))


def test_views_are_read_where_they_start(call, context):
    x = numbers(6, 3)
    part = call(extents.SLICE, x, begin=(2, 0), size=(3, 3))  # a view: it shares the memory
    np.testing.assert_array_equal(part, x[2:5])
    backend = context.device.backend
    view = backend.from_host(x).view((3, 3), 6)
    reals = pairs.as_pairs(view)
    assert (reals.dtype, reals.shape, reals.offset) == (dt.float32, (3, 3, 2), 12)


def test_kernels_written_for_real_numbers_refuse():
    for name in (ctypes.stored, ctypes.computed, ctypes.ring):
        with pytest.raises(Exception, match="real numbers, not with complex64"):
            name(dt.complex64)
    assert ctypes.moved(dt.complex128) == "ulong2"


def test_no_kernel_is_there_twice():
    names = [entry.spec.name for table in catalogue.collect_tables() for entry in table]
    assert len(names) == len(set(names))


def test_functions_bring_what_they_call_and_no_more():
    text = complex_functions.define("c_sin(x)", dt.complex64)
    assert "A c_sinh(" in text
    assert "A exp_times(" in text
    assert "c_log" not in text
