"""Names that other libraries have lead to ours."""

from __future__ import annotations

from functools import reduce

import pytest

import tensorplug as tp
from tensorplug.introspection import spellings


@pytest.mark.parametrize("name", spellings.FOREIGN)
def test_names_of_other_libraries(name):
    target = spellings.FOREIGN[name]
    assert callable(reduce(getattr, target.split("."), tp))  # it is there
    with pytest.raises(AttributeError, match=f"here it is tensorplug.{target}$") as caught:
        getattr(tp, name)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("argMax", "here it is tensorplug.argmax"),
        ("squaredDifference", "here it is tensorplug.squared_difference"),
        ("relu", "here it is tensorplug.nn.relu"),
        ("Conv2D", "here it is tensorplug.nn.conv2d"),
        ("reshap", "did you mean tensorplug.reshape?"),
        ("softmx", "did you mean tensorplug.nn.softmax?"),
    ],
)
def test_other_spellings(name, hint):
    with pytest.raises(AttributeError, match=hint.replace("?", r"\?")):
        getattr(tp, name)


@pytest.mark.parametrize("name", ["quux", "__wrapped__"])
def test_unknown_names(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
        getattr(tp, name)
    assert not hasattr(tp, name)


def test_modules_are_found_all_the_same():
    from tensorplug.dispatch.tensor import Tensor
    from tensorplug.tensors.variable import Variable

    assert (Tensor, Variable) == (tp.Tensor, tp.Variable)
