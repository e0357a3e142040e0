"""Chained methods: ops that are methods of Tensor too, without a list."""

from __future__ import annotations

import types

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.calls import chained
from tensorplug.errors import ArgumentError, RegistrationError, ShapeError
from tensorplug.tensors import methods
from tensorplug.tensors.call_hints import hinting


@pytest.fixture
def clean():
    before = dict(vars(tp.Tensor))
    yield
    for name in set(vars(tp.Tensor)) - set(before):
        delattr(tp.Tensor, name)


def op(name):
    def function(x):
        return x

    function.__name__ = name
    return chained(function)


@pytest.mark.usefixtures("clean", "engine")
def test_attach():
    first, second = op("first_op"), op("second_op")
    methods.attach([first, second])
    methods.attach(iter([first]))  # again does nothing
    x = tp.asarray(1.0)
    assert x.first_op() is x
    assert tp.Tensor.second_op is hinting(second)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("name", ["shape", "numpy", "add", "_buffer", "fresh_op"])
def test_a_name_that_is_taken_attaches_none(name):
    others = [op("other_op"), op("fresh_op"), op(name)]
    with pytest.raises(RegistrationError, match=f"Tensor has a method {name!r} already; .*op.*"):
        methods.attach(others)
    assert not hasattr(tp.Tensor, "other_op")


def test_only_what_a_module_defines_and_marks():
    module = types.ModuleType("somewhere")
    mine, unmarked, foreign = op("mine"), lambda x: x, op("foreign")
    mine.__module__ = unmarked.__module__ = "somewhere"
    module.mine, module.unmarked, module.foreign, module.number = mine, unmarked, foreign, 5
    assert methods.find_chained(module) == [mine]


@pytest.mark.usefixtures("engine")
def test_chained_methods_are_the_public_functions():
    x = tp.asarray([1.0, 2.0])
    assert x.add(1).multiply(2).sum(axis=0).item() == 10
    assert tp.Tensor.add is tp.add
    assert tp.Tensor.reshape.__wrapped__ is tp.reshape.__wrapped__
    assert tp.Tensor.expand_dims is tp.expand_dims
    assert tp.Tensor.sum.__doc__ == tp.sum.__doc__


GRID = np.arange(6, dtype=np.float32).reshape(2, 3)
AS_NUMPY = {  # NumPy's and PyTorch's forms, and ours by name
    "sum": (lambda x: x.sum(0), lambda x: tp.sum(x, axis=0)),
    "sum of all axes": (lambda x: x.sum(None), tp.sum),
    "max": (lambda x: x.max(1), lambda x: tp.max(x, axis=1)),
    "std": (lambda x: x.std(0, correction=1), lambda x: tp.std(x, axis=0, correction=1)),
    "flip": (lambda x: x.flip(1), lambda x: tp.flip(x, axis=1)),
    "take": (lambda x: x.take([2, 0], 1), lambda x: tp.take(x, tp.asarray([2, 0]), axis=1)),
    "reshape": (lambda x: x.reshape(3, 2), lambda x: tp.reshape(x, (3, 2))),
    "reshape flat": (lambda x: x.reshape(-1), lambda x: tp.reshape(x, (-1,))),
    "reshape by name": (lambda x: x.reshape(shape=(3, 2)), lambda x: tp.reshape(x, (3, 2))),
    "reshape, copied": (lambda x: x.reshape(3, -1, copy=True), lambda x: tp.reshape(x, (3, -1))),
    "permute_dims": (lambda x: x.permute_dims(1, 0), lambda x: tp.permute_dims(x, (1, 0))),
    "reversed": (lambda x: x.permute_dims(), tp.permute_dims),
    "broadcast_to": (lambda x: x.broadcast_to(2, 2, 3), lambda x: tp.broadcast_to(x, (2, 2, 3))),
    "squeeze": (lambda x: x.reshape(1, 2, 1, 3).squeeze(), lambda x: x),
}


@pytest.mark.parametrize("form", AS_NUMPY)
def test_methods_take_what_numpys_take(form):
    method, function = AS_NUMPY[form]
    with tp.use_backend("cpu"):
        found, expected = method(tp.asarray(GRID)), function(tp.asarray(GRID))
    assert found.type == expected.type
    assert found.tolist() == expected.tolist()


def test_the_functions_keep_the_standards_form():
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        tp.reshape(GRID, 3, 2)


NO_FORM = {
    "an axis and more": (
        lambda x: x.sum(0, True),
        TypeError,
        r"^sum\(\) takes from 1 to 2 .* were given; options are passed by name: sum\(x, axis, dt",
    ),
    "two axes": (lambda x: x.flip(0, 1), TypeError, r"^flip\(\) takes from 1 to 2 pos"),
    "axis twice": (lambda x: x.max(0, axis=0), TypeError, "multiple values for .*'axis'"),
    "another name": (
        lambda x: x.max(0, keep=True),
        TypeError,
        r"max\(\) got an unexpected",
    ),
    "no axis": (lambda x: x.max(0.5), ArgumentError, "axis must be an integer, got 0.5"),
    "no such axis": (lambda x: x.max(2), ShapeError, "axis 2 is out of range for rank 2"),
    "no shape": (
        lambda x: x.reshape(),
        TypeError,
        r"^reshape\(\) missing 1 .*: 'shape'; write reshape\(x",
    ),
    "another size": (lambda x: x.reshape(4, 2), ShapeError, r"cannot reshape \[2, 3\] of 6"),
    "a shape and more": (lambda x: x.reshape((3, 2), 1), ArgumentError, r"got \(3, 2\)"),
    "no order": (lambda x: x.permute_dims(0, 0), ShapeError, "not a permutation"),
}


@pytest.mark.parametrize("form", NO_FORM)
def test_forms_that_no_method_has(form):
    call, error, message = NO_FORM[form]
    with tp.use_backend("cpu"), pytest.raises(error, match=message):
        call(tp.asarray(GRID))


def test_which_ops_have_forms_of_their_own():
    def plain(x, axis): ...
    def needed(x, k=3, *, axis): ...
    def two(x, /, shape, order): ...

    assert all(methods.as_method(item) is item for item in (plain, needed, two))


def test_an_op_that_wraps_another_function():
    inner, outer = op("wrapped_op"), op("wrapping_op")
    outer.__wrapped__ = inner
    try:
        methods.attach([outer])
        methods.attach([outer])
        assert tp.Tensor.wrapping_op is hinting(outer)
    finally:
        del tp.Tensor.wrapping_op
