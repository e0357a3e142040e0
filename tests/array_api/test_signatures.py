"""Every name of the array API standard is here, and takes what the standard says.

``array_api_strict`` is the standard's own minimal implementation: the table of names.
"""

from __future__ import annotations

import inspect
from typing import Any

import array_api_strict as standard
import pytest

import tensorplug as tp

# What the reference has beside the standard.
OWN = {
    "ArrayAPIStrictFlags",
    "Device",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
EMPTY = inspect.Parameter.empty
BY_POSITION = inspect.Parameter.POSITIONAL_ONLY
EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD


def names(module: Any) -> list[str]:
    return sorted({each for each in module.__all__ if not each.startswith("__")} - OWN)


MODULES = [
    ("", standard, tp),
    ("linalg", standard.linalg, tp.linalg),
    ("fft", standard.fft, tp.fft),
]
FUNCTIONS = [
    pytest.param(getattr(theirs, name), ours, name, id=f"{where}.{name}".lstrip("."))
    for where, theirs, ours in MODULES
    for name in names(theirs)
    if inspect.isfunction(getattr(theirs, name))
]


@pytest.mark.parametrize(("theirs", "ours", "where"), [(t, o, w) for w, t, o in MODULES])
def test_every_name_is_there(theirs: Any, ours: Any, where: str) -> None:
    assert [name for name in names(theirs) if not hasattr(ours, name)] == [], where


@pytest.mark.parametrize(("reference", "module", "name"), FUNCTIONS)
def test_signature(reference: Any, module: Any, name: str) -> None:
    function = getattr(module, name)
    wanted = list(inspect.signature(reference).parameters.values())
    found = list(inspect.signature(function).parameters.values())
    by_name = {each.name: each for each in found}
    for position, each in enumerate(wanted):
        if each.kind is BY_POSITION:
            assert position < len(found), f"{name} takes no argument {position}"
            assert found[position].kind is BY_POSITION, f"argument {position} of {name}"
        elif each.kind is each.VAR_POSITIONAL:
            assert any(one.kind is each.kind for one in found), f"{name} takes any number"
        else:
            assert each.name in by_name, f"{name} takes {each.name}"
            ours = by_name[each.name]
            assert ours.kind is each.kind or ours.kind is EITHER, f"{each.name} of {name}"
            _same_default(name, ours, each)
    extra = [each for each in found if each.name not in {one.name for one in wanted}]
    for each in extra:  # ours may take more, but must not ask for it
        optional = each.default is not EMPTY or each.kind in (each.VAR_POSITIONAL, BY_POSITION)
        assert optional, f"{name} must not need {each.name}"


def _same_default(name: str, ours: inspect.Parameter, theirs: inspect.Parameter) -> None:
    if theirs.default is EMPTY:
        return  # ours may have one
    if "UNDEF" in repr(theirs.default):
        assert ours.default is None, f"{ours.name} of {name}"
    else:
        assert repr(ours.default) == repr(theirs.default), f"{ours.name} of {name}"


ARRAY = type(standard.asarray(1))


def test_methods_and_attributes() -> None:
    wanted = {
        each
        for each in dir(ARRAY)
        if each not in dir(object) and (not each.startswith("_") or each.startswith("__"))
    }
    wanted -= {"__buffer__", "__weakref__", "__module__", "__dict__"}
    assert sorted(each for each in wanted if not hasattr(tp.Tensor, each)) == []


@pytest.mark.parametrize("name", ["e", "inf", "nan", "newaxis", "pi"])
def test_constants(name: str) -> None:
    assert repr(getattr(tp, name)) == repr(getattr(standard, name))
