"""Attributes in the keys of plans: equal only if no kernel could tell them apart."""

from __future__ import annotations

import copy
import datetime as dt
import enum
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.dispatch.keys import freeze_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

Pair = namedtuple("Pair", ("a", "b"))  # noqa: PYI024  # of any types


@dataclass(frozen=True)
class Frozen:
    """Equal by the values of its fields."""

    value: Any


class Compared:
    """Equal by one of its attributes; the other is what it has computed so far."""

    __slots__ = ("__value", "seen")

    def __init__(self, value: Any, seen: Any = None) -> None:
        self.__value, self.seen = value, seen

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Compared):
            return False
        pair = self.__value, other.__value
        if any(isinstance(value, np.ndarray | np.generic) for value in pair):
            return type(pair[0]) is type(pair[1]) and np.array_equal(*pair)
        return bool(pair[0] == pair[1])

    def __hash__(self) -> int:
        return 7

    __repr__ = object.__repr__


class Metre(float):
    """A float whose text tells nothing."""

    def __repr__(self) -> str:
        return "a length"


class Whole(enum.IntEnum):
    """Members that equal numbers."""

    ONE = 1


def _record(middle: float) -> np.void:
    data = np.zeros((), dtype=[("a", "f4", (3000,))])
    data["a"][1500] = middle
    return data[()]


UTC = dt.UTC
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=UTC)

DIFFERENT: list[Any] = [
    *(1, True, 1.0, 1 + 0j, "1", np.float32(1), np.float64(1), np.int64(1), np.bool_(True)),
    *(0, False, 0.0, -0.0, None, "", (), [], ((),), [[]], int, bool),
    *((1,), [1], (True,), (1.0,), (1, 1), (1, True), (True, 1), (1, 1.0), (1, None), ("1",)),
    *((int, 1), (1, int), ((int, 1),), ((1,), 1), (1, (1,)), Pair(1, 1), [1, 1], [1, True]),
    *(tp.float32, tp.int32, (tp.float32,), slice, float("nan"), float("inf")),
    *("int32", np.dtype("int32"), np.int32, np.str_("1"), b"1", Whole.ONE, _record(1), _record(2)),
    *(
        frozenset({1}),
        frozenset({True}),
        frozenset({1.0}),
        frozenset({(1,)}),
        frozenset({(True,)}),
    ),
    *(frozenset({frozenset({0.0})}), frozenset({frozenset({-0.0})})),
    *(Frozen(1), Frozen(True), Frozen(1.0), Frozen((1,)), Frozen((True,)), Frozen(Frozen(1))),
    *(Frozen(Frozen(True)), Frozen(0.0), Frozen(-0.0), Frozen(frozenset({1}))),
    *(Frozen(frozenset({1.0})), Frozen(np.float32(1)), Frozen(np.float64(1)), Frozen(0j)),
    *(
        Frozen(complex(0.0, -0.0)),
        Frozen(tp.int32),
        Frozen("int32"),
        (Frozen(1), 1),
        (Frozen(1), 2),
    ),
    *(Compared(1), Compared(True), Compared({1: 2}), Compared({True: 2}), Compared({1: 2.0})),
    *(Compared([1]), Compared([True]), Compared(np.ones(2)), Compared(np.ones(2, np.int32))),
    *(Compared(np.zeros(2)), Compared(-np.zeros(2)), Compared({1}), Compared({True})),
    *(Metre(1), Metre(2), Metre(0), Metre(-0.0), Fraction(1), Decimal(1), Decimal("1.00")),
    *(Decimal(0), Decimal("-0"), range(0), range(1, 1), range(0, 3, 2), range(0, 4, 2)),
    *(NOON, NOON.astimezone(dt.timezone(dt.timedelta(hours=2)))),
    *(list[int], tuple[int], list[bool]),
]


def test_values_that_differ_have_other_keys() -> None:
    keys = [tuple(freeze_attributes({"axis": value})) for value in DIFFERENT]
    for (one, key), (other, other_key) in combinations(zip(DIFFERENT, keys, strict=True), 2):
        assert key != other_key, (one, other)


def test_what_a_class_does_not_compare_does_not_matter() -> None:
    keys = [
        tuple(freeze_attributes({"axis": Compared((1,), seen)}))
        for seen in (None, 1, "more", np.ones(3), [])
    ]
    assert len({*keys}) == 1


class Layer:
    """A tree whose static data is one value."""

    def __init__(self, static: Any) -> None:
        self.static = static


@pytest.fixture
def _layers() -> Any:
    tp.register_tree(Layer, children=[])
    yield
    tp.unregister_tree(Layer)


@pytest.mark.usefixtures("_layers")
@pytest.mark.filterwarnings("ignore::tensorplug.errors.RecompileWarning")
@pytest.mark.parametrize(
    "place",
    [Compared, Layer, lambda value: frozenset({value}), lambda value: {value: None}],
    ids=["attribute", "static data", "member", "key"],
)
def test_compiled_functions_tell_static_values_apart(place: Callable[[Any], Any]) -> None:
    traced: list[Any] = []
    f = tp.compile(lambda x, static: (traced.append(static), x)[1])
    x = tp.ones(())
    values = [value for value in DIFFERENT if _is_hashable(value) and value == value]  # noqa: PLR0124  # no NaN
    for _ in range(2):
        for value in values:
            f(x, place(value))
        assert len(traced) == len(values)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("value", DIFFERENT, ids=lambda value: repr(value).partition(" at ")[0])
def test_equal_values_have_equal_keys(value: Any) -> None:
    key, again = (
        tuple(freeze_attributes({"axis": given})) for given in (value, copy.deepcopy(value))
    )
    assert key == again
    assert hash(key) == hash(again)
    assert key != tuple(freeze_attributes({"axes": value}))


@pytest.mark.parametrize("value", [{}, ({},), [set()], np.ones(2), (1, np.ones(2))], ids=repr)
def test_other_values_have_no_key(value: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        freeze_attributes({"axis": value})


def test_lists_that_contain_themselves_have_no_key() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="nested too deeply, or contains itself"):
        freeze_attributes({"axis": endless})
