"""``x[key] = value`` and ``x += y``, compared with NumPy."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from tests.core.support.engines import expect
from tests.core.tensors.test_indexing import ARRAYS, INDICES, KEYS, MASKS, given

import tensorplug as tp
from tensorplug.errors import (
    ArgumentError,
    DisposedError,
    DTypeError,
    GradientError,
    OutOfRangeError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(params=["cpu", "minimal"])
def backend(request):
    with tp.use_backend(request.param):
        yield request.param


S = np.s_
X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
ALL = [*KEYS, *INDICES, *ARRAYS, *MASKS]


def values(shape):
    """Yield what can be assigned to a place of ``shape``."""
    rng = np.random.default_rng(0)
    yield 7
    yield rng.standard_normal(shape).astype(np.float32)
    yield rng.standard_normal((1, *shape[-1:])).astype(np.float64)
    yield rng.integers(0, 9, (1,) * (len(shape) > 1) + shape[1:])


@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("key", ALL, ids=str)
def test_assignment(key, kind, backend):
    if backend == "minimal" and kind == "array":
        pytest.skip("one kind will do where each call is decomposed")
    for value in values(X[key].shape):
        expected = X.copy()
        try:
            expected[key] = value
        except (TypeError, ValueError):
            assert np.ndim(value) > X[key].ndim  # for which NumPy has an exception here and there
            continue
        x = kept = tp.asarray(X)
        x[given(key, kind)] = given(value, kind)
        expect(x, "float32", X.shape, expected)
        assert x is kept


REFUSED = [  # dtype, key, value, error, message
    ("int32", 0, math.nan, DTypeError, "the value: nan is not an integer, but the dtype is int32"),
    ("int32", 0, math.inf, DTypeError, "the value: inf is not an integer, but the dtype is int32"),
    ("int32", 0, 1j, DTypeError, "1j is complex, but the dtype is int32"),
    ("int32", 0, np.array(1j), DTypeError, "complex128"),
    ("int32", 0, "text", DTypeError, "is not cast to int32"),
    ("int8", 0, 300.5, ArgumentError, "300 does not fit into int8"),
    ("int8", 0, [300, 1, 1, 1], ArgumentError, "the values from 1 to 300 do not all fit"),
    ("uint8", 0, np.int64(-1), ArgumentError, "-1 does not fit into uint8"),
    ("float32", 0, 1j, DTypeError, "1j is complex, but the dtype is float32"),
    ("bool", 0, np.array(1, np.int32), DTypeError, "int32 is not cast to bool implicitly"),
    ("int8", 0, 300, ArgumentError, "300 does not fit into int8"),
    ("float32", 0, "text", DTypeError, "is not cast to float32"),
    ("float32", 0, [1.0, 2.0], ShapeError, "value is float32[2], but must broadcast to [4]"),
    ("float32", S[0, 0], [1.0, 2.0], ShapeError, "must broadcast to []"),
    ("float32", S[[0, 1]], np.ones((3, 4)), ShapeError, "must broadcast to [2,4]"),
    ("float32", S[[True, False, True]], np.ones((3, 4)), ShapeError, "must broadcast to [2,4]"),
    ("float32", 3, 1.0, OutOfRangeError, "index 3 is out of range for axis 0 of float32[3,4]"),
    ("float32", S[0, 0, 0], 1.0, OutOfRangeError, "3 indices for float32[3,4]"),
    ("float32", S[[5]], 1.0, ArgumentError, "index 5 is out of range for a"),
    ("float32", "a", 1.0, ArgumentError, "cannot index float32[3,4] with 'a'"),
]


@pytest.mark.parametrize(("dtype", "key", "value", "error", "message"), REFUSED, ids=str)
def test_refused(dtype, key, value, error, message):
    x = tp.zeros((3, 4), dtype=dtype)
    told = re.escape(message.replace("[2,4]", "[2, 4]"))
    with tp.debug(), pytest.raises(error, match=told):  # at the call, also by a queue
        x[key] = value
    expect(x, dtype, (3, 4), np.zeros((3, 4), dtype))


CASTS = [("float32", "float64"), ("int16", "int64"), ("float16", "int32"), ("complex64", "int8")]


@pytest.mark.parametrize(("to", "given_dtype"), CASTS)
def test_values_of_the_same_kind_are_cast(to, given_dtype, backend):
    if backend == "minimal" and to in ("float16", "complex64"):
        pytest.skip("it has no such dtype")
    x = tp.zeros((3,), dtype=to)
    x[1] = tp.asarray(2, dtype=given_dtype)
    expect(x, to, (3,), np.array([0, 2, 0], to))


ASSIGNED = [  # dtype, value, what NumPy's assignment gives
    ("int32", 1.5, 1),
    ("int32", -1.5, -1),
    ("int32", np.float32(2.75), 2),
    ("int32", [2.75, -0.5], [2, 0]),
    ("int32", np.array([2.75, -3.5]), [2, -3]),
    ("int64", np.float32([2.75, -3.5]), [2, -3]),
    ("uint8", np.array([1, 200]), [1, 200]),
    ("int8", np.array([1, 300]), [1, 44]),
]


@pytest.mark.parametrize(("dtype", "value", "wanted"), ASSIGNED, ids=str)
@pytest.mark.parametrize("key", [S[1:], S[[1, 2]], S[[False, True, True]]], ids=str)
def test_numbers_become_integers_as_by_astype(dtype, value, wanted, key):
    x = tp.zeros((3,), dtype=dtype)
    x[key] = value
    expect(x, dtype, (3,), np.array([0, *np.broadcast_to(wanted, 2)], dtype))
    if isinstance(value, np.ndarray):
        y = tp.zeros((3,), dtype=dtype)
        y[key] = tp.asarray(value)
        expect(y, dtype, (3,), np.asarray(x))


def test_arithmetic_in_place_does_not_make_integers_of_floats():
    x = tp.asarray([1, 2])
    with pytest.raises(DTypeError, match="float32 is not cast to int32 implicitly"):
        x[0] += 1.5
    with pytest.raises(DTypeError, match="float32 is not cast to int32 implicitly"):
        x += 1.5
    expect(x, "int32", (2,), [1, 2])


def test_the_last_of_several_values_for_one_place_stands():
    x = tp.zeros((3, 2))
    x[[1, 0, 1, -2]] = np.arange(8.0).reshape(4, 2)
    assert x.tolist() == [[2, 3], [6, 7], [0, 0]]


def test_a_value_may_be_a_part_of_what_is_assigned_to():
    for key, read in [(S[1:], S[:-1]), (S[:-1], S[1:]), (S[:], S[::-1]), (S[0], S[1])]:
        expected = X.copy()
        expected[key] = X[read]
        x = tp.asarray(X)
        x[key] = x[read]
        expect(x, "float32", X.shape, expected)


def augmented(x):
    x[0] += 1.0
    x[:, 1] *= 2.0
    x[1:3, ::2] -= x[0, ::2]
    x[x > 5] /= 4.0
    x[[0, 2]] **= 2.0
    x[..., None, 0] //= 2.0
    x += 1.0
    return x


def test_augmented_assignments():
    expected = augmented(X.copy())
    expect(augmented(tp.asarray(X)), "float32", X.shape, expected)


def test_in_place_operators_keep_dtype_and_shape():
    x = tp.asarray([1.0, 2.0])
    x += np.float64(0.5)
    expect(x, "float32", (2,), [1.5, 2.5])
    counts = tp.asarray([1, 2])
    with pytest.raises(DTypeError, match=re.escape("int32[2] += ...: the value is float32[2]")):
        counts += 0.5
    with pytest.raises(ShapeError, match=re.escape("float32[2] *= ...: the result is float32[3")):
        x *= np.ones((3, 2), np.float32)


# On the tape ------------------------------------------------------------------------------


def assigned(x, v):
    y = x * 1.0
    y[1:3, ::2] = v
    y[0] += x[3]
    y[[0, 0]] = x[[1, 2]]
    y[y > 8.3] = v * 2.0
    return (y * y).sum()


def test_gradients_flow_to_the_value_and_to_what_is_kept():
    x, step = np.arange(20.0).reshape(4, 5) / 2, 1e-5
    numeric = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        moved = x.copy()
        moved[at] += step
        numeric[at] = (assigned(moved, 3.0) - assigned(x, 3.0)) / step
    wrt_value = (assigned(x, 3.0 + step) - assigned(x, 3.0)) / step
    found = tp.grad(assigned, argnums=(0, 1))(tp.asarray(x), tp.asarray(3.0, dtype="float64"))
    np.testing.assert_allclose(found[0].numpy(), numeric, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(float(found[1]), wrt_value, rtol=1e-4)


def test_second_derivatives():
    def cube(x):
        y = x * 1.0
        y[0] = x[1] * x[1] * x[1]
        return y[0] + y[1]

    second = tp.grad(lambda x: tp.grad(cube)(x).sum())
    assert second(tp.asarray([1.0, 2.0])).tolist() == [0, 12]


def test_an_argument_may_be_assigned_to_and_the_callers_tensor_stays():
    def f(x):
        x[0] = x[1] * 2.0
        return (x * x).sum()

    x = tp.asarray([1.0, 3.0])
    assert tp.grad(f)(x).tolist() == [0, 30]
    assert x.tolist() == [1, 3]


def test_what_the_tape_has_saved_stays():
    def f(x):
        y = x * 2.0
        z = y * y  # saves y
        y[...] = 0.0
        return (z + y).sum()

    assert tp.grad(f)(tp.asarray([1.0, 2.0])).tolist() == [8, 16]


# Scopes, devices, variables, threads ---------------------------------------------------------


def test_a_tensor_from_outside_survives_a_scope_in_which_it_is_assigned_to():
    x = tp.asarray(X)
    with tp.tidy():
        x[0] = 1.0
        inner = tp.zeros((2,))
        inner[0] = 1.0
    assert x[0].tolist() == np.ones((4, 5)).tolist()
    with pytest.raises(DisposedError):
        inner.numpy()
    x.dispose()
    with pytest.raises(DisposedError):
        x[0] = 1.0


def test_the_tensor_stays_on_its_device(backend):
    other = "minimal" if backend == "cpu" else "cpu"
    x = tp.asarray(X).to(other)
    x[0] = 1.0
    assert x.device == other
    assert x[0].tolist() == np.ones((4, 5)).tolist()


def test_a_variable_is_assigned_to():
    v = tp.Variable(X)
    before, part = v.read(), v[1]
    v[0] = 1.0
    v[1, ::2] += 1.0
    expected = X.copy()
    expected[0] = 1.0
    expected[1, ::2] += 1.0
    expect(v, "float32", X.shape, expected)
    expect(before, "float32", X.shape, X)
    expect(part, "float32", (4, 5), X[1])
    with pytest.raises(DTypeError, match="1j is complex, but the dtype is float32"):
        v[0] = 1j


def test_a_variable_under_differentiation_is_not_assigned_to():
    v = tp.Variable([1.0, 2.0])

    def f():
        v[0] = 5.0
        return v.sum()

    with pytest.raises(GradientError, match="is differentiating with respect to"):
        tp.variable_grads(f)
