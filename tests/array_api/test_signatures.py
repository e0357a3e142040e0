"""Every name of the array API standard is here, and takes what the standard says.

``array_api_strict`` is the standard's own minimal implementation: the table of names.
"""

from __future__ import annotations

import inspect
from typing import Any

import array_api_strict as standard
import pytest

import tensorplug as tp

# Names that the reference has and the standard has not.
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
    return sorted({name for name in module.__all__ if not name.startswith("__")} - OWN)


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
    by_name = {member.name: member for member in found}
    for position, item in enumerate(wanted):
        if item.kind is BY_POSITION:
            assert position < len(found), f"{name} takes no argument {position}"
            assert found[position].kind is BY_POSITION, f"argument {position} of {name}"
        elif item.kind is item.VAR_POSITIONAL:
            assert any(one.kind is item.kind for one in found), f"{name} takes any number"
        else:
            assert item.name in by_name, f"{name} takes {item.name}"
            ours = by_name[item.name]
            assert ours.kind is item.kind or ours.kind is EITHER, f"{item.name} of {name}"
            _same_default(name, ours, item)
    extra = [member for member in found if member.name not in {one.name for one in wanted}]
    for item in extra:  # ours may take more, but must not ask for it
        optional = item.default is not EMPTY or item.kind in (item.VAR_POSITIONAL, BY_POSITION)
        assert optional, f"{name} must not need {item.name}"


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
        item
        for item in dir(ARRAY)
        if item not in dir(object) and (not item.startswith("_") or item.startswith("__"))
    }
    wanted -= {"__buffer__", "__weakref__", "__module__", "__dict__"}
    assert sorted(member for member in wanted if not hasattr(tp.Tensor, member)) == []


@pytest.mark.parametrize("name", ["e", "inf", "nan", "newaxis", "pi"])
def test_constants(name: str) -> None:
    assert repr(getattr(tp, name)) == repr(getattr(standard, name))
