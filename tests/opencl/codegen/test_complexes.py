"""Complex numbers on OpenCL: properties that the conformance suite does not cover."""

from __future__ import annotations

import numpy as np
import pytest

from tensorplug.contract import dtypes as dt
from tensorplug.ops import accumulation, extents, matrix_products, reduction
from tensorplug.ops.elementwise import arithmetic, casting, complexes, powers, unary
from tensorplug_opencl import catalogue, pairs
from tensorplug_opencl.codegen import complex_functions, ctypes

MANY = 70_001  # so many that products are cut into parts


def numbers(*shape, seed=0):
    real, imaginary = np.random.default_rng(seed).standard_normal((2, *shape))
    return (real + 1j * imaginary).astype(np.complex64)


def close(found, wanted, terms=1):
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, wanted, rtol=0, atol=4e-7 * terms * np.abs(wanted).max())


def test_doubles_where_the_device_has_them(call, context):
    if dt.complex128 not in context.device.backend.dtypes:
        pytest.skip("the device has no double")
    x, y = numbers(5).astype(np.complex128), numbers(5, seed=1).astype(np.complex128)
    np.testing.assert_allclose(call(arithmetic.REAL_DIV, x, y), x / y, rtol=1e-15)
    np.testing.assert_allclose(call(unary.EXP, x), np.exp(x), rtol=1e-15)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_quotients_neither_overflow_nor_vanish_on_the_way(call, size):
    x, y = (numbers(9, seed=seed) * np.float32(size) for seed in (0, 1))
    expected = (x.astype(np.complex128) / y.astype(np.complex128)).astype(np.complex64)
    close(call(arithmetic.REAL_DIV, x, y), expected)
    moduli = call(complexes.COMPLEX_ABS, x)
    np.testing.assert_allclose(moduli, np.abs(x.astype(np.complex128)), rtol=4e-7)


def test_quotients_of_infinities_and_zeros(call):
    infinite, one = complex(np.inf, np.nan), 1 + 1j
    x = np.array([infinite, one, one, 0], np.complex64)
    y = np.array([one, infinite, 0, 0], np.complex64)
    first, second, third, fourth = call(arithmetic.REAL_DIV, x, y)
    assert np.isinf(first)
    assert second == 0
    assert np.isinf(third)
    assert np.isnan(fourth)


def test_exponentials_whose_factor_overflows(call):
    x = np.array([90 + 1.57079j, -80 + 1j, 150 + 1e-40j], np.complex64)
    with np.errstate(over="ignore"):
        expected = np.exp(x.astype(np.complex128)).astype(np.complex64)
    actual = call(unary.EXP, x)
    np.testing.assert_allclose(actual.real, expected.real, rtol=1e-5)
    np.testing.assert_allclose(actual.imag, expected.imag, rtol=1e-4)


def test_logarithms_near_the_unit_circle(call):
    x = np.array([1 + 1e-4j, 1 - 1e-5j, 0.6 + 0.8j, -1 + 1e-7j], np.complex64)
    close(call(unary.LOG, x[:1]), np.log(x[:1].astype(np.clongdouble)))
    close(call(unary.LOG, x), np.log(x.astype(np.clongdouble)))


def test_small_whole_powers_are_products(call):
    x = numbers(7)
    for power in (-3, 0, 2, 5):
        expected = x.astype(np.complex128) ** power
        np.testing.assert_allclose(
            call(arithmetic.POW, x, np.full(7, power, np.complex64)), expected, rtol=2e-6
        )


def test_whole_powers_keep_the_sign_of_a_zero_which_chooses_a_root(call):
    x = np.array([-1.25 + 0j, complex(-1.25, -0.0), 0.5 + 0j, 2j])
    actual = call(arithmetic.POW, x, np.full(4, 2.0 + 0j))
    np.testing.assert_array_equal(actual, x * x)
    np.testing.assert_array_equal(np.signbit(actual.imag), np.signbit((x * x).imag))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64"])
def test_casts_there_and_back(call, dtype):
    x = np.array([0, 1, 1, 0, 1], dtype)
    widened = call(casting.CAST, x, dtype=dt.complex64)
    assert widened.dtype == np.complex64
    np.testing.assert_array_equal(call(casting.CAST, widened, dtype=dt.of(dtype)), x)


def test_imaginary_numbers_are_true(call):
    x = np.array([1j, 0, complex(0, np.nan)], np.complex64)
    assert call(casting.CAST, x, dtype=dt.bool_).tolist() == [True, False, True]


def test_products_of_many(call):
    x = np.exp(1j * np.random.default_rng(0).uniform(0, 6.28, (2, MANY))).astype(np.complex64)
    expected = np.prod(x.astype(np.complex128), axis=1)
    close(call(reduction.PROD, x, axis=(1,)), expected, terms=MANY**0.5)
    close(call(reduction.PROD, x.T.copy(), axis=(0,)), expected, terms=MANY**0.5)


def test_sums_run_as_pairs(call):
    x = numbers(3, MANY)
    close(call(reduction.SUM, x, axis=(1,)), x.astype(np.complex128).sum(axis=1))
    close(call(reduction.MEAN, x, axis=(0,)), x.astype(np.complex128).mean(axis=0))


@pytest.mark.parametrize("turns", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(3, 5, 4), (33, 70, 41), (1, 9, 1)])
def test_products_of_matrices(call, sizes, turns):
    rows, inner, columns = sizes
    a, b = numbers(2, 1, rows, inner), numbers(3, inner, columns, seed=1)
    expected = a.astype(np.complex128) @ b
    operands = [
        np.ascontiguousarray(x.swapaxes(-1, -2)) if turned else x
        for x, turned in zip((a, b), turns, strict=True)
    ]
    actual = call(
        matrix_products.BATCH_MAT_MUL, *operands, transpose_a=turns[0], transpose_b=turns[1]
    )
    close(actual, expected, terms=4)


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


def test_expm1_and_multiply_add(call):
    x = (numbers(9) * np.float32(1e-4)).astype(np.complex64)
    close(call(powers.EXPM1, x), np.expm1(x.astype(np.complex128)))
    y, z = numbers(9, seed=1), numbers(9, seed=2)
    close(call(accumulation.MULTIPLY_ADD, x, y, z), x.astype(np.complex128) * y + z)
