"""Recurrent cells against their formulas, and dropout."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(5)


pytestmark = pytest.mark.usefixtures("on_the_cpu")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(forget, kernel, bias, data, c, h):
    i, j, f, o = np.split(np.concatenate([data, h], 1) @ kernel + bias, 4, axis=1)
    c = sigmoid(i) * np.tanh(j) + c * sigmoid(forget + f)
    return c, np.tanh(c) * sigmoid(o)


def given(inputs, units, batch=2):
    kernel = RNG.normal(size=(inputs + units, 4 * units))
    states = RNG.normal(size=(3, batch, units))
    return kernel, RNG.normal(size=4 * units), RNG.normal(size=(batch, inputs)), *states[:2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_basic_lstm_cell(dtype):
    arrays = [item.astype(dtype) for item in given(3, 2)]
    found = tp.nn.basic_lstm_cell(1.0, *arrays)
    for got, wanted in zip(found, cell(1.0, *arrays), strict=True):
        assert (got.shape, got.dtype.name) == ((2, 2), dtype)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5)


def test_multi_rnn_cell():
    first, second = given(3, 2), given(2, 4)
    cells = [partial(tp.nn.basic_lstm_cell, 1.0, *item[:2]) for item in (first, second)]
    states, outputs = tp.nn.multi_rnn_cell(
        cells, first[2], [first[3], second[3]], [first[4], second[4]]
    )
    c, h = cell(1.0, *first)
    c2, h2 = cell(1.0, *second[:2], h, *second[3:])
    for got, wanted in zip([*states, *outputs], [c, c2, h, h2], strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9)


def test_dropout_keeps_the_expectation():
    key, x = tp.random.key(1), tp.ones((100, 100), dtype="float64")
    y = tp.nn.dropout(key, x, 0.2).numpy()
    assert set(np.unique(y)) == {0.0, 1.25}
    assert abs((y == 0).mean() - 0.2) < 0.02
    np.testing.assert_array_equal(y, tp.nn.dropout(key, x, 0.2).numpy())
    slope = tp.grad(lambda x: tp.sum(tp.nn.dropout(key, x, 0.2)))(x)
    np.testing.assert_array_equal(slope.numpy(), y)
    assert tp.nn.dropout(key, x, 0) is x


def test_dropout_of_what_belongs_together():
    y = tp.nn.dropout(tp.random.key(1), tp.ones((64, 5)), 0.5, noise_shape=(None, 1)).numpy()
    assert ((y == y[:, :1]).all(axis=1)).all()
    assert set(np.unique(y)) == {0.0, 2.0}


REFUSED = {
    "rate 1": (lambda k: tp.nn.dropout(k, [1.0], 1.0), ArgumentError, r"in \[0, 1\), got 1.0"),
    "rate": (lambda k: tp.nn.dropout(k, [1.0], True), ArgumentError, "got True"),
    "no key": (lambda _: tp.nn.dropout(3, [1.0], 0.5), ArgumentError, "dropout: key must come"),
    "integers": (lambda k: tp.nn.dropout(k, [1], 0.5), DTypeError, "floating dtype, got int32"),
    "noise": (
        lambda k: tp.nn.dropout(k, np.ones((2, 3)), 0.5, noise_shape=(2, 3, 1)),
        ShapeError,
        r"noise_shape must broadcast to \[2, 3\], got \[2, 3, 1\]",
    ),
    "bias": (
        lambda _: tp.nn.basic_lstm_cell(1.0, np.ones((4, 8)), np.ones(7), *(np.ones((2, 2)),) * 3),
        ShapeError,
        r"must be \[4, 8\] and lstm_bias \[8\], got \[4, 8\] and \[7\]",
    ),
    "batches": (
        lambda _: tp.nn.basic_lstm_cell(
            1.0, np.ones((4, 8)), np.ones(8), np.ones((3, 2)), *(np.ones((2, 2)),) * 2
        ),
        ShapeError,
        r"\[batch, units\], got \[3, 2\], \[2, 2\] and \[2, 2\]",
    ),
    "cells": (
        lambda _: tp.nn.multi_rnn_cell([cell], [[1.0]], [], []),
        ArgumentError,
        "each of 1 cells, got 0 and 0",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        call(tp.random.key(0))
