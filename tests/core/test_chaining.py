"""Chained methods: ops that are methods of Tensor too, without a list."""

from __future__ import annotations

import types

import pytest

import tensorplug as tp
from tensorplug import chaining
from tensorplug.dispatch import chained
from tensorplug.errors import RegistrationError


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
    chaining.attach([first, second])
    chaining.attach(iter([first]))  # again does nothing
    x = tp.asarray(1.0)
    assert x.first_op() is x
    assert tp.Tensor.second_op is second


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("name", ["shape", "numpy", "add", "_buffer", "fresh_op"])
def test_a_name_that_is_taken_attaches_none(name):
    others = [op("other_op"), op("fresh_op"), op(name)]
    with pytest.raises(RegistrationError, match=f"Tensor has a method {name!r} already; .*op.*"):
        chaining.attach(others)
    assert not hasattr(tp.Tensor, "other_op")


def test_only_what_a_module_defines_and_marks():
    module = types.ModuleType("somewhere")
    mine, unmarked, foreign = op("mine"), lambda x: x, op("foreign")
    mine.__module__ = unmarked.__module__ = "somewhere"
    module.mine, module.unmarked, module.foreign, module.number = mine, unmarked, foreign, 5
    assert chaining.chained_in(module) == [mine]


@pytest.mark.usefixtures("engine")
def test_chained_methods_are_the_public_functions():
    x = tp.asarray([1.0, 2.0])
    assert x.add(1).multiply(2).sum(axis=0).item() == 10
    assert tp.Tensor.reshape is tp.reshape
