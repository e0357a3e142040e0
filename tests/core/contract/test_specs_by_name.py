"""``tensorplug.plugin.specs``: the kernel specs by the names of their constants."""

from __future__ import annotations

import pytest

from tensorplug.ops.elementwise import arithmetic
from tensorplug.plugin import specs
from tensorplug.plugins.catalogue import catalogue


def test_a_spec_is_the_one_that_its_family_defines():
    assert specs.ADD is arithmetic.ADD


def test_all_specs_of_the_core_are_there_under_one_name_each():
    assert {spec.name for spec in specs} == {spec.name for spec in catalogue()}
    assert len(list(specs)) == len(dir(specs)) == len(catalogue())


@pytest.mark.parametrize(("name", "hint"), [("CONV2", "; did you mean CONV2D"), ("XYZZY", "")])
def test_an_unknown_name(name, hint):
    with pytest.raises(AttributeError, match=f"no kernel spec is called '{name}'{hint}"):
        getattr(specs, name)
