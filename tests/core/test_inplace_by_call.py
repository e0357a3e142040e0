"""``x[key] = operator.iadd(x[key], y)``, which other libraries write for ``x[key] += y``."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.errors import AliasError

A = np.arange(6.0).reshape(2, 3)
KEYS = [0, (slice(None), slice(1, None)), ..., (0, 1), (None, slice(None, None, -1)), -1]


@pytest.fixture(autouse=True)
def engine(on_the_cpu):
    return on_the_cpu


@pytest.mark.parametrize("key", KEYS, ids=repr)
@pytest.mark.parametrize("operation", [operator.iadd, operator.imul, operator.ipow], ids=repr)
def test_as_numpy(key, operation):
    def written(x):
        x[key] = operation(x[key], 2)
        return x

    np.testing.assert_array_equal(written(tp.asarray(A)).numpy(), written(A.copy()))


def test_gradients_flow():
    def updated(x, y):
        key = 0
        x = tp.asarray(x, copy=True)
        x[key] = operator.imul(x[key], y)
        return x.sum()

    dx, dy = tp.grad(updated, argnums=(0, 1))(tp.asarray(A), tp.asarray(3.0, dtype="float64"))
    np.testing.assert_array_equal(dx.numpy(), [[3, 3, 3], [1, 1, 1]])
    assert dy.item() == 3


def stored_elsewhere(x, key):
    other = tp.asarray(A)
    other[key] = operator.iadd(x[key], 1)


def stored_under_another_key(x, key):
    second = 1
    x[second] = operator.iadd(x[key], 1)


def stored_in_a_dict(x, key):
    results = {}
    results[key] = operator.iadd(x[key], 1)


def not_stored(x, key):
    operator.iadd(x[key], 1)


def stored_after_another_call(x, key):
    x[key] = abs(operator.iadd(x[key], 1))


def stored_by_picks(x, _key):
    picks = [0, 0]
    x[picks] = operator.iadd(x[0:2], 1)


def held_as_a_view(x, key):
    view = x[key]
    x[key] = operator.iadd(view, 1)


def seen_by_a_third(x, key):
    _column = x[:, 1]
    x[key] = operator.iadd(x[key], 1)


def read_again_by_the_same_call(x, key):
    x[key] = functools.reduce(operator.iadd, [1, x[0, 1:2]], x[key])


@pytest.mark.parametrize(
    "write",
    [
        stored_elsewhere,
        stored_under_another_key,
        stored_in_a_dict,
        not_stored,
        stored_after_another_call,
        stored_by_picks,
        held_as_a_view,
        seen_by_a_third,
        read_again_by_the_same_call,
    ],
)
def test_whatever_is_not_that_is_refused(write):
    x = tp.asarray(A)
    with pytest.raises(AliasError):
        write(x, 0)
    np.testing.assert_array_equal(x.numpy(), A)
