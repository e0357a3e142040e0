"""Parameters of kernels and rules: their names are checked before the functions run."""

from __future__ import annotations

import inspect
import operator
import re

import numpy as np
import pytest

from tensorplug.contract import signatures
from tensorplug.errors import RegistrationError


def right(a, b, *, axis): ...
def by_position_only(a, b, /): ...
def other_names(p, q, /): ...
def three(p, q, r, /): ...
def one_of_them(p, /, b): ...
def swapped(b, a): ...
def misspelt(a, b, *, axes): ...
def attribute_first(a, b, axis): ...
def too_few(a): ...
def anything(*args): ...
def keywords(a, b, **rest): ...


HERE = "test_kernel_signatures"
SPLIT = [  # function, what it asks for besides the inputs, or parts of the message
    (right, ("axis",)),
    (by_position_only, ()),
    (other_names, ()),
    (np.add, ()),
    (operator.add, ()),
    (np.negative, ["numpy.negative has the parameters (x"]),
    (np.divmod, ["numpy.divmod has the parameters (x1, x2"]),
    (np.matmul, ["numpy.matmul has the parameters (x1, x2"]),
    (one_of_them, ["one_of_them has the parameters (p, b)"]),
    (
        swapped,
        ["swapped has the parameters (b, a)", "keyword-only parameters: (a, b, *, axis, out)"],
    ),
    (misspelt, ["misspelt has the parameters (a, b, *, axes)", "(a, b, *, axis, out)"]),
    (attribute_first, ["attribute_first has the parameters (a, b, axis)"]),
    (too_few, ["too_few has the parameters (a)"]),
    (anything, ["anything takes *args, but must name its parameters"]),
    (keywords, ["keywords takes **rest, but must name its parameters"]),
    (None, ["None has no signature to read", "wrap it in a function"]),
]


@pytest.mark.parametrize(("function", "result"), SPLIT)
def test_check_split(function, result):
    if isinstance(result, tuple):
        actual = signatures.check_split(function, "role", ("a", "b"), ("axis", "out"))
        assert actual == result
        return
    with pytest.raises(RegistrationError) as caught:
        signatures.check_split(function, "the role", ("a", "b"), ("axis", "out"))
    text = str(caught.value)
    assert text.startswith("the role: ")
    assert all(part in text for part in result)


def test_three_inputs_need_names():
    with pytest.raises(RegistrationError, match=re.escape("must have the inputs first")):
        signatures.check_split(three, "role", ("a", "b", "c"), ())
    assert signatures.check_split(np.negative, "role", ("x",), ("axis",)) == ()


def test_check_split_without_extras_names_the_inputs_alone():
    with pytest.raises(RegistrationError, match=re.escape("keyword-only parameters: (x)")):
        signatures.check_split(right, "role", ("x",), ())


def rule(dy, b, *, axis): ...
def wrong_rule(dy, bb, axes): ...


def test_check_names():
    assert signatures.check_names(rule, "r", ("axis", "b", "dy", "a")) == ("dy", "b", "axis")
    with pytest.raises(RegistrationError) as caught:
        signatures.check_names(wrong_rule, "the role", ("dy", "b", "axis"))
    assert str(caught.value).startswith("the role: ")
    assert "wrong_rule has unknown parameters bb, axes; possible are dy, b, axis" in str(
        caught.value
    )


def wrapping(*args, **rest): ...


wrapping.__wrapped__ = right


def announced(whatever): ...


announced.__signature__ = inspect.signature(right)


@pytest.mark.parametrize("function", [wrapping, announced])
def test_a_declared_signature_overrides_the_code(function):
    assert signatures.check_split(function, "r", ("a", "b"), ("axis",)) == ("axis",)


class Callable:
    def __call__(self, a, b): ...


def test_callables_of_other_kinds():
    assert signatures.check_split(Callable(), "r", ("a", "b"), ()) == ()
    assert "Callable object" in signatures.location(Callable())
    assert signatures.location(right).endswith(f"{HERE}.right")
