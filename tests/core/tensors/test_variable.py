"""Variables: making, names, contents, the ops that take them."""

from __future__ import annotations

import gc
import inspect
import operator
import re
from typing import Any

import numpy as np
import pytest
from tests.core.support.engines import expect, make, using
from tests.core.support.tensors import live

import tensorplug as tp
from tensorplug.errors import ArgumentError, DisposedError, DTypeError, ShapeError

pytestmark = pytest.mark.usefixtures("engine")


def held() -> tuple[int, int, int]:
    gc.collect()
    found = tp.memory()["memory"]
    return found.tensors, found.buffers, found.bytes


# Making ---------------------------------------------------------------------------------

VALUES = [
    ("number", 2, {}, "int32", (), 2),
    ("float", 1.5, {}, "float32", (), 1.5),
    ("list", [[1.0, 2.0]], {}, "float32", (1, 2), [[1, 2]]),
    ("array", np.array([1.0, 2.0]), {}, "float64", (2,), [1, 2]),
    ("cast list", [1, 2], {"dtype": "float32"}, "float32", (2,), [1, 2]),
    ("dtype object", [1, 2], {"dtype": tp.int64}, "int64", (2,), [1, 2]),
    ("empty", np.zeros((0, 3), np.float32), {}, "float32", (0, 3), np.zeros((0, 3))),
]


@pytest.mark.parametrize(("what", "value", "options", "dtype", "shape", "wanted"), VALUES)
def test_a_variable_is_made_of_what_a_tensor_is(what, value, options, dtype, shape, wanted):
    v = tp.Variable(value, **options)
    assert isinstance(v, tp.Tensor)
    assert (v.ndim, v.size, v.device) == (len(shape), np.prod(shape), "memory")
    expect(v, dtype, shape, wanted)
    assert v.trainable is True


def test_a_tensor_shares_its_data_and_stays_independent():
    x = tp.asarray([1.0, 2.0])
    tensors, buffers, size = held()
    v = tp.Variable(x)
    assert held() == (tensors + 1, buffers, size)
    x.dispose()
    expect(v, "float32", (2,), [1, 2])
    w = tp.Variable(v)  # of another variable: what that one holds now
    v.assign([3.0, 4.0])
    expect(w, "float32", (2,), [1, 2])


def test_a_tensor_of_another_dtype_is_cast():
    x = tp.asarray([1.5, -2.5])
    expect(tp.Variable(x, dtype="int32"), "int32", (2,), [1, -2])
    expect(tp.Variable(tp.Variable(x), dtype=tp.float64), "float64", (2,), [1.5, -2.5])


