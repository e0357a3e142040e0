"""Interpolation and integrals of sampled functions, against NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError
from tensorplug.testing import check_grads

from .comparing import near

NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(7)


XP, FP = np.array([-1.0, 0.0, 2.0, 5.0]), np.array([3.0, -1.0, 4.0, 4.5])
AT = np.array([[-9, -1, -0.5, 0], [0.25, 2, 5, 7.0]])


@pytest.mark.parametrize("ends", [{}, {"left": -7.0}, {"right": NAN}, {"left": 0.5, "right": 8.0}])
@pytest.mark.parametrize("values", [FP, FP + 1j * FP[::-1]], ids=["real", "complex"])
def test_interpolation(values, ends):
    found = tp.interp(AT, XP, values, **ends)
    near(found, np.interp(AT, XP, values, **ends), values.dtype.name)


def test_interpolation_at_the_edges():
    near(tp.interp([NAN, INF, -INF], [0.0, 1.0], [2.0, 3.0]), [NAN, 3, 2], "float32")
    near(tp.interp([0.0, 1.0, 2.0, NAN], [1.0], [5.0]), [5, 5, 5, NAN], "float32")
    near(tp.interp([0.0, 1.0, 2.0], [1.0], [5.0], left=1, right=9), [1, 5, 9], "float32")
    near(tp.interp(1, [0, 4], [0, 1]), 0.25, "float32")
    jump = [0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 5.0, 6.0]
    near(tp.interp([0.5, 1.0, 1.5], *jump), np.interp([0.5, 1.0, 1.5], *jump), "float32")
    jump = [0.0, 1.0, 1.0], [0.0, 1.0, 5.0]
    near(tp.interp([1.0, 2.0], *jump), np.interp([1.0, 2.0], *jump), "float32")
    assert tp.interp(1.0, [0.0, 1.0], [1e8, 1.0]).item() == 1  # without what rounding leaves
    near(tp.interp(np.zeros((0, 2)), XP, FP), np.zeros((0, 2)), "float64")


def test_gradients_of_interpolation():
    inside = np.array([-0.7, 0.4, 1.1, 3.3, -4.0, 9.0])
    check_grads(lambda x, xp, fp: tp.sum(tp.interp(x, xp, fp) ** 2), [inside, XP, FP], order=2)
    ends = tp.asarray([-INF, INF, 1.0])
    assert tp.grad(lambda x: tp.sum(tp.interp(x, XP, FP)))(ends).tolist() == [0, 0, 2.5]
    one = tp.grad(lambda fp: tp.sum(tp.interp(AT, [0.0], fp)))(tp.asarray([1.0]))
    assert one.tolist() == [8]


Y = RANDOM.uniform(-2, 2, (3, 4, 5))
PLACES = np.sort(RANDOM.uniform(0, 9, Y.shape), axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_integrals(axis):
    near(tp.trapezoid(Y, axis=axis), np.trapezoid(Y, axis=axis), "float64", terms=5)
    near(tp.trapezoid(Y, dx=0.25, axis=axis), np.trapezoid(Y, dx=0.25, axis=axis), "float64", 5)
    near(tp.trapezoid(Y, PLACES, axis=axis), np.trapezoid(Y, PLACES, axis=axis), "float64", 99)
    line = np.sort(RANDOM.uniform(0, 9, Y.shape[axis]))
    near(tp.trapezoid(Y, line, axis=axis), np.trapezoid(Y, line, axis=axis), "float64", 99)


def test_integrals_of_other_numbers():
    near(tp.trapezoid([1, 2, 3]), 4, "float32")
    near(tp.trapezoid([True, True, False]), 1.5, "float32")
    near(tp.trapezoid([1, 2, 3], [4, 6, 8]), 8, "float32")
    near(tp.trapezoid(np.array([1j, 2j]), dx=2), 3j, "complex128")
    near(tp.trapezoid([1.0, 2.0], dx=np.float64(0.5)), 0.75, "float32")
    near(tp.trapezoid(Y, dx=np.full(4, 2.0)), np.trapezoid(Y, dx=2.0), "float64", 5)
    near(tp.trapezoid(np.ones((2, 1))), [0, 0], "float64")
    near(tp.trapezoid(np.zeros((2, 0), "f4")), [0, 0], "float32")
    compiled = tp.compile(lambda y, x: tp.trapezoid(y, x))  # noqa: PLW0108  # two of four arguments
    near(compiled(tp.asarray([1.0, 3.0]), tp.asarray([0.0, 2.0])), 4, "float32")


def test_gradients_of_integrals():
    check_grads(lambda y, x: tp.sum(tp.trapezoid(y, x, axis=1) ** 2), [Y, PLACES], order=2)
    slope = tp.grad(lambda dx: tp.trapezoid([1.0, 2.0, 3.0], dx=dx))(tp.asarray(2.0))
    assert slope.item() == 4


BAD = [
    (lambda: tp.interp(AT, XP, FP[:2]), ShapeError, "got float64.4. and float64.2."),
    (lambda: tp.interp(AT, [], []), ShapeError, "at least 1"),
    (lambda: tp.interp([1j], XP, FP), DTypeError, "interp: x must hold real"),
    (
        lambda: tp.trapezoid(1.0),
        ShapeError,
        r"trapezoid: y must have at least rank 1, got float32\[\]",
    ),
    (lambda: tp.trapezoid(Y, axis=3), ShapeError, "trapezoid: axis 3 is out of range"),
    (lambda: tp.trapezoid(Y, [1.0, 2.0]), ShapeError, "x must have length 5, that of axis 2 of y"),
    (lambda: tp.trapezoid(Y, Y[0]), ShapeError, "x must have rank 1 or the rank of y, 3, got"),
    (lambda: tp.trapezoid(["a"]), DTypeError, "trapezoid: y must hold numbers"),
    (lambda: tp.trapezoid(Y, dx=True), ArgumentError, "trapezoid: dx must be a number, got True"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()
