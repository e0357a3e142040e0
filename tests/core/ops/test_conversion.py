"""asarray: where tensors stay, whose memory is shared, and why a copy is needed."""

from __future__ import annotations

import array
import re

import numpy as np
import pytest
from tests.core.support import engines
from tests.core.support.engines import expect

import tensorplug as tp
from tensorplug.dispatch.context import current_context
from tensorplug.errors import ArgumentError, CopyNeededError, DisposedError, DTypeError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


# copy=False ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "complex128"])
def test_an_arrays_memory_is_shared(dtype):
    given = np.arange(6).astype(dtype).reshape(2, 3)
    x = tp.asarray(given, copy=False)
    expect(x, dtype, (2, 3), given)
    assert np.shares_memory(x.numpy(), given)
    given[1, 2] = 0
    assert x.tolist() == given.tolist()
    assert tp.asarray(given, dtype=dtype, device="cpu", copy=False).tolist() == given.tolist()


@pytest.mark.parametrize(
    "given",
    [
        np.arange(12.0).reshape(3, 4)[::-2, ::3],
        np.arange(6.0).reshape(2, 3).T,
        np.broadcast_to(np.float64(3.0), (2, 2)),
        np.zeros((0, 3)),
        np.array(2.5),
        array.array("d", [1.0, 2.0]),
        memoryview(b"abc"),
    ],
    ids=["steps", "transpose", "broadcast", "empty", "rank 0", "array.array", "memoryview"],
)
def test_sources_that_lend_their_memory(given):
    x = tp.asarray(given, copy=False)
    seen = np.asarray(given)
    expect(x + 1, str(seen.dtype), seen.shape, seen + 1)
    assert np.shares_memory(x.numpy(), seen) or not seen.size


SWAPPED = np.dtype(np.float32).newbyteorder()
NO_SHARING = {
    "a list": (lambda: ([1.0],), {}, "a list has no memory"),
    "a number": (lambda: (1.0,), {}, "a float has no memory"),
    "a scalar": (lambda: (np.float32(1),), {}, "a float32 has no memory"),
    "a dtype": (lambda: (np.ones(2, "f4"),), {"dtype": "float64"}, "it is float32, not float64"),
    "another order": (lambda: (np.ones(2, SWAPPED),), {}, "not in this machine's layout"),
    "text": (lambda: (np.array(["a"]),), {}, "tensors lay strings out differently"),
    "no place": (
        lambda: (np.ones(2, "f4"),),
        {"device": "minimal"},
        "'minimal' does not use host memory",
    ),
    "a tensor": (
        lambda: (tp.asarray([1.0]),),
        {"dtype": "int8"},
        "float32[1] on 'cpu', must be copied to become int8 on 'cpu'",
    ),
    "a tensor's device": (
        lambda: (tp.asarray([1.0]),),
        {"device": "minimal"},
        "must be copied to become float32 on 'minimal'",
    ),
}


@pytest.mark.parametrize("case", NO_SHARING)
def test_why_a_copy_is_needed(case):
    make, options, message = NO_SHARING[case]
    with pytest.raises(CopyNeededError, match=f"^asarray: obj.*{re.escape(message)}") as caught:
        tp.asarray(*make(), copy=False, **options)
    assert isinstance(caught.value, ValueError)  # the standard's
    assert "copy=False" in str(caught.value)


def test_elements_off_their_places_are_not_shared():
    shifted = np.frombuffer(bytes(9), "f4", count=2, offset=1)
    with pytest.raises(CopyNeededError, match="this machine's layout"):
        tp.asarray(shifted, copy=False)


def test_other_arrays_are_refused():
    with pytest.raises(DTypeError, match="asarray"):
        tp.asarray(np.array([{}]), copy=False)


@pytest.mark.parametrize("copy", [None, True])
def test_otherwise_later_writes_are_not_seen(copy):
    given = np.ones(2)
    x = tp.asarray(given, copy=copy)
    given[0] = 5
    assert x.tolist() == [1, 1]


