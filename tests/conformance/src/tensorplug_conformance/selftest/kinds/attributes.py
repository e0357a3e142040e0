"""Attributes that are ignored, kept from another call, or off by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tensorplug.plugin import REQUIRED, TensorplugError
from tensorplug_conformance.selftest.kinds.kind import ORDINARY, chosen
from tensorplug_conformance.selftest.sabotage import Saboteur

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorplug_conformance.case_entry import CaseEntry
    from tensorplug_conformance.selftest.sabotage import Call


_AXES: Final = ("axis", "axes", "dim", "dims", "perm", "reduction_indices", "batch_dims")
_REFUSALS = (ValueError, IndexError, TypeError, ArithmeticError, KeyError, TensorplugError)


def saboteurs(entry: CaseEntry) -> Iterator[Saboteur]:
    """Yield the saboteurs for each attribute of a kernel."""
    dtype = chosen(entry, ORDINARY)
    assert dtype is not None  # the default need not be among them
    for name in entry.spec.attributes:
        for kind, replaced in (
            ("attribute ignored", _default),
            ("attribute of the first call", _first),
            ("attribute off by one", _next),
            ("attribute as if one", _broadened),
            ("wrong axis", _next_axis),
        ):
            if kind == "wrong axis" and name not in _AXES:
                continue
            yield Saboteur(
                kind,
                entry.spec.name,
                _with(name, replaced),
                dtype,
                raw=True,
                detail=name,
            )


def _with(name: str, replaced: Callable[[Call, str], Any]) -> Callable[[Call], Any]:
    def wrong(call: Call) -> Any:
        try:
            results = call.clean(**{name: replaced(call, name)})
        except _REFUSALS:  # the wrong attribute fits no such call
            results = call.clean()
        return [call.backend.from_host(array) for array in results]

    return wrong


def _default(call: Call, name: str) -> Any:
    attribute = call.spec.attributes[name]
    if attribute.default is REQUIRED:
        return call.attributes[name]
    types = call.types_of(call.buffers)
    known = dict(zip(call.spec.input_names, types, strict=True))
    return attribute.canonical(attribute.default, {**known, **call.attributes})


def _first(call: Call, name: str) -> Any:
    return call.lasting.setdefault("first", call.attributes)[name]


def _next(call: Call, name: str) -> Any:
    """Return a number plus 1, the first of several plus 1, or the negated boolean."""
    value = call.attributes[name]
    return _greater(value)


def _greater(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, tuple) and value:
        return (_greater(value[0]), *value[1:])
    return value


def _broadened(call: Call, name: str) -> Any:
    """Take the first of several numbers for all of them."""
    value = call.attributes[name]
    if isinstance(value, tuple) and value:
        return (value[0],) * len(value)
    return value


def _next_axis(call: Call, name: str) -> Any:
    """Return the axis after the right one, for each of several; after the last comes the first."""
    value = call.attributes[name]
    rank = max(
        (operand.ndim for operand in call.inputs() if isinstance(operand, np.ndarray)), default=0
    )
    if isinstance(value, int) and rank:
        return (value + 1) % rank
    if isinstance(value, tuple) and rank:
        return tuple((axis + 1) % rank for axis in value)
    return value
