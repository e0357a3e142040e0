"""The docstring of each public function describes all of its parameters."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.core.support.public_functions import PUBLIC

# Records and protocols of the plugin contract describe their fields one by one.
DESCRIBED = {
    name: value
    for name, value in PUBLIC.items()
    if not (inspect.isclass(value) and value.__module__.startswith("tensorplug.contract"))
    and not (inspect.isclass(value) and name.startswith("tp.plugin."))
}


def undescribed(function):
    """Return the parameters that the docstring does not name before its examples."""
    text = inspect.getdoc(function) or ""
    if inspect.isclass(function):
        text += function.__init__.__doc__ or ""
    text = text.partition("Examples:")[0]
    names = [name for name in inspect.signature(function).parameters if not name.startswith("_")]
    return [name for name in names if not names_it(text, name)]


def names_it(text, name):
    """Return whether a text has a name as a word; a single letter, which may be one, as code."""
    word = rf"(?<![\w.]){re.escape(name)}(?!\w)"
    if len(name) > 1:
        return re.search(word, text) is not None
    code = " ".join(re.findall(r"``(.*?)``", text, re.DOTALL))
    return re.search(word, code) is not None or re.search(
        rf"^ +.*\b{name}\b.*:", text, re.MULTILINE
    )


@pytest.mark.parametrize("name", DESCRIBED)
def test_each_parameter_is_described(name):
    assert undescribed(DESCRIBED[name]) == []


def test_what_counts():
    def function(x, axis, a, b, *, keepdims=False):
        """Return a sum of ``a`` along an axis.

        Args:
            x, b: numbers.

        Examples:
            >>> function(keepdims=True)

        """

    assert undescribed(function) == ["keepdims"]
    function.__doc__ = "Return a product of x: a number."
    assert undescribed(function) == ["x", "axis", "a", "b", "keepdims"]