MISTAKES = [
    ({"name": ""}, "name must be text that is not empty, got ''"),
    ({"name": 3}, "name must be text that is not empty, got 3"),
    ({"trainable": 1}, "trainable must be True or False, got 1"),
    ({"trainable": "no"}, "trainable must be True or False, got 'no'"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_in_making(options, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        tp.Variable([1.0], **options)
    assert tp.Variable([1.0], name="after").name == "after"


def test_no_variable_of_what_is_gone_or_no_tensor():
    x = tp.asarray([1.0])
    x.dispose()
    with pytest.raises(DisposedError, match=r"tensor \(float32\[1\]\) was disposed"):
        tp.Variable(x, name="w")
    v = tp.Variable([1.0], name="v")
    v.dispose()
    with pytest.raises(DisposedError, match=r"variable 'v' \(float32\[1\]\) was disposed"):
        tp.Variable(v, name="w")
    with pytest.raises(DTypeError, match="Variable: value"):
        tp.Variable(object(), name="w")
    with pytest.raises(ShapeError, match="rectangular"):
        tp.Variable([[1.0], [1.0, 2.0]], name="w")
    assert tp.Variable(0.0, name="w").name == "w"  # the failures took no name


# Names ----------------------------------------------------------------------------------


def test_automatic_names_skip_those_that_are_taken():
    kept = [tp.Variable(0.0), tp.Variable(0.0, name="variable_2"), tp.Variable(0.0)]
    kept.append(tp.Variable(0.0))
    assert [variable.name for variable in kept] == [
        "variable_0",
        "variable_2",
        "variable_1",
        "variable_3",
    ]


def test_a_name_is_taken_while_its_variable_lives():
    v = tp.Variable([1.0, 2.0], name="w")
    with pytest.raises(ArgumentError) as caught:
        tp.Variable(3.0, name="w")
    assert "a live variable (float32[2]) has the name 'w'" in str(caught.value)
    assert "dispose_variables() at the top of a notebook cell" in str(caught.value)
    v.dispose()
    second = tp.Variable(3.0, name="w")
    v.dispose()  # the first one's second disposal must not free the second one's name
    with pytest.raises(ArgumentError, match="has the name"):
        tp.Variable(4.0, name="w")
    del second
    assert tp.Variable(4.0, name="w").item() == 4


def test_names_belong_to_an_engine():
    mine = tp.Variable(1.0, name="w")
    with using(make()):
        theirs = tp.Variable(2.0, name="w")
        tp.dispose_variables()
    assert theirs.is_disposed
    assert not mine.is_disposed


def test_dispose_variables_frees_names_and_data():
    tp.asarray(0.0)  # opens the backend
    before = held()
    kept = [tp.Variable([1.0], name="a"), tp.Variable([1.0], trainable=False), tp.Variable(2)]
    assert held()[0] == before[0] + 3
    tp.dispose_variables()
    assert [variable.is_disposed for variable in kept] == [True] * 3
    assert held() == before
    tp.dispose_variables()
    assert tp.Variable(1.0, name="a").name == "a"


# Contents -------------------------------------------------------------------------------

ASSIGNED = [
    ("tensor", lambda: tp.asarray([3.0, 4.0])),
    ("variable", lambda: tp.Variable([3.0, 4.0])),
    ("list", lambda: [3.0, 4.0]),
    ("list of integers", lambda: [3, 4]),
    ("tuple", lambda: (3, 4.0)),
    ("range", lambda: range(3, 5)),
    ("array", lambda: np.array([3, 4], np.float32)),
]


@pytest.mark.parametrize(("what", "value"), ASSIGNED)
def test_assign(what, value):
    v = tp.Variable([1.0, 2.0])
    before, snapshot, computed = v.numpy(), v.read(), v * 1.0
    given = value()
    assert v.assign(given) is None
    if isinstance(given, tp.Tensor):
        given.dispose()
    expect(v, "float32", (2,), [3, 4])
    for old in (snapshot, computed):
        expect(old, "float32", (2,), [1, 2])
    np.testing.assert_array_equal(before, [1, 2])


def test_assign_shares_and_frees():
    v = tp.Variable(np.zeros(8, np.float32))
    x = tp.asarray(np.ones(8, np.float32))
    tensors, buffers, size = held()
    v.assign(x)
    assert held() == (tensors, buffers - 1, size - 32)
    v.assign(v)
    assert held() == (tensors, buffers - 1, size - 32)
    expect(v, "float32", (8,), np.ones(8))


REFUSED = [
    (
        "dtype",
        lambda: tp.asarray([1, 2]),
        DTypeError,
        "int32[2], but variable 'w' is float32[2] and cannot change its dtype; cast",
    ),
    (
        "dtype of an array",
        lambda: np.array([1.0, 2.0]),
        DTypeError,
        "value is float64[2], but variable 'w' is float32[2] and cannot change its dtype",
    ),
    (
        "shape",
        lambda: tp.asarray([1.0, 2.0, 3.0]),
        ShapeError,
        "value is float32[3], but variable 'w' is float32[2] and cannot change its shape",
    ),
    ("shape of as many", lambda: [[1.0], [2.0]], ShapeError, "value is float32[2,1], but"),
    ("no broadcast", lambda: 1.0, ShapeError, "value is float32[], but variable 'w'"),
    ("text", lambda: "ab", DTypeError, "value is string[], but variable"),
    ("nothing", lambda: None, DTypeError, "assign to variable 'w': value"),
    ("complex", lambda: [1j, 2], DTypeError, "the values are complex, but the dtype is float32"),
    ("ragged", lambda: [[1.0], 2.0], ShapeError, "rectangular"),
]


@pytest.mark.parametrize(("what", "value", "error", "message"), REFUSED)
def test_assign_refuses(what, value, error, message):
    v = tp.Variable([1.0, 2.0], name="w")
    with pytest.raises(error, match=re.escape(message)):
        v.assign(value())
    expect(v, "float32", (2,), [1, 2])


def test_assign_of_what_is_gone():
    v, w = tp.Variable([1.0], name="v"), tp.Variable([2.0], name="w")
    x = tp.asarray([3.0])
    x.dispose()
    with pytest.raises(DisposedError, match=r"this tensor \(float32\[1\]\) was disposed"):
        v.assign(x)
    w.dispose()
    with pytest.raises(DisposedError, match=r"variable 'w' \(float32\[1\]\) was disposed"):
        v.assign(w)
    expect(v, "float32", (1,), [1])
    with pytest.raises(DisposedError, match=r"variable 'w' \(float32\[1\]\) was disposed"):
        w.assign([4.0])


def test_integers_do_not_take_fractions():
    n = tp.Variable([1, 2])
    for value in ([1.5, 2.0], 1.5, np.array([1.5, 2.0])):
        with pytest.raises(DTypeError):
            n.assign(value)
    expect(n, "int32", (2,), [1, 2])


# Scopes and disposal --------------------------------------------------------------------


def test_tidy_frees_no_variable():
    before = live()
    with tp.tidy():
        x = tp.asarray([1.0, 2.0, 3.0])
        v = tp.Variable(x)
        assert live() == before + 2
        new = tp.asarray([4.0, 5.0, 6.0])
        v.assign(new)
        snapshot = v.read()
    assert (x.is_disposed, new.is_disposed, snapshot.is_disposed) == (True, True, True)
    del x, new, snapshot
    expect(v, "float32", (3,), [4, 5, 6])
    assert live() == before + 1
    with tp.tidy():
        v += 1.0
        v.assign([1, 1, 1])
        held_by_op = v * 1.0
        assert tp.keep(v) is v
    assert held_by_op.is_disposed
    expect(v, "float32", (3,), [1, 1, 1])
    assert tp.tidy(lambda: v) is v
    expect(v, "float32", (3,), [1, 1, 1])


def test_dispose_twice_leaves_the_source_alone():
    x = tp.asarray([1.0, 2.0])
    v = tp.Variable(x, name="v")
    v.dispose()
    v.dispose()
    tp.dispose([v])
    assert v.is_disposed
    assert (v.name, v.shape, str(v.dtype)) == ("v", (2,), "float32")
    expect(x, "float32", (2,), [1, 2])


USES = [
    ("op", lambda v: v + 1.0, "Add: input 'a': variable 'v' (float32[2]) was disposed"),
    (
        "right",
        lambda v: tp.ones((2,)) + v,
        "Add: input 'b': variable 'v' (float32[2]) was disposed",
    ),
    ("asarray", tp.asarray, "asarray: obj: variable 'v' (float32[2]) was disposed"),
    *[
        (name, use, "variable 'v' (float32[2]) was disposed")
        for name, use in [
            ("numpy", lambda v: v.numpy()),
            ("__array__", np.asarray),
            ("read", lambda v: v.read()),
            ("device", lambda v: v.device),
            ("to", lambda v: v.to("memory")),
            ("keep", tp.keep),
            ("dlpack", np.from_dlpack),
            ("in place", lambda v: operator.iadd(v, v)),
        ]
    ],
]


@pytest.mark.parametrize(("what", "use", "message"), USES, ids=[use[0] for use in USES])
def test_use_after_disposal(what, use, message):
    v = tp.Variable([1.0, 2.0], name="v")
    v.dispose()
    with pytest.raises(DisposedError, match=re.escape(message)):
        use(v)


def test_variables_die_without_the_garbage_collector():
    def use() -> None:
        v = tp.Variable([1.0], name="w")
        v += 1.0
        tp.variable_grads(lambda: tp.sum(v * v))

    use()  # fills the caches
    gc.collect()
    before = live()
    gc.disable()
    try:
        use()
        assert live() == before
        assert tp.Variable([1.0], name="w").name == "w"
    finally:
        gc.enable()


def test_a_variable_has_all_members_of_a_tensor():
    """Every member of Tensor must read a variable at one moment, not slot by slot."""
    readers = {
        name
        for name, member in vars(tp.Tensor).items()
        for function in [getattr(member, "fget", None) or getattr(member, "__func__", member)]
        if inspect.isfunction(function) and "_buffer" in function.__code__.co_names
    }
    assert len(readers) > 4
    assert readers - set(vars(tp.Variable)) == {"_of", "_dispose"}


def typed(v: tp.Variable) -> tp.Tensor:
    """Show a type checker that a variable is a tensor."""
    result: tp.Tensor = v + v.sum(axis=0)
    return result


def test_typed():
    assert typed(tp.Variable([1.0])).item() == 2
    value: Any = tp.Variable(1.0)
    assert isinstance(value, tp.Tensor)
