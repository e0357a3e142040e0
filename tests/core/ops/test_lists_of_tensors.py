"""asarray of lists that hold tensors: shapes, dtypes, gradients, devices, errors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def f4(values):
    return tp.asarray(np.asarray(values, "float32"))


def f8(values):
    return tp.asarray(np.asarray(values, "float64"))


def i4(values):
    return tp.asarray(np.asarray(values, "int32"))


def i1(values):
    return tp.asarray(np.asarray(values, "int8"))


NESTED = {
    "numbers of rank 0": (lambda: [f4(1), f4(2)], "float32", [1, 2]),
    "vectors": (lambda: [f4([1, 2]), f4([3, 4])], "float32", [[1, 2], [3, 4]]),
    "one": (lambda: [f4([1, 2])], "float32", [[1, 2]]),
    "a tuple": (lambda: (i4(1), i4(2)), "int32", [1, 2]),
    "nested": (lambda: [[f8(1), f8(2)], (f8(3), f8(4))], "float64", [[1, 2], [3, 4]]),
    "Python numbers are weak": (lambda: [f8(1), 2.5, 3], "float64", [1, 2.5, 3]),
    "a float beside integers": (lambda: [i4(1), 2.5], "float32", [1, 2.5]),
    "a complex number": (lambda: [f8(1), 2j], "complex128", [1, 2j]),
    "an integer keeps a short dtype": (lambda: [[i1(1), 2], [3, 4]], "int8", [[1, 2], [3, 4]]),
    "promotion": (lambda: [i1(1), f4(2.5), f8(3)], "float64", [1, 2.5, 3]),
    "booleans": (lambda: [f4(1) > 0, False], "bool", [True, False]),
    "an array": (lambda: [f4([1, 2]), np.asarray([3, 4.0])], "float64", [[1, 2], [3, 4]]),
    "a list beside a vector": (lambda: [f4([1, 2]), [3, 4]], "float32", [[1, 2], [3, 4]]),
    "rows without elements": (lambda: [f4(np.zeros((0, 2)))], "float32", np.zeros((1, 0, 2))),
    "text": (lambda: [tp.asarray("a"), "b"], "string", ["a", "b"]),
    "variables": (lambda: [tp.Variable(1.0), 2], "float32", [1, 2]),
}


@pytest.mark.parametrize("name", NESTED)
def test_they_are_stacked(name):
    make, dtype, wanted = NESTED[name]
    wanted = np.asarray(wanted)
    found = tp.asarray(make())
    assert (str(found.dtype), found.shape) == (dtype, wanted.shape)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128", "bool"])
def test_a_dtype_on_request(dtype):
    expect(tp.asarray([[f8(0), 1], [i4(2), 3]], dtype=dtype), dtype, (2, 2), [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    ("join", "wanted"),
    [
        (lambda p: [p, p * 2], [1 + 6, 2 + 8]),  # weights 1, 2 | 3, 4
        (lambda p: [[p[1], 5.0], [6.0, p[0]]], [4, 1]),
        (lambda p: tp.asarray([p, [1.0, 1.0]], dtype="float64"), [1, 2]),
    ],
    ids=["vectors", "elements", "another dtype"],
)
def test_gradients_flow(join, wanted):
    weights = f8([[1, 2], [3, 4]])
    found = tp.grad(lambda p: tp.sum(tp.asarray(join(p)) * weights))(f4([5, 7]))
    expect(found, "float32", (2,), wanted)


def test_they_are_traced():
    join = tp.compile(lambda p: tp.asarray([p, [1.0, p[0]]]))
    for first in (5, 6):
        expect(join(f4([first, 7])), "float32", (2, 2), [[first, 7], [1, first]])


def test_on_the_active_device_or_the_one_asked_for():
    with engines.using(engines.make(("here", "there"))):
        tp.set_backend("here")
        with tp.use_backend("there"):
            x = tp.asarray([1.0])
        assert tp.asarray([x, x]).device == "here"
        made = tp.asarray([x, [2.0]], device="there")
        assert made.device == "there"
        expect(made, "float32", (2, 1), [[1], [2]])


REFUSED = {
    "ragged": (lambda: [f4([1, 2]), f4([1])], ShapeError, r"rectangular.*\[1\].*\[2\]"),
    "ragged lists": (lambda: [[f4(1), 2.0], [3.0]], ShapeError, r"rectangular.*\[1\].*\[2\]"),
    "a number beside a vector": (lambda: [f4([1]), 2.0], ShapeError, r"rectangular.*\[\].*\[1\]"),
    "an empty list": (lambda: [f4([1]), []], ShapeError, "rectangular"),
    "no common dtype": (lambda: [f4(1), "a"], DTypeError, "no common dtype"),
    "text as a number": (lambda: [tp.asarray("a"), 1], DTypeError, "no common dtype"),
    "what is no array": (lambda: [f4(1), object()], DTypeError, "object"),
    "too large": (lambda: [i1(1), 300], ArgumentError, "300"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_a_list_is_refused(name):
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=f"^asarray: obj.*{message}"):
        tp.asarray(make())


def test_ragged_lists_without_tensors_stay_refused():
    with pytest.raises(ShapeError, match="rectangular"):
        tp.asarray([[1.0], [2.0, 3.0]])


# Text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[], [[], []], (), np.zeros((0, 2)), np.empty(0, "U3")])
def test_nothing_becomes_text(given):
    found = tp.asarray(given, dtype="string")
    assert (found.dtype, found.shape) == (tp.string, np.shape(given))
    assert (found == "").shape == found.shape


@pytest.mark.parametrize("make", [tp.zeros, tp.empty])
@pytest.mark.parametrize("shape", [0, (2, 0), (2,), ()])
def test_zeros_of_text_are_empty(make, shape):
    x = make(shape, dtype=tp.string)
    assert (x.dtype, x.shape) == (tp.string, np.empty(shape).shape)
    assert x.tolist() == np.full(shape, "", "U1").tolist()
    like = getattr(tp, f"{make.__name__}_like")
    for made in (like(x), like(f4(np.zeros(x.shape)), dtype="string"), like(x, device="cpu")):
        assert (made.dtype, made.tolist()) == (tp.string, x.tolist())


@pytest.mark.parametrize(
    "call",
    [
        lambda: tp.ones(2, dtype="string"),
        lambda: tp.ones_like(tp.asarray(["a"])),
        lambda: tp.zeros_like(f4([1]), dtype="string") + 1,
        lambda: tp.asarray([1.0], dtype="string"),
        lambda: tp.asarray(np.ones(1), dtype="string"),
    ],
)
def test_numbers_are_not_text(call):
    with pytest.raises(DTypeError, match="string"):
        call()


@pytest.mark.parametrize("copy", [True, False])
def test_text_stays_text(copy):
    x = tp.asarray(["a", "bc"])
    found = x.astype(tp.string, copy=copy)
    assert (found is x) is not copy
    assert (found.dtype, found.tolist()) == (tp.string, ["a", "bc"])
