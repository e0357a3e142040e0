"""TensorFlow.js's behaviour, scenarios 24 to 26: dtypes, conversions, errors.

A scenario bears the number that it has in our list of what TensorFlow.js's engine does; comments
say where and why ours does otherwise. docs/coming_from/tfjs.md has the rows.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.contract import dtypes as dt
from tensorplug.errors import ArgumentError, DisposedError, DTypeError, NonFiniteError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")

NAN, INF = float("nan"), float("inf")

# Scenario 24 ----------------------------------------------------------------------------

UPCAST = ["bool", "int32", "float32", "complex64"]  # each into those after it
SAMPLES = {"bool": True, "int32": 1, "float32": 0.5, "complex64": 1j}


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(UPCAST, 2)))
def test_scenario_24_the_upcast_table(a, b):
    x, y = (tp.asarray([SAMPLES[dtype]]) for dtype in (a, b))
    assert [str(tensor.dtype) for tensor in (x, y)] == [a, b]
    assert str((x * y).dtype) == str((y * x).dtype) == b


@pytest.mark.parametrize("dtype", UPCAST)
def test_scenario_24_text_goes_with_text_alone(dtype):
    with pytest.raises(DTypeError, match=f"string and {dtype} have no common dtype"):
        tp.equal(tp.asarray(["a"]), tp.asarray([SAMPLES[dtype]]))


def test_scenario_24_division_of_integers():
    """7 / 2 is 3.5 and 7 // 2 is 3; in TensorFlow.js both are 3."""
    seven, two = tp.asarray(7), tp.asarray(2)
    expect(seven / two, "float32", (), 3.5)
    expect(seven // two, "int32", (), 3)
    expect(-seven // two, "int32", (), -4)


@pytest.mark.parametrize("op", [tp.add, tp.subtract, tp.multiply])
def test_row_80_booleans_are_no_numbers(op):
    """In TensorFlow.js their sum is the boolean 2, and their difference 255."""
    true = tp.asarray([True])
    with pytest.raises(DTypeError, match=r"input 'a' is bool\[1\], but its dtype must be one of"):
        op(true, true)
    expect(tp.logical_or(true, ~true), "bool", (1,), [True])
    expect(tp.add(true, 1), "int32", (1,), [2])  # a number beside it makes it one


def test_row_81_sums():
    expect(tp.sum(tp.asarray([True, True])), "int32", (), 2)
    expect(tp.sum(tp.asarray([3, 4])), "int32", (), 7)
    expect(tp.sum(tp.asarray([0.5, 4])), "float32", (), 4.5)


# Scenario 25 ----------------------------------------------------------------------------

ERRORS = {
    "null": (lambda: tp.add(None, 1), ArgumentError, "Add(a=absent, b=int32[]): input 'a' is m"),
    "an object": (
        lambda: tp.add({}, 1),
        DTypeError,
        "Add: input 'a': dict {} has elements of object",
    ),
    "text": (
        lambda: tp.sin(["a"]),
        DTypeError,
        "Sin(x=string[1]): input 'x' is string[1], but its dtype must be one of bfloat16,",
    ),
    "number of values": (
        lambda: tp.reshape(tp.asarray([1.0, 2.0, 3.0]), (2, 2)),
        ShapeError,
        "cannot reshape [3] of 3 elements to [2, 2] of 4",
    ),
    "broadcast": (
        lambda: tp.add(tp.ones((2, 3)), tp.ones((2,))),
        ShapeError,
        "Add(a=float32[2,3], b=float32[2]): shapes [2, 3] and [2] cannot be broadcast together",
    ),
    "axis": (
        lambda: tp.sum(tp.ones((2, 3)), axis=2),
        ShapeError,
        "axis 2 is out of range for rank 2: it must be from -2 to 1",
    ),
    "negative size": (
        lambda: tp.zeros((-3,)),
        ShapeError,
        "must not contain negative sizes, got (-",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_scenario_25_errors(what):
    call, error, message = ERRORS[what]
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_scenario_25_reading_a_disposed_tensor():
    x = tp.asarray([1.0])
    x.dispose()
    with pytest.raises(DisposedError, match=r"this tensor \(float32\[1\]\) was disposed"):
        x.numpy()


def test_scenario_25_sin_takes_integers():
    """Row 83: TensorFlow.js refuses an integer tensor, but takes a list of integers."""
    wanted = np.sin(np.float32([0, 1]))
    for given in ([0, 1], tp.asarray([0, 1])):
        result = tp.sin(given)
        assert str(result.dtype) == "float32"
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)


# Scenario 26 ----------------------------------------------------------------------------


def test_scenario_26_debug_looks_at_what_is_uploaded():
    with pytest.raises(NonFiniteError, match=r"data given as float32\[2\] holds 1 NaN of 2"):
        tp.debug(tp.asarray, [1.0, NAN])


@pytest.mark.parametrize("debug", [True, False])
def test_scenario_26_ragged_lists_raise_always(debug):
    """Row 85: without its debug mode TensorFlow.js makes a tensor of 4 elements with 3 values."""
    with pytest.raises(ShapeError, match="nested lists must be rectangular"):
        tp.debug(tp.asarray, [[1, 2], [3]]) if debug else tp.asarray([[1, 2], [3]])


def test_scenario_26_otherwise_nan_goes_through():
    expect(tp.nn.relu(tp.asarray([2.0, NAN])), "float32", (2,), [2, NAN])


# Rows that no scenario has ----------------------------------------------------------------

INFERRED = [  # row 84: TensorFlow.js goes by the first element, and has no integers but int32
    ([1, 2], "int32"),
    ([1.0, 2], "float32"),
    ([1, 2.5], "float32"),
    ([True, False], "bool"),
    ([True, 5], "int32"),
    ([1, 1j], "complex64"),
    (["a"], "string"),
    (3_000_000_000, "int64"),
    (np.zeros(1, np.uint8), "uint8"),
    (np.zeros(1, np.float64), "float64"),
]


@pytest.mark.parametrize(("values", "dtype"), INFERRED)
def test_row_84_dtypes_of_data(values, dtype):
    assert str(tp.asarray(values).dtype) == dtype


def test_row_84_numbers_and_text_do_not_mix():
    with pytest.raises(DTypeError, match="contains both strings and numbers"):
        tp.asarray(["a", 1])


CONVERTED = [
    ([1.7, -1.7], "int32", [1, -1]),
    ([3e9], "int32", [-1294967296]),
    ([NAN, INF, -INF], "int32", [0, 0, 0]),
    ([0.0, -0.0, 0.5, NAN], "bool", [False, False, True, True]),
]


@pytest.mark.parametrize(("values", "dtype", "wanted"), CONVERTED)
def test_row_87_conversions(values, dtype, wanted):
    """The same as in TensorFlow.js where asked for by ``astype``; never when data is given."""
    expect(tp.astype(tp.asarray(values), dtype), dtype, (len(values),), wanted)
    if dtype == "int32":
        with pytest.raises((DTypeError, ArgumentError), match=r"fractions or NaN|do not all fit"):
            tp.asarray(values, dtype=dtype)


def test_row_88_nothing_is_aliased():
    """In TensorFlow.js, an edit of the source array or of the data read changes the tensor."""
    source = np.array([1.0, 2.0])
    x = tp.asarray(source)
    source[0] = 9
    expect(x, "float64", (2,), [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 9
    with pytest.raises(AttributeError):
        x.shape = (1, 2)
    assert isinstance(x.shape, tuple)


def test_row_90_the_place_of_a_buffer_is_numpys():
    """Out of range is an error there, also when writing; the tensor is made of the result."""
    buffer = np.zeros((2, 2), np.float32)
    buffer[1, 0] = 5
    with pytest.raises(IndexError):
        buffer[2, 0] = 5
    x = tp.asarray(buffer)
    expect(x, "float32", (2, 2), [[0, 0], [5, 0]])
    with pytest.raises(IndexError):
        x[2, 0] = 5
    x[0, 1] = 7
    expect(x, "float32", (2, 2), [[0, 7], [5, 0]])
    assert buffer[0, 1] == 0


def test_row_78_ranks_have_no_limit():
    x = tp.asarray(np.arange(24.0, dtype=np.float32).reshape((1, 2, 1, 3, 1, 2, 2)))
    y = tp.permute_dims(x, (6, 5, 4, 3, 2, 1, 0))
    expect(y, "float32", (2, 2, 1, 3, 1, 2, 1), x.numpy().T)
    expect(tp.sum(y, axis=(0, 1, 3)), "float32", (1, 1, 2, 1), [[[[66], [210]]]])
    expect(tp.slice(x, (0, 1, 0, 2, 0, 1, 1)), "float32", (1,) * 7, np.full((1,) * 7, 23))


def test_row_78_dtypes():
    here = tp.find_backend("cpu").dtypes
    assert {str(dtype) for dtype in here} >= {*UPCAST, "string", "float64", "float16", "int64"}
    assert here == dt.STORED
