"""linspace of integer dtypes, and between tensors."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def exact(start, stop, num, *, endpoint):
    """Return the definition in rational numbers, rounded down."""
    steps = max(num - 1 if endpoint else num, 1)
    begin, length = Fraction(start), Fraction(stop) - Fraction(start)
    return [floor(begin + length * place / steps) for place in range(num)]


RANGES = [
    ("int32", 0, 10, 4),
    ("int32", 3, 9, 1),
    ("int32", 5, 5, 3),
    ("int64", 0, 3, 4),
    ("uint8", 0, 255, 256),
    ("int8", 127, -128, 11),
    ("int16", -7, 7, 12),
    ("int64", 1 - (1 << 63), (1 << 63) - 1, 7),
    ("uint64", 0, (1 << 64) - 1, 6),
    ("int64", 0, 1 << 40, 1001),
    ("int32", -2.5, 4.75, 9),
    ("int32", 0.0, 1.0, 0),
    ("int32", np.int16(3), np.float64(8.5), 5),
]


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("dtype", "start", "stop", "num"), RANGES)
def test_integers_are_rounded_down(dtype, start, stop, num, endpoint):
    found = tp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
    assert (str(found.dtype), found.shape) == (dtype, (num,))
    assert found.tolist() == exact(start, stop, num, endpoint=endpoint)


BETWEEN = {
    "numbers": (np.float32(0.1), np.float32(0.7), None, "float32"),
    "float64": (np.float64(0.1), np.float64(0.7), None, "float64"),
    "promotion": (np.float32(0.5), np.float64(2), None, "float64"),
    "integers": (np.int32(1), np.int32(4), None, "float32"),
    "vectors": (np.float32([0, 1]), np.float32([10, -3]), None, "float32"),
    "broadcast": (np.float32([[0], [1]]), np.float64([10, 20, 30]), None, "float64"),
    "a dtype": (np.float32([0, 1]), np.float32([10, -3]), "float64", "float64"),
    "complex": (np.complex64(1j), np.complex64(2), None, "complex64"),
    "complex and real": (np.float64(1), np.complex64(2j), None, "complex128"),
}


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("wrap", [tp.asarray, np.asarray], ids=["tensors", "arrays"])
@pytest.mark.parametrize("name", BETWEEN)
def test_between_tensors(name, wrap, endpoint):
    start, stop, asked, dtype = BETWEEN[name]
    found = tp.linspace(wrap(start), wrap(stop), 7, dtype=asked, endpoint=endpoint)
    wanted = np.linspace(start.astype("c16"), stop.astype("c16"), 7, endpoint=endpoint)
    assert (str(found.dtype), found.shape) == (dtype, wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=64 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(found.numpy()[0], np.broadcast_to(start, wanted.shape[1:]))
    if endpoint:
        np.testing.assert_array_equal(found.numpy()[-1], np.broadcast_to(stop, wanted.shape[1:]))


@pytest.mark.parametrize(
    ("start", "stop", "dtype"),
    [(2, tp.asarray(np.float64(5)), "float64"), (tp.asarray(np.float32(5)), 2.5, "float32")],
)
def test_a_number_beside_a_tensor_is_weak(start, stop, dtype):
    expect(tp.linspace(start, stop, 3), dtype, (3,), np.linspace(float(start), float(stop), 3))


def test_integers_between_tensors():
    start, stop = tp.asarray([0, 3]), tp.asarray([10, -3])
    wanted = np.stack([[0, 3, 6, 10], [3, 1, -1, -3]], axis=1)
    expect(tp.linspace(start, stop, 4, dtype="int16"), "int16", (4, 2), wanted)


def test_gradients_flow_to_the_ends():
    def weighted(start, stop):
        return tp.sum(tp.linspace(start, stop, 5) * tp.asarray([1.0, 2, 3, 4, 5]))

    start, stop = tp.grad(weighted, argnums=(0, 1))(tp.asarray(1.0), tp.asarray(7.0))
    weights = np.arange(1, 6)
    share = np.arange(5) / 4
    expect(start, "float32", (), weights @ (1 - share))
    expect(stop, "float32", (), weights @ share)


REFUSED = {
    "too large": (lambda: tp.linspace(0, 300, 3, dtype="int8"), ArgumentError, "300.*int8"),
    "too small": (lambda: tp.linspace(-0.5, 3, 3, dtype="uint8"), ArgumentError, "-1.*uint8"),
    "infinite": (lambda: tp.linspace(0, float("inf"), 3, dtype=int), ArgumentError, "inf.*int32"),
    "complex": (lambda: tp.linspace(0, 1j, 3, dtype=int), DTypeError, "1j.*int32"),
    "a negative number": (lambda: tp.linspace(0, 1, -1, dtype=int), ArgumentError, "num.*-1"),
    "half a number": (lambda: tp.linspace(0, 1, 2.5, dtype=int), ArgumentError, "num"),
    "complex tensors": (
        lambda: tp.linspace(tp.asarray(1j), 0, 3, dtype="float32"),
        DTypeError,
        "complex.*float32",
    ),
    "shapes": (lambda: tp.linspace(tp.ones(2), tp.ones(3), 3), ShapeError, r"\[2\].*\[3\]|2.*3"),
    "text": (lambda: tp.linspace(tp.asarray("a"), 1, 3), DTypeError, "string"),
    "booleans": (lambda: tp.linspace(tp.ones(2), 1, 3, dtype=bool), DTypeError, "bool"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_it_is_refused(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