def test_a_tensor_is_taken_as_it_is():
    x = tp.asarray([1.0])
    assert tp.asarray(x, copy=False) is x
    placed = tp.asarray(x, dtype="float32", device="cpu", copy=False)
    assert tp.asarray(placed, dtype="float32", device="cpu", copy=False) is placed
    assert tp.asarray(x) is x
    assert tp.asarray(x, copy=True) is not x
    assert tp.asarray(x.to("host"), copy=False).device == "host"


@pytest.mark.parametrize("convert", [np.asarray, lambda x: x.__array__()])
def test_an_assigned_tensor_gives_a_plain_array_of_its_own(convert):
    x = tp.asarray(np.arange(6.0).reshape(2, 3))
    x[0, 0] = 7
    taken = convert(x)
    assert type(taken) is np.ndarray
    taken[0, 0] = 9
    x[0, 1] = 8
    assert (taken[0, :2].tolist(), x[0, :2].tolist()) == ([9, 1], [7, 8])


# Two devices -----------------------------------------------------------------------------


@pytest.fixture
def there():
    """Return a tensor on one device while another is active, and its engine."""
    engine = engines.make(("here", "there"))
    with engines.using(engine):
        tp.set_backend("here")
        yield tp.asarray([[1.0, 2.0]], device="there")


LIKE = {
    "zeros_like": (tp.zeros_like, 0),
    "ones_like": (tp.ones_like, 1),
    "empty_like": (tp.empty_like, 0),
    "full_like": (lambda x, **o: tp.full_like(x, 7, **o), 7),
}


@pytest.mark.parametrize("dtype", [None, "int32"])
@pytest.mark.parametrize("name", LIKE)
def test_like_a_tensor_means_where_it_is(there, name, dtype):
    make, value = LIKE[name]
    found = make(there, dtype=dtype)
    assert found.device == "there"
    expect(found, dtype or "float32", (1, 2), value)
    assert make(there, dtype=dtype, device="here").device == "here"
    assert make([[0.5, 1]], dtype=dtype).device == "here"
    assert (
        current_context().engine.devices.active.counters.transfers_in == 0
    )  # not for its type alone
    assert make(there.to("host"), dtype=dtype).device == "host"


def test_like_a_tensor_under_differentiation(there):
    gradient = tp.grad(lambda x: tp.sum(x * tp.ones_like(x) + tp.zeros_like(x)))(there)
    assert gradient.tolist() == [[1, 1]]


def test_asarray_leaves_a_tensor_where_it_is(there):
    assert tp.asarray(there) is there
    found = tp.asarray(there, dtype="int32")
    assert found.device == "there"
    expect(found, "int32", (1, 2), [[1, 2]])
    assert tp.asarray(there, device="here").device == "here"
    assert tp.asarray(there, copy=True).device == "there"


@pytest.mark.parametrize("name", [*LIKE, "asarray"])
def test_disposed_tensors(there, name):
    make = LIKE[name][0] if name in LIKE else tp.asarray
    there.dispose()
    for dtype in (None, "int32"):
        with pytest.raises(DisposedError, match="was disposed"):
            make(there, dtype=dtype)


def test_a_variable_is_read():
    variable = tp.Variable(tp.asarray([1.0]))
    assert type(tp.asarray(variable)) is tp.Tensor
    with pytest.raises(ArgumentError, match="must be copied"):
        tp.asarray(variable, dtype="int8", copy=False)


TEXTS = {
    "a list": ["a", "bc"],
    "an array of NumPy": np.array(["a", "bc"]),
    "a tensor": tp.asarray(["a", "bc"]),
}


@pytest.mark.parametrize("form", TEXTS)
def test_texts_in_any_form_stay_texts(form):
    result = tp.astype(TEXTS[form], "string")
    assert (result.shape, result.dtype) == ((2,), tp.string)
    assert result.tolist() == ["a", "bc"]
