"""Kinds of attributes: the one form that each value given takes, or why it is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensorplug.contract import attributes as kinds
from tensorplug.contract import dtypes as dt
from tensorplug.contract.spec import TensorType
from tensorplug.errors import TensorplugError

X = TensorType(dt.float32, (2, 3, 4))
KNOWN = {"x": X, "xs": [X, X], "none": [], "absent": None}

CASES = [  # kind, given, canonical form
    (kinds.flag(), True, True),
    (kinds.axis("x"), -1, 2),
    (kinds.axis("x"), np.int64(1), 1),
    (kinds.axis("xs"), -3, 0),
    (kinds.axis("x", extra=1), 3, 3),
    (kinds.axis("x", extra=1), -4, 0),
    (kinds.axes("x"), None, (0, 1, 2)),
    (kinds.axes("x"), [2, -3], (0, 2)),
    (kinds.shape(), 3, (3,)),
    (kinds.shape(), [2, 0], (2, 0)),
    (kinds.integers(), -1, (-1,)),
    (kinds.integers(), [1, np.int8(2)], (1, 2)),
    (kinds.integer(at_least=1), 1, 1),
    (kinds.number(), 1.5, 1.5),
    (kinds.number(), np.float32(1.5), 1.5),
    (kinds.number(), np.float64(1.5), 1.5),
    (kinds.number(), np.int8(3), 3),
    (kinds.number(), np.bool_(True), True),
    (kinds.number(), 2j, 2j),
    (kinds.dtype(), "int8", dt.int8),
    (kinds.dtype(), np.float64, dt.float64),
    (kinds.choice("a", "b"), "b", "b"),
    (kinds.choice("a", None), None, None),
    (kinds.optional(kinds.integer()), None, None),
    (kinds.optional(kinds.integer()), 3, 3),
]


@pytest.mark.parametrize(("kind", "given", "form"), CASES)
def test_attributes_have_a_canonical_form(kind, given, form):
    result = kind.canonical(given, KNOWN)
    assert (result, type(result)) == (form, type(form))
    hash(result)


REFUSED = [  # kind, given, a part of the message: what was given and what is allowed
    (kinds.flag(), 1, "must be True or False, got 1"),
    (kinds.flag(), None, "must be True or False, got None"),
    (kinds.axis("x"), 3, "axis 3 is out of range for rank 3: it must be from -3 to 2"),
    (kinds.axis("x"), -4, "axis -4 is out of range for rank 3: it must be from -3 to 2"),
    (kinds.axis("x"), None, "axis must be an integer, got None"),
    (kinds.axis("x"), True, "axis must be an integer, got True"),
    (kinds.axis("none"), 0, "input 'none' is an empty list"),
    (kinds.axis("absent"), 0, "axis 0 is out of range for rank 0"),
    (kinds.axes("x"), [0, 0], "axis [0, 0] names an axis twice"),
    (kinds.shape(), [2, -1], "shape must not contain negative sizes, got (2, -1)"),
    (kinds.shape(), "ab", "shape must be an integer, got 'ab'"),
    (kinds.integers(), [1.5], "value must be an integer, got 1.5"),
    (kinds.integer(at_least=1), 0, "must be at least 1, got 0"),
    (kinds.number(), "1", "must be a number, got '1'"),
    (kinds.number(), None, "must be a number, got None"),
    (kinds.number(), np.array([1.0]), "must be a number, got array([1.])"),
    (kinds.dtype(), "int7", "unknown dtype 'int7'; dtypes are"),
    (kinds.choice("a", "b"), "c", "must be one of 'a', 'b', got 'c'"),
    (kinds.choice("a", "b"), ["a"], "must be one of 'a', 'b', got ['a']"),
    (kinds.optional(kinds.integer()), "x", "must be an integer, got 'x'"),
]


@pytest.mark.parametrize(("kind", "given", "message"), REFUSED)
def test_attributes_refuse_other_values(kind, given, message):
    with pytest.raises(TensorplugError, match=re.escape(message)):
        kind.canonical(given, KNOWN)


@pytest.mark.parametrize("value", [-0.0, float("nan"), complex(-0.0, 0.0), complex(1, -0.0)])
def test_numbers_keep_the_signs_of_their_zeros(value):
    assert repr(kinds.number().canonical(value, {})) == repr(value)
