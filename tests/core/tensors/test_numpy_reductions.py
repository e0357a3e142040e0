"""NumPy's reductions of tensors, such as ``numpy.sum(x)``: NumPy calls the method of x."""

from __future__ import annotations

import numpy as np
import pytest

import tensorplug as tp

X = np.array([[1.0, -2.0, 3.0], [4.0, 0.0, -6.0]], "float32")
REDUCTIONS = [np.sum, np.prod, np.max, np.min, np.amax, np.amin, np.mean, np.std, np.var]
TRUTHS = [np.any, np.all]
OPTIONS = [{}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}]


pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("function", REDUCTIONS + TRUTHS)
def test_the_result_is_a_tensor(function, options):
    given = X if function in REDUCTIONS else X > 0
    found, wanted = function(tp.asarray(given), **options), function(given, **options)
    assert isinstance(found, tp.Tensor)
    assert (str(found.dtype), found.shape) == (str(wanted.dtype), wanted.shape)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("function", [np.std, np.var])
def test_degrees_of_freedom(function):
    found = function(tp.asarray(X), axis=1, ddof=1)
    np.testing.assert_allclose(found.numpy(), function(X, axis=1, ddof=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [(np.sum, np.ones(3)), (np.mean, np.full(3, 1 / 3)), (np.max, [0, 0, 1])],
)
def test_gradients_flow(function, wanted):
    found = tp.grad(function)(tp.asarray([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.sum(x, out=np.empty(())), "sum: out .*not supported"),
        (lambda x: np.mean(x, dtype="float64"), "mean: dtype .*not supported.*astype"),
        (lambda x: np.sum(x, initial=3.0), "sum: initial .*not supported"),
        (lambda x: np.sum(x, where=X > 0), "sum: where .*not supported"),
        (lambda x: np.max(x, where=[True], initial=0), "max: .*not supported"),
        (lambda x: x.sum(nothing=1), "unexpected keyword argument 'nothing'"),
    ],
)
def test_what_tensors_cannot_do_is_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call(tp.asarray(X))
