"""compile: all that Python and NumPy do with a float works with one that the function received."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import fractions
import inspect
import json
import math
import operator
import pickle
import statistics
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.core.support.tensors import tensor

import tensorplug as tp

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.usefixtures("on_the_cpu"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of NumPy's functions
]

VALUES = (2.5, 0.5, -3.0)
GIVEN: list[tuple[Any, ...]] = [(), (2.0,), ("double",), ("0x1p1",), (2.0, None)]
"""The arguments that a method of floats may take."""


def outcome(call: Callable[[float], Any], value: float) -> Any:
    """Return the result of a call as plain numbers and text, or the class of its error."""
    try:
        result = call(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        if type(error) is TypeError:
            raise
        return type(error)
    return plain(result)


def plain(result: Any) -> Any:
    if isinstance(result, float) and not isinstance(result, np.generic):
        return float, float(result).hex()
    if isinstance(result, tuple | list | set):
        return type(result), [plain(member) for member in result]
    if isinstance(result, np.ndarray):
        return np.ndarray, result.dtype, result.tolist()
    return type(result), repr(result)


def agree(call: Callable[[float], Any]) -> None:
    """Compare what a call gives in a compiled function with what it gives outside, by value."""
    seen: list[Any] = []

    def f(x: tp.Tensor, rate: float) -> tp.Tensor:
        seen.append(outcome(call, rate))
        return x

    compiled = tp.compile(f)
    for value in VALUES:
        compiled(tensor(np.ones(2)), value)
        assert seen[-1] == outcome(call, value), value
        count = len(seen)
        compiled(tensor(np.ones(2)), value)
        assert len(seen) == count


@pytest.mark.parametrize("name", sorted({*dir(float)} - {*dir(object)}))
def test_members_of_floats(name: str) -> None:
    def first_that_fits(value: float) -> Any:
        for given in GIVEN:
            try:
                member = getattr(value, name)
                return member(*given) if callable(member) else member
            except (TypeError, ValueError):
                continue
        raise AssertionError(name)

    agree(first_that_fits)


@pytest.mark.parametrize("name", ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
@pytest.mark.parametrize("other", [2.5, 0, True, np.float32(2.5), np.int64(3), None, "text"])
def test_comparisons(name: str, other: Any) -> None:
    compare = getattr(operator, name)
    for call in (lambda value: compare(value, other), lambda value: compare(other, value)):
        try:
            call(1.0)
        except TypeError:
            continue  # of text and of None, for floats, too
        agree(call)


def test_integers_and_booleans_are_themselves() -> None:
    seen: list[Any] = []
    compiled = tp.compile(lambda x, n, flag: (seen.append((n, flag)), x)[1])
    for given in ((3, True), (1, 1), (True, 0), (0, False)):
        compiled(tensor(np.ones(2)), *given)
        assert [(type(each), each) for each in seen[-1]] == [(type(each), each) for each in given]
    assert len(seen) == 4


def _arguments(ufunc: Any) -> tuple[float, ...] | None:
    """Return what to pass after the float; None if the function takes no floats."""
    others = (1.5,) * (ufunc.nin - 1)
    try:
        with np.errstate(all="ignore"):
            ufunc(2.5, *others)
    except (TypeError, ValueError):  # of integers, of strings, of matrices
        return None
    return others


UFUNCS = {
    name: others
    for name, ufunc in sorted(vars(np).items())
    if isinstance(ufunc, np.ufunc) and (others := _arguments(ufunc)) is not None
}


def test_the_ufuncs_include_the_usual_ones() -> None:
    assert {"sqrt", "exp", "add", "maximum", "arctan2", "isnan", "divmod", "frexp"} <= set(UFUNCS)


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str) -> None:
    function, others = getattr(np, name), UFUNCS[name]
    agree(lambda value: function(value, *others))
    if others:
        agree(lambda value: function(*others, value))


MATH = sorted(
    name
    for name, function in vars(math).items()
    if inspect.isbuiltin(function) and name not in {"pow", "nextafter"}
)


@pytest.mark.parametrize("name", MATH)
def test_functions_of_math(name: str) -> None:
    function = getattr(math, name)
    for given in ((), (1.5,)):
        try:
            function(0.5, *given)
        except TypeError:
            continue  # it takes another number of arguments, or integers
        except ValueError:
            pass  # the float is outside of its domain
        agree(lambda value, given=given: function(value, *given))


def _added_in_place(value: float) -> Any:
    array = np.ones(2)
    array += value
    array[0] = value
    return array


OTHERS: dict[str, Callable[[Any], Any]] = {
    "float32": np.float32,
    "float64": np.float64,
    "array": np.array,
    "array of several": lambda value: np.array([value, 1.0]),
    "asarray": lambda value: np.asarray(value, np.float32),
    "full": lambda value: np.full(2, value),
    "linspace": lambda value: np.linspace(0.0, value, 3),
    "clip": lambda value: np.clip(value, 0.0, 1.0),
    "where": lambda value: np.where(True, value, 0.0),
    "round": lambda value: np.round(value, 1),
    "sum": np.sum,
    "isclose": lambda value: np.isclose(value, 2.5),
    "result_type": np.result_type,
    "concatenate": lambda value: np.concatenate([[value], np.ones(1)]),
    "reduce": lambda value: np.add.reduce([value, value]),
    "outer": lambda value: np.multiply.outer(value, [1.0, 2.0]),
    "out": lambda value: np.add(value, 1.0, out=np.zeros(())),
    "in place": _added_in_place,
    "an array's operators": lambda value: np.ones(2) * value - value / np.ones(2),
    "a scalar's operators": lambda value: np.float64(2) * value + value ** np.float64(2),
    "an array's comparisons": lambda value: (np.ones(2) < value, value <= np.ones(2)),
    "int": int,
    "complex": lambda value: complex(value, 1.0) + 1j * value,
    "bool": lambda value: (bool(value), not value),
    "round to digits": lambda value: (round(value), round(value, 1)),
    "divmod": lambda value: (divmod(value, 2), divmod(2, value)),
    "power": lambda value: (value**2, 2**value, pow(value, 3)),
    "format": lambda value: (f"{value:.2f}", "%.3e" % value, "%d" % value),  # noqa: UP031
    "hash": lambda value: (hash(value), value in {2.5, 1.0}, {0.5: 1}.get(value)),
    "order": lambda value: (max(value, 1.0), sorted([value, 1.0]), sum([value, 1])),
    "class methods": lambda value: (float.hex(value), float.is_integer(value)),
    "Decimal": decimal.Decimal,
    "Fraction": lambda value: fractions.Fraction(value) + fractions.Fraction(1, 2),
    "timedelta": lambda value: dt.timedelta(seconds=value),
    "json": lambda value: json.dumps({"rate": value}),
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": lambda value: (copy.copy(value), copy.deepcopy(value)),
    "struct": lambda value: struct.pack("<d", value),
    "statistics": lambda value: statistics.mean([value, 2.0]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_else_takes_floats(name: str) -> None:
    agree(OTHERS[name])


def test_a_tensor_beside_it_comes_first() -> None:
    compiled = tp.compile(lambda x, rate: np.multiply(x, rate) + np.add(rate, x))
    x = tensor(np.array([1.0, 2.0]))
    for rate in (0.5, 4.0):
        np.testing.assert_array_equal(
            compiled(x, rate).numpy(), x.numpy() * rate + rate + x.numpy()
        )


def test_other_errors_of_a_function_stay() -> None:
    calls: list[float] = []

    def f(x: tp.Tensor, rate: float) -> tp.Tensor:
        calls.append(rate)
        return x + len(rate)  # type: ignore[arg-type]  # the fault

    with pytest.raises(TypeError, match="'float' has no len"):
        tp.compile(f)(tensor(np.ones(2)), 0.5)
    assert [type(rate) is float for rate in calls] == [False, True]


def test_a_float_has_no_other_members() -> None:
    def f(x: tp.Tensor, rate: float) -> tp.Tensor:
        assert not hasattr(rate, "item")
        return x * rate

    compiled = tp.compile(f)
    for rate in (0.5, 0.25):
        np.testing.assert_array_equal(compiled(tensor(np.ones(2)), rate).numpy(), [rate, rate])
    assert "1 program" in repr(compiled)
