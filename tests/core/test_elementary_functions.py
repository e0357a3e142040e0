"""Trigonometry, powers, logarithms: dtypes, weak scalars, special complex values, refusals."""

from __future__ import annotations

from math import inf, nan, pi

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import DTypeError, NotConnectedError

from .engines import expect

pytestmark = pytest.mark.usefixtures("cpu")


@pytest.fixture
def cpu():
    with tp.use_backend("cpu"):
        yield


def exactly(tensor, dtype, values):
    """Check dtype and shape, then values with the signs of zeros; other floats to rounding."""
    wanted = np.asarray(values, dtype)
    actual = tensor.numpy()
    assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
    for part in ("real", "imag"):
        got, right = getattr(actual, part), getattr(wanted, part)
        np.testing.assert_allclose(got, right, rtol=1e-6)
        ordinary = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(got)[ordinary], np.signbit(right)[ordinary])


NAMES = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan"),
    *("expm1", "log1p", "log2", "log10", "reciprocal", "rsqrt"),
)


@pytest.mark.parametrize("name", NAMES)
def test_integers_become_floats(name):
    x = np.array([1, 1], np.int64)
    result = getattr(tp, name)(x)
    assert (result.dtype, result.shape) == (tp.float32, (2,))
    np.testing.assert_array_equal(result.numpy(), getattr(tp, name)(x.astype("float32")).numpy())
    assert getattr(tp, name)(tp.asarray(True)).dtype is tp.float32
    by_name = tp.run_kernel(name.capitalize(), {"x": x})
    assert by_name.dtype is tp.float32


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "copysign", "nextafter"])
def test_weak_scalars(name):
    function, x = getattr(tp, name), np.float16([1, 2])
    assert function(x, 2.5).dtype is tp.float16
    assert function(2, x).dtype is tp.float16
    assert function(np.int16([1]), 2).dtype is tp.float32
    assert function(x[:, None], np.ones(3)).type.shape == (2, 3)
    with pytest.raises(DTypeError, match="is complex64"):
        function(x, 1j)


def test_complex_numbers_near_a_point():
    z = np.complex64([1e-6 + 1e-6j, -1e-5j, 3e-4])
    exactly(tp.log1p(z), "complex64", [1e-6 + 1e-6j, 5e-11 - 1e-5j, 2.999550e-4])
    exactly(tp.expm1(z), "complex64", [1e-6 + 1.000001e-6j, -5e-11 - 1e-5j, 3.000450e-4])


COMPLEX = {  # special cases for complex numbers where NumPy leaves C99
    "expm1": [
        *((complex(inf, 0), complex(inf, 0)), (complex(-inf, inf), complex(-1, 0))),
        *((complex(inf, inf), complex(inf, nan)), (complex(-inf, nan), complex(-1, 0))),
        *((complex(nan, 0), complex(nan, 0)), (complex(1, inf), complex(nan, nan))),
    ],
    "log1p": [
        *((complex(-1, 0), complex(-inf, 0)), (complex(1, inf), complex(inf, pi / 2))),
        *((complex(-inf, 1), complex(inf, pi)), (complex(inf, nan), complex(inf, nan))),
    ],
    "tan": [(complex(0, inf), complex(0, 1)), (complex(inf, 1), complex(nan, nan))],
    "acos": [(complex(0, inf), complex(pi / 2, -inf)), (complex(nan, inf), complex(nan, -inf))],
    "log2": [(complex(-0.0, 0), complex(-inf, pi / np.log(2)))],
}


@pytest.mark.parametrize("name", COMPLEX)
def test_special_complex_values(name):
    for z, value in COMPLEX[name]:
        exactly(getattr(tp, name)(np.array([z])), "complex128", [value])


def test_division_without_nan():
    expect(tp.div_no_nan(np.int32([7, 1]), 2), "float32", (2,), [3.5, 0.5])
    expect(tp.asarray(np.float16([3])).div_no_nan(0.5), "float16", (1,), [6])
    expect(tp.div_no_nan(1j, np.complex64([0, 2])), "complex64", (2,), [0, 0.5j])


def test_sums_of_lists():
    parts = [np.arange(6, dtype=np.float32).reshape(2, 3) * n for n in range(1, 8)]
    expect(tp.add_n(tuple(parts)), "float32", (2, 3), sum(parts))
    expect(tp.add_n([np.int32([1]), np.float16([0.5])]), "float16", (1,), [1.5])
    expect(tp.add_n([1.0, 2.0]), "float32", (), 3)
    first, second = tp.grad(lambda a, b: tp.sum(tp.add_n([a, b, a])), (0, 1))(parts[0], parts[1])
    expect(first, "float32", (2, 3), np.full((2, 3), 2))
    expect(second, "float32", (2, 3), np.ones((2, 3)))
    kept = tp.asarray(parts[0])
    tp.add_n([kept, parts[1], parts[2]])
    expect(kept, "float32", (2, 3), parts[0])


def test_classification():
    x = np.array([1, -0.0, inf, -inf, nan], np.float32)
    for whole in (np.uint64([2**64 - 1]), np.array([True])):
        assert [f(whole).item() for f in (tp.isnan, tp.isinf, tp.isfinite)] == [False, False, True]
    for name in ("IsNan", "IsInf", "IsFinite"):
        with pytest.raises(NotConnectedError):
            tp.grad(lambda x, name=name: tp.sum(tp.run_kernel(name, {"x": x}) * 1.0))(x)


def test_exclusive_or():
    a = np.array([[True], [False]])
    expect(tp.logical_xor(a, True), "bool", (2, 1), [[False], [True]])
    with pytest.raises(DTypeError, match="LogicalXor"):
        tp.logical_xor(a, 1)
