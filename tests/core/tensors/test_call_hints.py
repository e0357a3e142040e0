"""Keywords and positions of other libraries lead to ours, and cost hot functions nothing."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from tests.core.support.public_functions import PUBLIC

import tensorplug as tp
from tensorplug.dispatch.calls import chained
from tensorplug.tensors import call_hints, foreign_keywords, methods

pytestmark = pytest.mark.usefixtures("on_the_cpu")

X = np.ones((2, 3), np.float32)
IMAGE, FILTER = np.ones((1, 5, 5, 1), np.float32), np.ones((3, 3, 1, 1), np.float32)


def x():
    return tp.asarray(X)


def key():
    return tp.random.key(0)


CALLS = {
    "PyTorch: dim": (lambda: tp.sum(X, dim=0), "'dim'; here it is axis="),
    "PyTorch: dim of a method": (lambda: x().mean(dim=0), "'dim'; here it is axis="),
    "PyTorch: keepdim": (lambda: x().sum(0, keepdim=True), "here it is keepdims="),
    "PyTorch: input": (lambda: tp.sum(input=X), "here it is x, which is passed by position"),
    "PyTorch: requires_grad": (lambda: tp.zeros((2,), requires_grad=True), "gradients are taken"),
    "PyTorch: generator": (lambda: tp.random.normal(key(), (2,), generator=1), "take a key first"),
    "PyTorch: lr": (lambda: tp.train.adam(lr=0.1), "here it is learning_rate="),
    "PyTorch: betas": (lambda: tp.train.adam(betas=(0.9, 0.9)), "here they are beta1= and beta2="),
    "PyTorch: zeros": (lambda: tp.zeros(2, 3), r"write zeros\(\(2, 3\)\)$"),
    "PyTorch: reshape": (lambda: tp.reshape(X, 3, 2), r"write reshape\(x, \(3, 2\)\)$"),
    "PyTorch: triu": (lambda: tp.triu(X, 1), r"write triu\(x, k=1\)$"),
    "PyTorch: triu of a method": (lambda: x().triu(1), r"write triu\(x, k=1\)$"),
    "NumPy: ddof": (lambda: tp.var(X, ddof=1), "here it is correction="),
    "NumPy: out": (lambda: tp.cumsum(X, out=X), "tensors are values"),
    "NumPy: size": (lambda: tp.random.Generator(0).normal(size=3), "here it is shape="),
    "NumPy: integers": (
        lambda: tp.random.Generator(0).integers(1, 7, 5),
        r"by name: integers\(shape, dtype, low=\.\.\., high=\.\.\.\)$",
    ),
    "NumPy: integers without a size": (
        lambda: tp.random.Generator(0).integers(1, 7),
        r"'high'; write integers\(shape, dtype, low=\.\.\., high=\.\.\.\)$",
    ),
    "JAX: randint": (lambda: tp.random.integers(key(), (2,), 0, 3), r"by name: integers\(key, sh"),
    "TensorFlow.js: keepDims": (lambda: tp.sum(X, keepDims=True), "here it is keepdims="),
    "a slip": (lambda: tp.mean(X, keepdmis=True), r"did you mean keepdims=\?$"),
    "an operand by name": (lambda: tp.sum(x=X), r"pass x by position: sum\(x, axis, dtype="),
    "the old order of random functions": (
        lambda: tp.random.uniform(key(), (2,), "float32", 0.0, 1.0),
        r"options are passed by name: uniform\(key, shape, dtype, low=\.\.\., high=\.\.\.\)$",
    ),
    "the old order with parameters first": (
        lambda: tp.random.gamma(key(), 2.0, (3,)),
        r"'concentration'; write gamma\(key, shape, dtype, concentration=\.\.\., scale=\.\.\.\)$",
    ),
    "an unknown name": (lambda: tp.roll(X, 1, quux=2), r"write roll\(x, shift, axis\)$"),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_other_libraries(name):
    call, hint = CALLS[name]
    with pytest.raises(TypeError, match=hint) as caught:
        call()
    assert type(caught.value) is TypeError


def test_other_errors_are_left_alone():
    def raises(value):
        raise TypeError("of the function itself")

    with pytest.raises(TypeError, match=r"^of the function itself$"):
        tp.grad(raises)(1.0)
    with pytest.raises(TypeError, match=r"^unsupported operand"):
        tp.vmap(lambda x: x + object(), in_axes=0)(X)


def test_extension_methods_have_hints():
    @chained
    def blended(x, /, *, axis=0):
        return x

    try:
        methods.attach([blended])
        with pytest.raises(TypeError, match="here it is axis="):
            x().blended(dim=0)
    finally:
        del tp.Tensor.blended


def _wrapped():
    return {name: value for name, value in PUBLIC.items() if hasattr(value, "__wrapped__")}


@pytest.mark.parametrize("name", ["tp.add", "tp.exp", "tp.where", "tp.matmul", "tp.nn.relu"])
def test_hot_functions_have_no_wrapper(name):
    assert not hasattr(PUBLIC[name], "__wrapped__")


def test_public_functions_look_as_they_did():
    """Each has the signature and the documentation of the function behind it."""
    names = [name for name, value in _wrapped().items() if inspect.isfunction(value)]
    assert len(names) > 300
    for name in names:
        function = PUBLIC[name]
        behind = inspect.unwrap(function)
        assert inspect.signature(function) == inspect.signature(behind), name
        assert function.__doc__ == behind.__doc__
        assert function.__module__ == behind.__module__
        assert call_hints.hinting(function) is function
        if "<locals>" not in function.__qualname__:
            assert pickle.loads(pickle.dumps(function)) is function, name


def test_the_table_names_parameters_that_exist():
    known = {
        parameter
        for value in PUBLIC.values()
        if inspect.isfunction(value) or value.__module__.startswith("tensorplug_train")
        for parameter in inspect.signature(value).parameters
    }
    meant = {ours for targets in foreign_keywords.KEYWORDS.values() for ours in targets}
    assert meant <= known
    assert not foreign_keywords.KEYWORDS.keys() & foreign_keywords.ADVICE.keys()
